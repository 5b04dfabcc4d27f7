/* SPDX-License-Identifier: MIT */
/*
 * One import at a time. A file comes as one body, or as parts, each a request of its own. The job's thread reads each
 * part as it comes, so no part is kept. After the last part:
 * - the loop compares the rows with the table of expected devices
 * - the thread merges the rows that differ
 * - the loop finds the entries to prune
 * - the loop sends the changes to the store, and waits until the table has them
 *
 * Invariant: while the job runs, the loop does not touch `m` and `part`. `req` is the request that waits for an answer.
 * It is NULL if there is none, or if its client has disconnected; the import then continues to the end of its stage.
 *
 * Cost: a turn of the loop takes about SLICE_NS to compare rows or to find entries, or sends one call of at most
 * HW_INVENTORY_ITEMS items.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "control/inventory.h"
#include "heartwheel/expected.h"
#include "heartwheel/print.h"
#include "http/json.h"
#include "run/job.h"

#define SLICE_NS      (2 * HW_NS_PER_MS)
#define BYTES_MAX     (UINT64_C(1) << 30)
#define PART_WAIT_S   60    /* for the next part */
#define ANSWER_WAIT_S 900   /* how long the server waits for the end of an import, in place of HW_HTTP_TIMEOUT_S */
#define CALLS_MAX     4     /* in flight */
#define ROWS_MAX      20000 /* visited for a call; most of them may be rows that change nothing */
#define RETRY_MS      50
#define RETRIES_MAX   200 /* without any progress */
#define PRUNE_ALWAYS  100 /* so many entries may be pruned without force */
#define PRUNE_SHARE   5   /* ... or a fifth of the source's */
#define SETTLE_MS     20
#define SETTLE_TURNS  150 /* most checks whether the table has the changes */

enum stage { FREE, WAITS, READS, COMPARES, MERGES, PRUNES, APPLIES, SETTLES };

/* An entry to remove. The entry is removed only if it has not changed meanwhile, because another node may have imported
 * the id again. */
struct gone {
	char *text; /* owned: the id, and after it the entry as JSON */
	size_t id_len, json_len;
};

/* What a finished import leaves to be freed. */
struct leavings {
	struct hw_import *m;
	struct gone *gone;
	size_t n_gone;
};

/* One call to the store. The call has the rows with the numbers `from` to `to` - 1, or the ids to remove with these
 * numbers. */
struct call {
	struct hw_importer *importer;
	enum { IDLE, SENT, AGAIN } state; /* AGAIN: the store was busy; the call is repeated */
	bool removes;
	size_t from, to;
};

struct hw_importer {
	struct hw_control *c;
	struct hw_job *job, *cleaner;
	struct leavings leavings; /* while `cleans`, only the cleaner's thread uses it */
	bool cleans;
	struct event *turn, *patience;
	enum stage stage;
	struct evhttp_request *req;
	struct hw_import_query q;
	unsigned next_part;
	uint64_t bytes; /* of all parts */
	struct evbuffer *part;
	struct hw_import *m;
	size_t at;         /* row, or place in the table */
	struct gone *gone; /* owned */
	size_t n_gone, gone_cap, gone_at;
	size_t last_row;  /* the last row that was written plus 1; 0: none */
	size_t of_source; /* entries of this source */
	uint64_t added, changed, same, removed;
	struct call calls[CALLS_MAX];
	unsigned in_flight, retries;
	int failed;    /* -errno of a call */
	bool orphaned; /* hw_importer_free() was called while calls were in flight; the last of them frees it */
};

/* --- answers --- */

static void on_close(struct evhttp_connection *conn, void *arg)
{
	struct hw_importer *i = arg;
	struct evhttp_request *req = i->req;
	(void)conn;
	i->req = NULL;
	/* evhttp frees a request that still has its connection. */
	if (req && !evhttp_request_get_connection(req))
		evhttp_request_free(req);
}

