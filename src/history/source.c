/* SPDX-License-Identifier: MIT */
/*
 * See source.h. hiredis frees a reply when the callback returns, so callbacks copy what is needed. Cost: one round trip
 * for each page, or two if the entry at the offset was trimmed.
 */
#include "history/source.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "heartwheel/bounds.h"
#include "history/source_entry.h"
#include "link/clock.h"
#include "link/link.h"
#include "link/trouble.h"
#include "stream/commands.h"
#include "stream/entries.h"

#define KEY_MAX   160
#define SCAN_MORE 2 /* SCAN is requested for a quarter of a page, and may return more keys */

struct hw_source {
	struct event_base *base; /* owned */
	struct event *wake, *timer;
	int wake_fd;
	atomic_bool woken;
	struct hw_redis_link link;
	struct hw_redis_address at;
	char keys[HW_STREAMS][KEY_MAX], state_prefix[KEY_MAX], state_match[2 * KEY_MAX];
	unsigned page;
	size_t cap;
	struct hw_entry *entries;
	bool linked, up, timed_out;
	unsigned awaited; /* answers that are still missing */
	int failed;       /* first error of the awaited answers: 0 or -errno */
	int64_t redis_ms; /* Redis' clock, from the reply to TIME; 0: Redis has refused TIME */
	char why[HW_TROUBLE_TEXT + 200];
};

/* --- waiting ---------------------------------------------------------------------------------------------------- */

/* The descriptor is not read, so it stays readable, and each later wait ends at once. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	((struct hw_source *)arg)->timed_out = true;
}

static void on_ready(void *arg)
{
	struct hw_source *s = arg;
	s->up = true;
	hw_redis_link_settled(&s->link);
}

static void on_lost(void *arg, const char *why)
{
	struct hw_source *s = arg;
	char text[HW_TROUBLE_TEXT];
	s->up = false;
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER) {
		hw_trouble_text(why, text);
		why = text;
	}
	snprintf(s->why, sizeof(s->why), "%.500s", why);
}

static const struct hw_redis_link_ops link_ops = {on_ready, on_lost, NULL};

static void arm(struct hw_source *s, int ms)
{
	struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000 * 1000)};
	s->timed_out = event_add(s->timer, &tv) != 0;
}

static bool turn(struct hw_source *s)
{
	return !atomic_load(&s->woken) && event_base_loop(s->base, EVLOOP_ONCE) >= 0;
}

void hw_source_pause(struct hw_source *s, int ms)
{
	for (arm(s, ms); !s->timed_out && turn(s);)
		;
}

bool hw_source_ready(struct hw_source *s, int ms)
{
	if (!s->linked) {
		const struct hw_redis_link_conf c = {
			.at = s->at, .seed = (uint64_t)(uintptr_t)s ^ (uint64_t)getpid(), .proves = true};
		if (hw_redis_link_init(&s->link, s->base, &c, &link_ops, s) != 0)
			return false;
		s->linked = true;
	}
	hw_redis_link_tick(&s->link);
	for (arm(s, ms); !s->up && !s->timed_out && turn(s);)
		;
	return s->up;
}

const char *hw_source_why(const struct hw_source *s)
{
	return s->why;
}

void hw_source_wake(struct hw_source *s)
{
	uint64_t one = 1;
	atomic_store(&s->woken, true);
	(void)!write(s->wake_fd, &one, sizeof(one));
}

bool hw_source_is_woken(const struct hw_source *s)
{
	return atomic_load(&s->woken);
}

/* --- commands --------------------------------------------------------------------------------------------------- */

/* Reads a reply; false: the reply is malformed. */
typedef bool reader(void *arg, const redisReply *reply);

struct question {
	struct hw_source *s;
	reader *read; /* NULL: any reply but an error is fine */
	void *arg;
	bool one_of_many; /* the question is about one of several keys: if this key has another type, only this answer
	                     is skipped */
	bool may_fail;    /* ignore an error */
};

