/* SPDX-License-Identifier: MIT */
/*
 * See importer.h. Invariant: the importer's offset of a stream is the offset that SQL returned, or that of the
 * importer's last successful commit. After any SQL failure, the importer reconnects and reads the offsets from SQL. So
 * if the answer to a COMMIT was lost, the importer learns whether the batch was written.
 */
#include "history/importer_priv.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "link/clock.h"
#include "link/trouble.h"

#define AGAIN_MAX_S   60
#define EXPIRE_MS     60000 /* pause between expiry runs that delete everything old */
#define EXPIRE_ROUNDS 8     /* while many entries wait, old rows are deleted only once in so many rounds */
#define LAG_MS        1000
#define REDIS_MS      1000
#define MOMENT_MS     1000

static const char *part_name(int part)
{
	return part == HW_PART_HASHES ? "device:state:*" : hw_entry_stream_name((enum hw_stream)part);
}

static const double batch_bounds[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10};

/* --- log lines -------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void report(struct hw_importer *c, enum hw_log_level level,
                                                         const char *format, ...)
{
	uint64_t one = 1;
	va_list args;
	va_start(args, format);
	pthread_mutex_lock(&c->lock);
	if (c->n_lines == HW_IMPORTER_LINES) {
		c->lost_lines++;
	} else {
		struct hw_importer_line *l = &c->lines[c->n_lines++];
		l->level = level;
		vsnprintf(l->text, sizeof(l->text), format, args);
	}
	pthread_mutex_unlock(&c->lock);
	va_end(args);
	(void)!write(c->wake_fd, &one, sizeof(one));
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct hw_importer *c = arg;
	struct hw_importer_line l;
	uint64_t n;
	bool more = true;
	(void)what;
	(void)!read(fd, &n, sizeof(n));
	pthread_mutex_lock(&c->lock);
	unsigned lost = c->lost_lines;
	c->lost_lines = 0;
	pthread_mutex_unlock(&c->lock);
	while (more) {
		pthread_mutex_lock(&c->lock);
		more = c->n_lines > 0;
		if (more) {
			l = c->lines[0];
			memmove(c->lines, c->lines + 1, --c->n_lines * sizeof(l));
		}
		pthread_mutex_unlock(&c->lock);
		if (more)
			c->ops->on_line(c->arg, l.level, l.text);
	}
	if (lost) {
		char text[80];
		snprintf(text, sizeof(text), "%u more log line%s were dropped: there were too many at once", lost,
		         lost == 1 ? "" : "s");
		c->ops->on_line(c->arg, HW_LOG_WARNING, text);
	}
}

static int64_t mono_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

/* Updates the view. `up`: Redis is connected and all parts could be read. */
static void show_redis(struct hw_importer *c, bool up)
{
	bool all = up;
	for (int i = 0; i < HW_PARTS; i++)
		all &= !c->refused[i];
	pthread_mutex_lock(&c->lock);
	c->view.redis = all;
	snprintf(c->view.redis_why, sizeof(c->view.redis_why), "%s",
	         all  ? ""
	         : up ? c->refusal
	              : hw_source_why(c->source));
	pthread_mutex_unlock(&c->lock);
	if (up == c->redis_reported)
		return;
	if (up)
		report(c, HW_LOG_NOTICE, "Redis: connected");
	else if (!hw_source_is_woken(c->source))
		report(c, HW_LOG_WARNING, "Redis: %s", hw_source_why(c->source));
	c->redis_reported = up;
}

void hw_importer_note_refusal(struct hw_importer *c, int part, int rc)
{
	bool refused = rc == -EACCES, before = c->refused[part];
	if (rc && !refused)
		return;
	if (refused)
		snprintf(c->refusal, sizeof(c->refusal), "%s cannot be read: %s", part_name(part),
		         hw_source_why(c->source));
	if (refused && !before)
		report(c, HW_LOG_ERROR, "Redis: %s", c->refusal);
	else if (!refused && before)
		report(c, HW_LOG_NOTICE, "Redis: %s can be read again", part_name(part));
	c->refused[part] = refused;
	if (refused != before)
		show_redis(c, true);
}