static void await(struct hw_importer *i, struct evhttp_request *req)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	i->req = req;
	evhttp_connection_set_timeout(conn, ANSWER_WAIT_S);
	evhttp_connection_set_closecb(conn, on_close, i);
}

static void write_errors(struct hw_json *j, const struct hw_import *m)
{
	hw_json_open_member(j, "errors", '[');
	for (size_t k = 0; m && k < m->n_errors; k++) {
		hw_json_open(j, '{');
		hw_json_uint(j, "line", m->errors[k].line);
		hw_json_text(j, "column", m->errors[k].what.column);
		hw_json_text(j, "message", m->errors[k].what.message);
		hw_json_close(j, '}');
	}
	hw_json_close(j, ']');
}

/* Answers the waiting request, if there is one. `why` NULL: no error. */
static void answer(struct hw_importer *i, int code, const char *why)
{
	struct evhttp_request *req = i->req;
	struct evhttp_connection *conn = req ? evhttp_request_get_connection(req) : NULL;
	struct hw_json j;
	i->req = NULL;
	if (!req)
		return;
	if (conn) {
		evhttp_connection_set_closecb(conn, NULL, NULL);
		evhttp_connection_set_timeout(conn, HW_HTTP_TIMEOUT_S);
	}
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	if (why)
		hw_json_text(&j, "error", why);
	hw_json_text(&j, "source", i->q.source);
	hw_json_uint(&j, "rows", i->m ? i->m->n_rows : 0);
	hw_json_uint(&j, "added", i->added);
	hw_json_uint(&j, "changed", i->changed);
	hw_json_uint(&j, "same", i->same);
	hw_json_uint(&j, "removed", i->removed);
	hw_json_uint(&j, "wrong", i->m ? i->m->n_wrong : 0);
	write_errors(&j, i->m);
	hw_answer_end_as(req, code, &j, body);
}

static void free_leavings(void *arg)
{
	struct leavings *l = arg;
	hw_import_free(l->m);
	for (size_t k = 0; k < l->n_gone; k++)
		free(l->gone[k].text);
	free(l->gone);
}

static void clean(void *arg)
{
	free_leavings(&((struct hw_importer *)arg)->leavings);
}

static void on_cleaned(void *arg)
{
	((struct hw_importer *)arg)->cleans = false;
}

/* Frees the import's data in a thread, because freeing a million rows takes longer than a turn of the loop may. If the
 * thread still frees an earlier import, or cannot be started, the loop frees the data. */
static void clear(struct hw_importer *i)
{
	struct leavings l = {i->m, i->gone, i->n_gone};
	if (!i->cleans && i->cleaner) {
		i->leavings = l;
		i->cleans = hw_job_start(i->cleaner, clean) == 0;
		if (!i->cleans)
			free_leavings(&l);
	} else {
		free_leavings(&l);
	}
	if (i->part)
		evbuffer_drain(i->part, evbuffer_get_length(i->part));
	event_del(i->turn);
	event_del(i->patience);
	i->m = NULL;
	i->gone = NULL;
	i->n_gone = i->gone_cap = i->gone_at = i->of_source = i->at = i->last_row = 0;
	i->added = i->changed = i->same = i->removed = 0;
	i->retries = 0;
	i->failed = 0;
	i->stage = FREE;
}

/* Ends the import with an answer. */
static void end(struct hw_importer *i, int code, const char *why)
{
	answer(i, code, why);
	clear(i);
}

static void end_without_memory(struct hw_importer *i)
{
	end(i, HTTP_SERVUNAVAIL, "out of memory: nothing was imported");
}

/* Asks for another turn. */
static void schedule(struct hw_importer *i, unsigned ms)
{
	struct timeval wait = {0, (int)ms * 1000};
	if (event_add(i->turn, &wait) != 0)
		end_without_memory(i);
}

/* --- reading, in the thread --- */

static void read_part(void *arg)
{
	struct hw_importer *i = arg;
	char bytes[16384];
	int n;
	while ((n = evbuffer_remove(i->part, bytes, sizeof(bytes))) > 0)
		hw_import_feed(i->m, bytes, (size_t)n);
	if (i->q.last)
		hw_import_end(i->m);
}