/* Keeps the reason of the first refusal. */
static void refused(struct hw_source *s, const char *error)
{
	if (s->failed)
		return;
	hw_trouble_text(error, s->why);
	s->failed = -EACCES;
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct question *q = arg;
	struct hw_source *s = q->s;
	const redisReply *reply = answer;
	(void)ac;
	s->awaited--;
	if (!reply) {
		s->failed = -ENOTCONN;
		return;
	}
	hw_redis_link_got(&s->link);
	if (reply->type == REDIS_REPLY_ERROR &&
	    (q->may_fail || (q->one_of_many && hw_trouble_of(reply->str) == HW_TROUBLE_WRONGTYPE)))
		return;
	if (reply->type == REDIS_REPLY_ERROR)
		refused(s, reply->str);
	else if (q->read && !q->read(q->arg, reply))
		refused(s, "ERR malformed answer");
}

/* Sends a command. `q` must live until answers() returns. */
static void send_question(struct question *q, int argc, const char **argv)
{
	struct hw_source *s = q->s;
	size_t len[24];
	for (int i = 0; i < argc; i++)
		len[i] = strlen(argv[i]);
	if (s->failed)
		return;
	s->failed = hw_redis_link_command(&s->link, on_answer, q, argc, argv, len);
	s->awaited += s->failed == 0;
}

/* Waits until all answers have arrived. The questions are on the callers' stacks. If an answer arrived after a caller
 * has returned, its callback would overwrite the stack. */
static int answers(struct hw_source *s)
{
	while (s->awaited > 0 && turn(s))
		;
	if (s->awaited > 0) { /* woken: stop waiting */
		s->up = s->linked = false;
		hw_redis_link_fini(&s->link);
		s->failed = -ENOTCONN;
	}
	int rc = s->failed;
	s->failed = 0;
	return s->up ? rc : -ENOTCONN;
}

static int ask(struct hw_source *s, reader *read, void *arg, int argc, const char **argv)
{
	struct question q = {.s = s, .read = read, .arg = arg};
	send_question(&q, argc, argv);
	return answers(s);
}

/* --- the clock -------------------------------------------------------------------------------------------------- */

static bool read_clock(void *arg, const redisReply *reply)
{
	int64_t s = -1;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING)
		hw_source_read_number(&s, reply->element[0]);
	if (s > 0 && s <= UINT32_MAX)
		*(int64_t *)arg = s * 1000;
	return true;
}

/* Requests Redis' clock together with the next command. `q` must live as long as the question of that command. */
static void send_clock(struct hw_source *s, struct question *q)
{
	s->redis_ms = 0;
	*q = (struct question){.s = s, .read = read_clock, .arg = &s->redis_ms, .may_fail = true};
	send_question(q, 1, (const char *[]){"TIME"});
}

/* Returns the clock for comparisons: Redis' clock or ours, whichever is later, because either may be behind. If
 * Redis refuses TIME, the time in the entry's id replaces Redis' clock. */
static int64_t clock_ms(const struct hw_source *s, struct hw_stream_id at)
{
	int64_t ours = hw_clock_now().wall_ms, theirs = s->redis_ms;
	if (theirs == 0 && at.ms < HW_LATEST_MS)
		theirs = (int64_t)at.ms;
	return theirs > ours ? theirs : ours;
}