static void show_sql(struct hw_importer *c, bool up, const char *why)
{
	int64_t gaps = 0, lost = 0;
	bool known = up && hw_ledger_gaps(c->ledger, &gaps, &lost) == 0;
	pthread_mutex_lock(&c->lock);
	c->view.sql = up;
	c->view.sql_losses += !up && c->again_s == 0;
	snprintf(c->view.sql_why, sizeof(c->view.sql_why), "%s", why);
	memcpy(c->view.cursor, c->cursor, sizeof(c->cursor));
	if (known) {
		c->view.gaps = gaps;
		c->view.lost = lost;
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- SQL -------------------------------------------------------------------------------------------------------- */

/* Closes SQL after an error and schedules the next attempt. */
static void give_sql_up(struct hw_importer *c, const char *why)
{
	char text[HW_SQL_WHY];
	snprintf(text, sizeof(text), "%s", why);
	hw_ledger_close(c->ledger);
	c->ledger = NULL;
	show_sql(c, false, text);
	c->again_s = c->again_s == 0 ? 1 : c->again_s * 2 < AGAIN_MAX_S ? c->again_s * 2 : AGAIN_MAX_S;
	report(c, HW_LOG_ERROR, "SQL: %s; next try in %u s", text, c->again_s);
	c->sql_at_ms = mono_ms() + c->again_s * 1000;
}

void hw_importer_account_rows(struct hw_importer *c)
{
	char row[HW_ENTRY_NAME];
	uint64_t n = hw_ledger_odd(c->ledger, row);
	if (n == 0)
		return;
	pthread_mutex_lock(&c->lock);
	c->view.odd[HW_ODD_ROW] += n;
	pthread_mutex_unlock(&c->lock);
	if (hw_trouble_due_again(&c->odd_reported_ms[HW_ODD_ROW], mono_ms()))
		report(c, HW_LOG_WARNING,
		       "SQL: %" PRIu64 " rows hold an impossible time, state, seq or offset, which counts as unknown; "
		       "one is the row of %s",
		       n, row);
}

static int read_cursors(struct hw_importer *c)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < HW_STREAMS; i++)
		rc = hw_ledger_cursor(c->ledger, (enum hw_stream)i, &c->cursor[i]);
	hw_importer_account_rows(c);
	c->cursors_known |= rc == 0;
	return rc ? rc : hw_ledger_read_pending(c->ledger, &c->pending_ms, &c->emptied);
}

static void open_sql(struct hw_importer *c)
{
	char why[HW_SQL_WHY];
	c->ledger = hw_ledger_open(&c->conf.sql, why);
	if (!c->ledger) {
		give_sql_up(c, why);
		return;
	}
	if (read_cursors(c) != 0) {
		give_sql_up(c, hw_ledger_error(c->ledger));
		return;
	}
	report(c, HW_LOG_NOTICE, "SQL: connected");
	show_sql(c, true, "");
}

/* --- batches ---------------------------------------------------------------------------------------------------- */

static int put(struct hw_importer *c, enum hw_stream stream, const struct hw_source_page *p, uint64_t *fresh)
{
	int (*const into[])(struct hw_ledger *, const struct hw_entry *) = {[HW_STREAM_SIGHT] = hw_ledger_sight,
	                                                                    [HW_STREAM_TASKS] = hw_ledger_task,
	                                                                    [HW_STREAM_INCIDENTS] = hw_ledger_incident};
	for (size_t i = 0; i < p->n; i++) {
		const struct hw_entry *e = &p->entries[i];
		int rc = stream == HW_STREAM_EVENTS ? hw_ledger_event(c->ledger, e, false) : into[stream](c->ledger, e);
		if (rc < 0)
			return rc;
		*fresh += (uint64_t)rc;
	}
	return p->gap.any ? hw_ledger_gap(c->ledger, stream, &p->gap, hw_clock_now().wall_ms) : 0;
}

static void report_gap(struct hw_importer *c, enum hw_stream stream, const struct hw_source_page *p)
{
	char lost[48] = "an unknown number of";
	if (p->gap.lost >= 0)
		snprintf(lost, sizeof(lost), "%" PRId64, p->gap.lost);
	if (p->gap.other)
		report(c, HW_LOG_WARNING,
		       "%s is not the stream that was read before: it was emptied or restored; heartwheel-history "
		       "reads it from its start, and %s earlier entries are lost",
		       part_name((int)stream), lost);
	else
		report(c, HW_LOG_WARNING,
		       "%s entries of %s were trimmed before heartwheel-history read them; see [redis] events_max",
		       lost, part_name((int)stream));
}