static void merge(void *arg)
{
	struct hw_importer *i = arg;
	hw_import_merge(i->m);
}

static void start_job(struct hw_importer *i, enum stage stage, hw_job_fn *work)
{
	i->stage = stage;
	if (hw_job_start(i->job, work) != 0)
		end(i, HTTP_SERVUNAVAIL, "no thread can be started: try again");
}

/* Whether the import may continue although some rows are wrong. If not, this function has ended the import. */
static bool check_wrong(struct hw_importer *i)
{
	char why[120];
	if (i->m->n_wrong == 0 || i->q.skip_bad)
		return true;
	hw_print(why, sizeof(why), "%llu of %llu rows are wrong: nothing was imported",
	         (unsigned long long)i->m->n_wrong, (unsigned long long)i->m->n_rows);
	end(i, HTTP_BADREQUEST, i->m->n_rows > 1 ? why : "the file is wrong: nothing was imported");
	return false;
}

static void on_read(struct hw_importer *i)
{
	struct timeval wait = {PART_WAIT_S, 0};
	if (!i->q.last) {
		i->stage = WAITS;
		if (event_add(i->patience, &wait) != 0)
			end_without_memory(i);
		else
			answer(i, HTTP_OK, NULL);
	} else if (check_wrong(i)) {
		i->stage = COMPARES;
		i->at = 0;
		schedule(i, 0);
	}
}

static void begin_pruning(struct hw_importer *i)
{
	i->stage = PRUNES;
	i->at = i->q.prune ? 0 : SIZE_MAX;
	schedule(i, 0);
}

static void on_job(void *arg)
{
	struct hw_importer *i = arg;
	if (i->m->no_memory)
		end_without_memory(i);
	else if (i->stage == READS)
		on_read(i);
	else if (check_wrong(i))
		begin_pruning(i);
}

static void on_impatient(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	clear(arg);
}

/* --- comparing and pruning, in slices --- */

static bool slice_is_over(struct hw_importer *i, int64_t begun_ns)
{
	return i->c->ops->now(i->c->arg).mono.ns - begun_ns > SLICE_NS;
}

/* The table's entry of a row; zeroed: there is none. */
static struct hw_expected_view stored(const struct hw_importer *i, const struct hw_expected *e, size_t row)
{
	const struct hw_import_row *r = &i->m->rows[row];
	uint32_t k = hw_expected_find(e, r->id, r->id_len);
	return k == HW_NIL ? (struct hw_expected_view){0} : hw_expected_at(e, k);
}

static void compare_row(struct hw_importer *i, const struct hw_expected *e)
{
	struct hw_expected_view v = stored(i, e, i->at);
	hw_import_compare(i->m, i->at, v.text.text, v.text.len, v.source, v.since_ms);
}

static void compare(struct hw_importer *i, const struct hw_expected *e)
{
	int64_t begun = i->c->ops->now(i->c->arg).mono.ns;
	for (; i->at < i->m->n; i->at++) {
		if (i->at % 64 == 63 && slice_is_over(i, begun)) {
			compare_row(i, e);
			i->at++;
			schedule(i, 0);
			return;
		}
		compare_row(i, e);
	}
	start_job(i, MERGES, merge);
}

/* Adds an entry to those that are removed. */
static int add_gone(struct hw_importer *i, const struct hw_expected_view *v)
{
	char json[HW_ENTRY_JSON_MAX];
	struct hw_expected_entry entry;
	if (i->n_gone == i->gone_cap) {
		size_t cap = 2 * i->gone_cap + 256;
		struct gone *gone = realloc(i->gone, cap * sizeof(*gone));
		if (!gone)
			return -ENOMEM;
		i->gone = gone;
		i->gone_cap = cap;
	}
	hw_inventory_read(v, &entry);
	size_t n = hw_entry_print(&entry, json, sizeof(json));
	char *text = malloc(v->id.len + n);
	if (!text)
		return -ENOMEM;
	memcpy(text, v->id.text, v->id.len);
	memcpy(text + v->id.len, json, n);
	i->gone[i->n_gone++] = (struct gone){text, v->id.len, n};
	return 0;
}