int64_t hw_source_earlier_ms(const struct hw_source *s)
{
	int64_t ours = hw_clock_now().wall_ms;
	return s->redis_ms > 0 && s->redis_ms < ours ? s->redis_ms : ours;
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

static void note_odd(struct hw_source_page *p, enum hw_source_odd odd, struct hw_stream_id at)
{
	p->odd[odd]++;
	p->odd_at = at;
}

/* Appends an entry to the page, or counts it as odd. */
static void take_entry(struct hw_source *s, enum hw_stream stream, struct hw_stream_id at, const redisReply *fields,
                       struct hw_source_page *p)
{
	struct hw_entry *e = &s->entries[p->n];
	bool usable;
	memset(e, 0, sizeof(*e));
	e->at = at;
	e->clock_ms = clock_ms(s, at);
	enum hw_source_odd odd = hw_source_entry_read(e, stream, fields, &usable);
	p->n += usable;
	if (odd != HW_ODD_KINDS)
		note_odd(p, odd, at);
}

/* --- a page ----------------------------------------------------------------------------------------------------- */

/* State of one read. */
struct reading {
	struct hw_source *s;
	enum hw_stream stream;
	struct hw_source_page *page;
	bool gone;      /* the entry at the offset is missing */
	bool no_stream; /* the key does not exist */
	struct hw_stream_info info;
};

/* False: the reply is malformed. */
static bool take_page(struct reading *r, const struct hw_stream_page *page)
{
	struct hw_source_page *p = r->page;
	for (size_t i = 0; i < page->n; i++) {
		const redisReply *entry = page->entries[i];
		if (!hw_stream_entry_id(entry, &p->to.id))
			return false;
		take_entry(r->s, r->stream, p->to.id, entry->element[1], p);
		p->to.added += p->to.added < HW_ENTRIES_MAX;
	}
	p->more = page->more;
	return true;
}

static bool read_page(void *arg, const redisReply *reply)
{
	struct reading *r = arg;
	struct hw_stream_page page;
	if (!hw_stream_page_read(reply, r->page->from.id, r->s->page, &page))
		return false;
	r->gone = page.gone;
	return r->gone || take_page(r, &page);
}

/* Reads a number of entries; -1: the number is impossible. A program can set any number with XSETID. */
static int64_t number_of_entries(const redisReply *r)
{
	bool good = r->type == REDIS_REPLY_INTEGER && r->integer >= 0 && r->integer <= HW_ENTRIES_MAX;
	return good ? r->integer : -1;
}

/* Reads the reply of XINFO STREAM. */
static bool read_info(struct reading *r, const redisReply *info)
{
	r->info.added = r->info.length = -1;
	if (info->type == REDIS_REPLY_ERROR) {
		r->no_stream = strstr(info->str, "no such key") != NULL;
		return r->no_stream;
	}
	for (size_t i = 0; info->type == REDIS_REPLY_ARRAY && i + 1 < info->elements; i += 2) {
		const redisReply *name = info->element[i], *v = info->element[i + 1];
		if (!hw_source_is_text(name))
			continue;
		if (strcmp(name->str, "length") == 0)
			r->info.length = number_of_entries(v);
		else if (strcmp(name->str, "entries-added") == 0)
			r->info.added = number_of_entries(v);
		else if (strcmp(name->str, "last-generated-id") == 0 && hw_source_is_text(v))
			(void)hw_stream_id_parse(v->str, v->len, &r->info.last);
	}
	if (r->info.added < r->info.length)
		r->info.added = -1;
	return r->info.length >= 0;
}

/* Reads the reply of EXEC. It contains the replies to XINFO STREAM and to XRANGE from the start of the stream. */
static bool read_whole(void *arg, const redisReply *reply)
{
	struct reading *r = arg;
	struct hw_source_page *p = r->page;
	struct hw_stream_page page;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !read_info(r, reply->element[0]))
		return false;
	if (r->no_stream)
		return true;
	const redisReply *start = reply->element[1];
	if (start->type != REDIS_REPLY_ARRAY ||
	    (start->elements > 0 && !hw_stream_entry_id(start->element[0], &r->info.first)))
		return false;
	hw_stream_gap_find(&p->to, &r->info, &p->gap);
	return hw_stream_page_read(start, p->to.id, r->s->page, &page) && take_page(r, &page);
}

/* Reads the data about the stream and its first entries in one transaction, so that no change comes between. Called
 * when the entry at the offset is missing. */
static int read_whole_stream(struct hw_source *s, struct reading *r)
{
	char count[16];
	const char *key = s->keys[r->stream];
	struct question clock, aside = {.s = s}, whole = {.s = s, .read = read_whole, .arg = r};
	snprintf(count, sizeof(count), "%u", s->page + 1);
	send_clock(s, &clock);
	send_question(&aside, 1, (const char *[]){"MULTI"});
	send_question(&aside, 3, (const char *[]){"XINFO", "STREAM", key});
	send_question(&aside, 6, (const char *[]){"XRANGE", key, "-", "+", "COUNT", count});
	send_question(&whole, 1, (const char *[]){"EXEC"});
	return answers(s);
}

int hw_source_read(struct hw_source *s, enum hw_stream stream, const struct hw_stream_cursor *from,
                   struct hw_source_page *out)
{
	struct hw_stream_command c;
	*out = (struct hw_source_page){
		.entries = s->entries, .from = *from, .to = *from, .asked_ms = hw_clock_now().wall_ms};
	struct reading r = {.s = s, .stream = stream, .page = out};
	struct question clock;
	if (from->added < 0 || from->id.ms == 0)
		return read_whole_stream(s, &r);
	hw_stream_range(&c, s->keys[stream], from->id, s->page);
	send_clock(s, &clock);
	int rc = ask(s, read_page, &r, c.argc, c.argv);
	return rc == 0 && r.gone ? read_whole_stream(s, &r) : rc;
}