void hw_importer_report_odd(struct hw_importer *c, int part, const struct hw_source_page *p)
{
	static const char *const whats[HW_ODD_KINDS] = {
		[HW_ODD_FIELDS] = "skipped: a field is missing or malformed",
		[HW_ODD_TIME] = "skipped: the time is negative or more than a day ahead of Redis' clock",
		[HW_ODD_SEQ] = "skipped: seq is missing or more than a day ahead of Redis' clock",
		[HW_ODD_TEXT] = "kept with a corrected text: it was not UTF-8, or too long",
		[HW_ODD_EARLY] = "kept with the time of their stream id: their own time is before the year 2000"};
	char at[HW_STREAM_ID_TEXT];
	hw_stream_id_print(p->odd_at, at);
	for (int i = 0; i < HW_ODD_KINDS; i++)
		if (p->odd[i] && hw_trouble_due_again(&c->odd_reported_ms[i], mono_ms()))
			report(c, HW_LOG_WARNING, "%s: %" PRIu64 " entries %s; one is at %s", part_name(part),
			       p->odd[i], whats[i], at);
}

/*
 * Updates the time up to which SQL has the whole stream. After the last page, this is the time at which the page was
 * requested; otherwise it is the time of the page's last entry. This time never goes back, unless our wall clock goes
 * back.
 */
static void note_until(int64_t *until_ms, const struct hw_source_page *p)
{
	int64_t ms = p->asked_ms;
	if (p->more && p->to.id.ms < (uint64_t)ms)
		ms = (int64_t)p->to.id.ms;
	if (ms > *until_ms || *until_ms > p->asked_ms)
		*until_ms = ms;
}

static void account(struct hw_importer *c, enum hw_stream stream, const struct hw_source_page *p, uint64_t fresh,
                    double s)
{
	static const enum hw_importer_rows kinds[] = {HW_ROWS_SIGHT, HW_ROWS_TRANSITION, HW_ROWS_TASK,
	                                              HW_ROWS_INCIDENT};
	int64_t now_ms = hw_clock_now().wall_ms;
	int64_t lag_ms = p->to.id.ms < (uint64_t)now_ms ? now_ms - (int64_t)p->to.id.ms : 0;
	hw_importer_report_odd(c, (int)stream, p);
	pthread_mutex_lock(&c->lock);
	c->view.cursor[stream] = c->cursor[stream];
	c->view.rows[kinds[stream]] += fresh;
	for (int i = 0; i < HW_ODD_KINDS; i++)
		c->view.odd[i] += p->odd[i];
	c->view.pending = c->pending_ms != 0;
	c->view.lag_ms[stream] = p->more ? lag_ms : 0;
	note_until(&c->view.until_ms[stream], p);
	if (!p->more)
		c->view.lag_entries[stream] = 0;
	if (p->gap.any) {
		c->view.gaps++;
		c->view.lost += p->gap.lost > 0 ? p->gap.lost : 0;
	}
	if (s > 0)
		hw_histogram_add(&c->view.batch, s);
	pthread_mutex_unlock(&c->lock);
}

static bool is_moved(const struct hw_source_page *p)
{
	return hw_stream_id_compare(p->from.id, p->to.id) != 0 || p->from.added != p->to.added;
}

/*
 * Writes further pages in the same transaction, up to the size of a batch. *p becomes the last page. The rows of
 * devices are far apart in the tables, so an entry of a larger batch costs less.
 *
 * The loop ends at a gap, or at a page that cannot be read. The next round meets the same gap or error, and handles it.
 * It also ends after MOMENT_MS, because other workers wait. After an SQL failure, each page has its own transaction,
 * because the disk may be nearly full.
 */
static int put_more(struct hw_importer *c, enum hw_stream stream, struct hw_source_page *p, uint64_t *fresh)
{
	int64_t until_ms = mono_ms() + MOMENT_MS;
	unsigned left = c->again_s == 0 ? c->conf.pages - 1 : 0;
	int rc = 0;
	for (; rc == 0 && left > 0 && p->more && !p->gap.any && mono_ms() < until_ms; left--) {
		struct hw_source_page next;
		if (hw_source_read(c->source, stream, &p->to, &next) != 0)
			break;
		if (!is_moved(&next)) { /* This page has no entries, so the offset stays. It must not be set to its own
			                   value, because MariaDB reports that as no changed row. */
			p->more = next.more;
			break;
		}
		rc = hw_ledger_move(c->ledger, stream, &next.from, &next.to) == 1 ? 0 : -EIO;
		if (rc == 0)
			rc = put(c, stream, &next, fresh);
		for (int i = 0; i < HW_ODD_KINDS; i++)
			next.odd[i] += p->odd[i];
		*p = next;
	}
	return rc;
}