static void refuse_prune(struct hw_importer *i)
{
	char why[300];
	hw_print(why, sizeof(why),
	         "the file does not name %zu of the %zu ids of source '%.100s': it may be cut off, so nothing was "
	         "imported; force removes them",
	         i->n_gone, i->of_source, i->q.source);
	end(i, HTTP_BADREQUEST, why);
}

/* Notes the id if it is to be removed. */
static int prune_one(struct hw_importer *i, const struct hw_expected *e, uint32_t k)
{
	if (!hw_expected_is_used(e, k))
		return 0;
	struct hw_expected_view v = hw_expected_at(e, k);
	if (strcmp(v.source, i->m->source) != 0)
		return 0;
	i->of_source++;
	return hw_import_names(i->m, v.id.text, v.id.len) ? 0 : add_gone(i, &v);
}

static void begin_applying(struct hw_importer *i)
{
	i->same = i->m->n_same;
	if (i->q.dry_run) {
		i->added = i->m->n_new;
		i->changed = i->m->n_differ;
		i->removed = i->n_gone;
		end(i, HTTP_OK, NULL);
		return;
	}
	i->stage = APPLIES;
	i->at = 0;
	schedule(i, 0);
}

static void prune(struct hw_importer *i, const struct hw_expected *e)
{
	int64_t begun = i->c->ops->now(i->c->arg).mono.ns;
	while (i->at < hw_expected_bound(e)) {
		if (prune_one(i, e, (uint32_t)i->at++) < 0) {
			end_without_memory(i);
			return;
		}
		if (i->at % 64 == 0 && slice_is_over(i, begun)) {
			schedule(i, 0);
			return;
		}
	}
	if (i->n_gone > PRUNE_ALWAYS && i->n_gone * PRUNE_SHARE > i->of_source && !i->q.force)
		refuse_prune(i);
	else
		begin_applying(i);
}

/* --- applying --- */

static bool is_written(const struct hw_import_row *r)
{
	return r->state == HW_IMPORT_NEW || r->state == HW_IMPORT_DIFFERS;
}

/* Fills the items of a call, and sets call->to. Returns their number. */
static unsigned fill(struct hw_importer *i, struct call *call, struct hw_inventory_item *items)
{
	unsigned n = 0;
	size_t k = call->from;
	for (; call->removes && k < i->n_gone && n < HW_INVENTORY_ITEMS; k++) {
		const struct gone *g = &i->gone[k];
		items[n++] = (struct hw_inventory_item){.kind = HW_INVENTORY_REMOVE,
		                                        .id = {g->text, g->id_len},
		                                        .entry = {g->text + g->id_len, g->json_len}};
	}
	for (; !call->removes && k < i->m->n && k - call->from < ROWS_MAX && n < HW_INVENTORY_ITEMS; k++) {
		const struct hw_import_row *r = &i->m->rows[k];
		if (!is_written(r))
			continue;
		items[n++] = (struct hw_inventory_item){
			.kind = HW_INVENTORY_SET, .id = {r->id, r->id_len}, .entry = {r->json, r->json_len}};
		i->last_row = k + 1;
	}
	call->to = k;
	return n;
}

static void on_applied(void *arg, int rc, const uint8_t *results, unsigned n)
{
	struct call *call = arg;
	struct hw_importer *i = call->importer;
	i->in_flight--;
	if (i->orphaned) {
		if (i->in_flight == 0)
			free(i);
		return;
	}
	call->state = rc == -EAGAIN ? AGAIN : IDLE;
	if (rc == 0)
		i->retries = 0;
	else if (rc != -EAGAIN)
		i->failed = rc;
	for (unsigned k = 0; rc == 0 && k < n; k++) {
		i->added += results[k] == HW_INVENTORY_ADDED;
		i->changed += results[k] == HW_INVENTORY_CHANGED;
		i->same += results[k] == HW_INVENTORY_SAME;
		i->removed += results[k] == HW_INVENTORY_REMOVED;
	}
	if (!event_pending(i->turn, EV_TIMEOUT, NULL))
		schedule(i, rc == -EAGAIN ? RETRY_MS : 0);
}