/* --- waiting for entries, lag ----------------------------------------------------------------------------------- */

int hw_source_wait(struct hw_source *s, const struct hw_stream_cursor at[HW_STREAMS], const bool but[HW_STREAMS])
{
	const char *keys[HW_STREAMS];
	struct hw_stream_id after[HW_STREAMS];
	struct hw_stream_command c;
	int n = 0;
	for (int i = 0; i < HW_STREAMS; i++)
		if (!but[i]) {
			keys[n] = s->keys[i];
			after[n++] = at[i].id;
		}
	if (n == 0)
		return -EACCES;
	hw_stream_wait(&c, keys, after, n);
	return ask(s, NULL, NULL, c.argc, c.argv);
}

static bool read_lag(void *arg, const redisReply *reply)
{
	struct reading *r = arg;
	return read_info(r, reply);
}

int hw_source_lag(struct hw_source *s, enum hw_stream stream, const struct hw_stream_cursor *at, int64_t *out)
{
	struct reading r = {.s = s, .stream = stream};
	int rc = ask(s, read_lag, &r, 3, (const char *[]){"XINFO", "STREAM", s->keys[stream]});
	*out = rc || r.info.added < 0 || at->added < 0 || r.info.added < at->added ? -1 : r.info.added - at->added;
	return rc;
}

/* --- hashes ----------------------------------------------------------------------------------------------------- */

struct scan {
	struct hw_source *s;
	struct hw_source_page *page;
	char *cursor;
	size_t n; /* keys of this part */
};

static bool read_keys(void *arg, const redisReply *reply)
{
	struct scan *c = arg;
	struct hw_source *s = c->s;
	size_t prefix = strlen(s->state_prefix);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !hw_source_is_text(reply->element[0]) ||
	    reply->element[1]->type != REDIS_REPLY_ARRAY)
		return false;
	snprintf(c->cursor, 32, "%s", reply->element[0]->str);
	const redisReply *keys = reply->element[1];
	for (size_t i = 0; i < keys->elements && c->n < s->cap; i++) {
		const redisReply *key = keys->element[i];
		if (!hw_source_is_text(key) || key->len <= prefix || key->len - prefix >= HW_ENTRY_NAME)
			continue;
		struct hw_entry *e = &s->entries[c->n++];
		memset(e, 0, sizeof(*e));
		memcpy(e->id, key->str + prefix, key->len - prefix);
	}
	return true;
}

static bool read_hash(void *arg, const redisReply *reply)
{
	struct hw_entry *e = arg;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 7)
		return false;
	for (size_t i = 0; i < 7; i++)
		if (!hw_source_is_text(reply->element[i]) && reply->element[i]->type != REDIS_REPLY_NIL)
			return false;
	redisReply *const *v = reply->element;
	char *const texts[] = {e->state, e->why, e->group, e->node};
	const size_t sizes[] = {sizeof(e->state), sizeof(e->why), sizeof(e->group), sizeof(e->node)};
	for (size_t i = 0; i < 4; i++)
		if (hw_source_is_text(v[i]))
			hw_bounds_text(texts[i], sizes[i], v[i]->str, v[i]->len);
	int64_t *const numbers[] = {&e->time_ms, &e->last_seen_ms, &e->seq};
	for (size_t i = 0; i < 3; i++)
		if (hw_source_is_text(v[4 + i]))
			hw_source_read_number(numbers[i], v[4 + i]);
	e->at = (struct hw_stream_id){e->time_ms > 0 ? (uint64_t)e->time_ms : 0, 0};
	return true;
}