/* Writes one transaction; *p becomes its last page. Returns 0, or -EIO, and it is then unknown whether it was
 * committed. */
static int write_batch(struct hw_importer *c, enum hw_stream stream, struct hw_source_page *p)
{
	struct hw_mono began = hw_clock_mono();
	uint64_t fresh = 0;
	int rc = hw_ledger_begin(c->ledger, stream, &p->from, &p->to);
	if (rc == 0) { /* another worker was quicker */
		pthread_mutex_lock(&c->lock);
		c->view.yielded++;
		pthread_mutex_unlock(&c->lock);
		return read_cursors(c);
	}
	if (rc > 0)
		rc = put(c, stream, p, &fresh);
	if (rc == 0)
		rc = put_more(c, stream, p, &fresh);
	if (rc == 0)
		rc = hw_ledger_commit(c->ledger);
	if (rc != 0)
		return rc;
	c->again_s = 0;
	c->cursor[stream] = p->to;
	hw_importer_account_rows(c);
	if (p->gap.any && stream == HW_STREAM_EVENTS)
		rc = hw_ledger_read_pending(c->ledger, &c->pending_ms, &c->emptied);
	account(c, stream, p, fresh, (double)(hw_clock_mono().ns - began.ns) / 1e9);
	if (p->gap.any)
		report_gap(c, stream, p);
	return rc;
}

int hw_importer_copy_batch(struct hw_importer *c, enum hw_stream stream, bool *more)
{
	struct hw_source_page page;
	int rc = hw_source_read(c->source, stream, &c->cursor[stream], &page);
	hw_importer_note_refusal(c, (int)stream, rc);
	if (rc)
		return rc;
	if (is_moved(&page)) {
		rc = write_batch(c, stream, &page);
		*more |= page.more;
		return rc;
	}
	*more |= page.more;
	account(c, stream, &page, 0, 0);
	return 0;
}

/* --- rounds ----------------------------------------------------------------------------------------------------- */

/* Returns 0 for a refusal of Redis, which was logged already, so that the caller continues with other work. Returns any
 * other result unchanged. */
static int unless_refused(int rc)
{
	return rc == -EACCES ? 0 : rc;
}

/* Asks Redis how many entries are unread. Logs if it is more than half of what Redis keeps. While there is no SQL,
 * no entries are read, so the view's `lag_ms` is computed here from the offsets. */