/* Sends a call. If the store has no room or no memory now, the call is sent again later (AGAIN). After any other
 * error the import fails. */
static void send_call(struct hw_importer *i, struct call *call)
{
	struct hw_inventory_item items[HW_INVENTORY_ITEMS];
	unsigned n = fill(i, call, items);
	call->state = IDLE;
	if (n == 0)
		return;
	int rc = i->c->ops->inventory_apply(i->c->arg, i->m->source, items, n, on_applied, call);
	if (rc == 0) {
		call->state = SENT;
		i->in_flight++;
	} else if ((rc == -EAGAIN || rc == -ENOMEM) && ++i->retries <= RETRIES_MAX) {
		call->state = AGAIN;
	} else {
		i->failed = rc;
	}
}

static void end_applying(struct hw_importer *i)
{
	if (i->failed == -EIO)
		end(i, HTTP_INTERNAL,
		    "the store refused a part of the import; the log of heartwheeld says why: repeat the import then");
	else if (i->failed)
		end(i, HTTP_SERVUNAVAIL,
		    "the store cannot be reached, and a part of the import may be written: repeat the import");
	else
		i->stage = SETTLES;
	i->retries = 0;
	if (i->stage == SETTLES)
		schedule(i, 0);
}

/* The next call that can be sent; NULL: none now. */
static struct call *next_call(struct hw_importer *i)
{
	struct call *idle = NULL;
	for (size_t k = 0; k < CALLS_MAX; k++) {
		if (i->calls[k].state == AGAIN)
			return &i->calls[k];
		if (i->calls[k].state == IDLE)
			idle = &i->calls[k];
	}
	if (!idle || (i->at == i->m->n && i->gone_at == i->n_gone))
		return NULL;
	idle->importer = i;
	idle->removes = i->at == i->m->n;
	idle->from = idle->removes ? i->gone_at : i->at;
	return idle;
}

static void apply(struct hw_importer *i)
{
	struct call *call = i->failed ? NULL : next_call(i);
	if (!call) {
		if (i->in_flight == 0)
			end_applying(i);
		return;
	}
	bool again = call->state == AGAIN;
	send_call(i, call);
	if (!again && call->removes)
		i->gone_at = call->to;
	else if (!again)
		i->at = call->to;
	schedule(i, call->state == AGAIN ? RETRY_MS : 0);
}

/* Ends the import when the table has the last row and the last removal. The table follows the store a little later, so
 * a client that gets the answer earlier would not yet see what it has imported. If another client changes the last
 * row's id meanwhile, the table never has this row. So the wait also ends after SETTLE_TURNS. */
static void settle(struct hw_importer *i, const struct hw_expected *e)
{
	const struct gone *g = i->n_gone > 0 ? &i->gone[i->n_gone - 1] : NULL;
	bool there = !g || hw_expected_find(e, g->text, g->id_len) == HW_NIL;
	if (i->last_row > 0) {
		struct hw_expected_view v = stored(i, e, i->last_row - 1);
		there &= hw_import_is_stored(i->m, i->last_row - 1, v.text.text, v.text.len, v.source);
	}
	if (there || ++i->retries > SETTLE_TURNS)
		end(i, HTTP_OK, NULL);
	else
		schedule(i, SETTLE_MS);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct hw_importer *i = arg;
	const struct hw_expected *e = i->c->ops->expected(i->c->arg);
	(void)fd, (void)what;
	if (i->stage == COMPARES)
		compare(i, e);
	else if (i->stage == PRUNES)
		prune(i, e);
	else if (i->stage == APPLIES)
		apply(i);
	else if (i->stage == SETTLES)
		settle(i, e);
}