int hw_source_scan(struct hw_source *s, char cursor[32], struct hw_source_page *out)
{
	struct scan c = {.s = s, .page = out, .cursor = cursor};
	char count[16], at[32];
	*out = (struct hw_source_page){.entries = s->entries};
	snprintf(count, sizeof(count), "%u", s->page / 4 + 1);
	snprintf(at, sizeof(at), "%s", cursor);
	struct question clock;
	send_clock(s, &clock);
	int rc = ask(s, read_keys, &c, 6, (const char *[]){"SCAN", at, "MATCH", s->state_match, "COUNT", count});
	struct question *q = rc == 0 && c.n > 0 ? calloc(c.n, sizeof(*q)) : NULL;
	if (rc || !q)
		return rc ? rc : c.n > 0 ? -ENOMEM : 0;
	for (size_t i = 0; i < c.n; i++) {
		char key[KEY_MAX + HW_ENTRY_NAME];
		snprintf(key, sizeof(key), "%s%s", s->state_prefix, s->entries[i].id);
		q[i] = (struct question){.s = s, .read = read_hash, .arg = &s->entries[i], .one_of_many = true};
		send_question(&q[i], 9,
		              (const char *[]){"HMGET", key, "state", "reason", "group", "node", "since", "last_seen",
		                               "seq"});
	}
	rc = answers(s);
	free(q);
	for (size_t i = 0; rc == 0 && i < c.n; i++) {
		struct hw_entry *e = &s->entries[i];
		e->clock_ms = clock_ms(s, (struct hw_stream_id){0, 0});
		enum hw_source_odd odd = hw_source_entry_check(e, HW_STREAM_EVENTS);
		if (odd != HW_ODD_KINDS)
			note_odd(out, odd, e->at);
		else if (out->n++ != i)
			s->entries[out->n - 1] = *e;
	}
	return rc;
}

/* Reads the reply to an HMGET of a field that each hash has. EXISTS would need another right. */
static bool read_has(void *arg, const redisReply *reply)
{
	bool *has = arg, whole = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1;
	*has = whole && reply->element[0]->type != REDIS_REPLY_NIL;
	return whole;
}

int hw_source_has(struct hw_source *s, const struct hw_entry *devices, bool *has, size_t n)
{
	struct question *q = calloc(n + 1, sizeof(*q));
	char key[KEY_MAX + HW_ENTRY_NAME];
	if (!q)
		return -ENOTCONN;
	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%s%s", s->state_prefix, devices[i].id);
		q[i] = (struct question){.s = s, .read = read_has, .arg = &has[i], .one_of_many = true};
		has[i] = true;
		send_question(&q[i], 3, (const char *[]){"HMGET", key, "seq"});
	}
	int rc = answers(s);
	free(q);
	return rc;
}

/* --- start and stop --------------------------------------------------------------------------------------------- */

/* Escapes the characters that are special in Redis' glob patterns. */
static void escape(const char *text, char *to)
{
	for (; *text; text++) {
		if (strchr("*?[]\\^-", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	strcpy(to, "*");
}

static int make(struct hw_source *s, const struct hw_source_conf *c)
{
	snprintf(s->keys[HW_STREAM_SIGHT], KEY_MAX, "%.100ssight", c->key_prefix);
	snprintf(s->keys[HW_STREAM_EVENTS], KEY_MAX, "%.100sevents", c->key_prefix);
	snprintf(s->keys[HW_STREAM_INCIDENTS], KEY_MAX, "%.100sincident_events", c->key_prefix);
	snprintf(s->keys[HW_STREAM_TASKS], KEY_MAX, "%.100sevents", c->task_prefix);
	snprintf(s->state_prefix, KEY_MAX, "%.100sstate:", c->key_prefix);
	escape(s->state_prefix, s->state_match);
	s->page = c->page;
	s->cap = c->page * SCAN_MORE + 1;
	s->entries = calloc(s->cap, sizeof(*s->entries));
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->base = event_base_new();
	if (!s->entries || s->wake_fd < 0 || !s->base || hw_redis_address_copy(&s->at, &c->at) != 0)
		return -ENOMEM;
	s->wake = event_new(s->base, s->wake_fd, EV_READ | EV_PERSIST, on_wake, s);
	s->timer = event_new(s->base, -1, 0, on_timer, s);
	return s->wake && s->timer && event_add(s->wake, NULL) == 0 ? 0 : -ENOMEM;
}

struct hw_source *hw_source_new(const struct hw_source_conf *conf)
{
	struct hw_source *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->wake_fd = -1;
	if (make(s, conf) == 0)
		return s;
	hw_source_free(s);
	return NULL;
}

void hw_source_free(struct hw_source *s)
{
	if (!s)
		return;
	if (s->linked)
		hw_redis_link_fini(&s->link);
	if (s->wake)
		event_free(s->wake);
	if (s->timer)
		event_free(s->timer);
	if (s->base)
		event_base_free(s->base);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	hw_redis_address_fini(&s->at);
	free(s->entries);
	free(s);
}