static int check_lag(struct hw_importer *c)
{
	int64_t lag[HW_STREAMS] = {0};
	int rc = 0;
	for (int i = 0; rc == 0 && i < HW_STREAMS; i++)
		if (c->refused[i])
			lag[i] = -1;
		else if (c->cursor[i].id.ms > 0)
			rc = unless_refused(hw_source_lag(c->source, (enum hw_stream)i, &c->cursor[i], &lag[i]));
	if (rc)
		return rc;
	bool half = lag[HW_STREAM_EVENTS] > c->conf.events_max / 2;
	if (half && !c->half_reported)
		report(c, HW_LOG_WARNING,
		       "%" PRId64 " events are unread, more than half of what Redis keeps; see [redis] events_max",
		       lag[HW_STREAM_EVENTS]);
	c->half_reported = half;
	int64_t now_ms = hw_clock_now().wall_ms;
	pthread_mutex_lock(&c->lock);
	memcpy(c->view.lag_entries, lag, sizeof(lag));
	for (int i = 0; !c->ledger && i < HW_STREAMS; i++)
		c->view.lag_ms[i] =
			lag[i] > 0 && c->cursor[i].id.ms < (uint64_t)now_ms ? now_ms - (int64_t)c->cursor[i].id.ms : 0;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static int expire(struct hw_importer *c, bool busy)
{
	int64_t now_ms = hw_source_earlier_ms(c->source), mono = mono_ms();
	if (mono < c->expire_at_ms || (busy && c->rounds % EXPIRE_ROUNDS != 0))
		return 0;
	int rc = hw_ledger_expire(c->ledger, c->conf.keep_ms ? now_ms - c->conf.keep_ms : 0,
	                          c->conf.keep_outages_ms ? now_ms - c->conf.keep_outages_ms : 0);
	if (rc == 0)
		c->expire_at_ms = mono + EXPIRE_MS;
	return rc < 0 ? rc : 0;
}

/* Writes a batch of each stream, then does other work that is due. Waits if there is nothing to do. */
static int one_round(struct hw_importer *c)
{
	bool more = false, more_events = false;
	int rc = 0;
	/* The entries about a planned outage come after the transitions of its device, so the device is known. */
	for (int i = 0; rc == 0 && i < HW_STREAMS; i++)
		if (i != HW_STREAM_INCIDENTS || !more_events)
			rc = unless_refused(hw_importer_copy_batch(c, (enum hw_stream)i,
			                                           i == HW_STREAM_EVENTS ? &more_events : &more));
	if (rc == 0 && c->pending_ms && !more_events && mono_ms() >= c->hashes_at_ms) {
		rc = hw_importer_read_back(c);
		if (rc == -EACCES)
			c->hashes_at_ms = mono_ms() + REDIS_MS;
		rc = unless_refused(rc);
	}
	c->refused[HW_PART_HASHES] &= c->pending_ms != 0;
	more |= more_events;
	c->rounds++;
	if (rc == 0)
		rc = expire(c, more);
	if (rc == 0 && mono_ms() >= c->lag_at_ms) {
		c->lag_at_ms = mono_ms() + LAG_MS;
		rc = check_lag(c);
	}
	pthread_mutex_lock(&c->lock);
	c->view.pending = c->pending_ms != 0;
	pthread_mutex_unlock(&c->lock);
	if (rc || more)
		return rc;
	rc = hw_source_wait(c->source, c->cursor, c->refused);
	if (rc == -EACCES)
		hw_source_pause(c->source, REDIS_MS);
	return unless_refused(rc);
}

/* Waits while there is no SQL: reconnects when it is time, and updates the lag until then. */
static void wait_for_sql(struct hw_importer *c)
{
	int64_t left_ms = c->sql_at_ms - mono_ms();
	if (left_ms <= 0) {
		open_sql(c);
		return;
	}
	if (c->cursors_known && hw_source_ready(c->source, REDIS_MS))
		(void)check_lag(c);
	hw_source_pause(c->source, left_ms < LAG_MS ? (int)left_ms : LAG_MS);
}

static void *work(void *arg)
{
	struct hw_importer *c = arg;
	while (!hw_source_is_woken(c->source)) {
		if (!c->ledger) {
			wait_for_sql(c);
			continue;
		}
		bool up = hw_source_ready(c->source, REDIS_MS);
		show_redis(c, up);
		int rc = up ? one_round(c) : 0;
		if (rc == -EIO)
			give_sql_up(c, hw_ledger_error(c->ledger));
	}
	hw_ledger_close(c->ledger);
	return NULL;
}

/* --- start and stop --------------------------------------------------------------------------------------------- */

void hw_importer_view(struct hw_importer *c, struct hw_importer_view *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->view;
	pthread_mutex_unlock(&c->lock);
}

const char *hw_importer_rows_name(enum hw_importer_rows kind)
{
	static const char *const names[] = {"transition", "found", "sight", "task", "incident"};
	return names[kind];
}

const char *hw_importer_odd_name(enum hw_source_odd kind)
{
	static const char *const names[HW_ODD_KINDS] = {"fields", "time", "seq", "text", "early", "row"};
	return names[kind];
}

/* The loop handles the signals. */
static int start(struct hw_importer *c)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	c->running = pthread_create(&c->thread, NULL, work, c) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return c->running ? 0 : -EAGAIN;
}

struct hw_importer *hw_importer_new(struct event_base *base, const struct hw_importer_conf *conf,
                                    const struct hw_importer_ops *ops, void *arg)
{
	struct hw_importer *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	c->ops = ops;
	c->arg = arg;
	pthread_mutex_init(&c->lock, NULL);
	c->view.batch =
		(struct hw_histogram){.bounds = batch_bounds, .n = sizeof(batch_bounds) / sizeof(*batch_bounds)};
	for (int i = 0; i < HW_STREAMS; i++)
		c->view.lag_entries[i] = -1;
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->source = hw_source_new(&conf->source);
	c->wake = c->wake_fd >= 0 ? event_new(base, c->wake_fd, EV_READ | EV_PERSIST, on_wake, c) : NULL;
	if (c->source && c->wake && event_add(c->wake, NULL) == 0 && start(c) == 0)
		return c;
	hw_importer_free(c);
	return NULL;
}

void hw_importer_free(struct hw_importer *c)
{
	if (!c)
		return;
	if (c->running) {
		hw_source_wake(c->source);
		pthread_join(c->thread, NULL);
		on_wake(c->wake_fd, 0, c);
	}
	hw_source_free(c->source);
	if (c->wake)
		event_free(c->wake);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