/* --- requests --- */

static int begin(struct hw_importer *i, const struct hw_import_query *q)
{
	const char **groups = hw_inventory_groups(i->c);
	int64_t now_ms = i->c->ops->now(i->c->arg).wall_ms;
	uint8_t key[16];
	if (groups && getrandom(key, sizeof(key), 0) == sizeof(key))
		i->m = hw_import_new(q->format, q->source, now_ms, groups, key);
	free(groups);
	if (!i->job)
		i->job = hw_job_new(i->c->base, on_job, i);
	if (!i->cleaner)
		i->cleaner = hw_job_new(i->c->base, on_cleaned, i);
	if (!i->turn)
		i->turn = event_new(i->c->base, -1, 0, on_turn, i);
	if (!i->patience)
		i->patience = event_new(i->c->base, -1, 0, on_impatient, i);
	if (!i->part)
		i->part = evbuffer_new();
	i->next_part = 1;
	i->bytes = 0;
	return i->m && i->job && i->turn && i->patience && i->part ? 0 : -ENOMEM;
}

/* Whether the request is the next part of the import that waits for a part, or can begin a new import. If not, answers
 * the request. */
static bool admit(struct hw_importer *i, struct evhttp_request *req, const struct hw_import_query *q)
{
	char why[160];
	bool continues = i->stage == WAITS && *q->id && strcmp(q->id, i->q.id) == 0 && q->part != 1;
	if (i->stage != FREE && !(i->stage == WAITS && *q->id && strcmp(q->id, i->q.id) == 0)) {
		hw_reply_error(req, 409, "another import runs: try again when it has ended");
		return false;
	}
	if (continues && q->part == i->next_part && q->format == i->q.format && strcmp(q->source, i->q.source) == 0)
		return true;
	if (continues || (*q->id && q->part != 1)) {
		hw_print(why, sizeof(why),
		         i->stage == WAITS
		                 ? "part %u of this import is expected, with the source and type of part 1"
		                 : "this import is not known; it was dropped after %u s without a part: begin "
		                   "again with part 1",
		         i->stage == WAITS ? i->next_part : PART_WAIT_S);
		hw_reply_error(req, 409, why);
		return false;
	}
	if (i->stage == WAITS) /* part 1 again: the client repeats the import */
		clear(i);
	if (begin(i, q) == 0)
		return true;
	if (i->turn && i->patience)
		clear(i);
	hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
	return false;
}

void hw_importer_put(struct hw_importer *i, struct evhttp_request *req, const struct hw_import_query *q)
{
	if (!admit(i, req, q))
		return;
	i->q = *q;
	i->next_part++;
	event_del(i->patience);
	await(i, req);
	i->bytes += evbuffer_get_length(evhttp_request_get_input_buffer(req));
	if (i->bytes > BYTES_MAX)
		end(i, HTTP_ENTITYTOOLARGE, "an import has at most 1 GiB: nothing was imported");
	else if (evbuffer_add_buffer(i->part, evhttp_request_get_input_buffer(req)) != 0)
		end_without_memory(i);
	else
		start_job(i, READS, read_part);
}

struct hw_importer *hw_importer_new(struct hw_control *c)
{
	struct hw_importer *i = calloc(1, sizeof(*i));
	if (i)
		i->c = c;
	return i;
}

void hw_importer_free(struct hw_importer *i)
{
	if (!i)
		return;
	if (i->m)
		i->m->cancelled = true;
	hw_job_free(i->job);
	if (i->turn && i->patience)
		clear(i);
	hw_job_free(i->cleaner);
	if (i->turn)
		event_free(i->turn);
	if (i->patience)
		event_free(i->patience);
	if (i->part)
		evbuffer_free(i->part);
	i->orphaned = true;
	if (i->in_flight == 0)
		free(i);
}
