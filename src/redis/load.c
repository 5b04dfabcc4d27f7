/* SPDX-License-Identifier: MIT */
/*
 * Loads the devices of the store.
 *
 * SCAN reads the names of all state hashes, a page at a time, and pipelined HMGETs read the hashes of each page. Then
 * HSCAN reads the outbox; by then the devices of its entries are known. The next SCAN is sent before the HMGETs of a
 * page, so that Redis, which does nearly all of the work, is never idle.
 *
 * After a lost connection, or an error that concerns Redis as a whole, the load starts over. SCAN may also return a key
 * twice. In both cases a device is reported twice, which the owner allows.
 *
 * Cost: at most one SCAN and the HMGETs of two pages are in flight. A turn of the loop handles what one read()
 * returned.
 */
#include <errno.h>
#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/bounds.h"
#include "heartwheel/entry.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "heartwheel/topic.h"
#include "redis/inner.h"

#define PAGE_TEXT     "500"
#define AGAIN_SECONDS 1

enum field {
	F_STATE,
	F_SINCE,
	F_LAST_SEEN,
	F_OWN_TIMEOUT,
	F_REASON,
	F_GROUP,
	F_SOURCE,
	F_SEQ,
	F_ONCE,
	F_WATCHED,
	F_FORM,
	F_PARENT,
	F_GAPS,
	F_CAPTURES,
	F_REPORTED, /* followed by hw_report_fields[] */
	FIELDS = F_REPORTED + HW_REPORT_FIELDS
};

static const char *field_name(int f)
{
	static const char *const names[F_REPORTED] = {"state", "since",  "last_seen", "own_timeout", "reason",
	                                              "group", "source", "seq",       "once",        "watched",
	                                              "form",  "parent", "gaps",      "captures"};
	return f < F_REPORTED ? names[f] : hw_report_fields[f - F_REPORTED].name;
}

/* An HMGET in flight, for the hash of this device. */
struct asked {
	struct hw_redis *r;
	bool again; /* of hw_redis_read_device() */
	size_t id_len;
	char id[];
};

static void scan(struct hw_redis *r);

/* --- from hash to device ----------------------------------------------------------------------------------------- */

static const redisReply *field(const redisReply *reply, enum field f)
{
	const redisReply *e = reply->element[f];
	return e->type == REDIS_REPLY_STRING ? e : NULL;
}

/* Returns a decimal number from 0 to max, or `none` if the text is anything else. */
static int64_t number(const redisReply *e, int64_t max, int64_t none)
{
	int64_t n = 0;
	if (!e || e->len == 0 || e->len > 18)
		return none;
	for (size_t i = 0; i < e->len; i++) {
		if (e->str[i] < '0' || e->str[i] > '9')
			return none;
		n = n * 10 + (e->str[i] - '0');
	}
	return n <= max ? n : none;
}

static unsigned real(const redisReply *e, double *to, unsigned bit)
{
	char *end;
	if (!e || e->len == 0 || e->len > 40)
		return 0;
	*to = strtod(e->str, &end);
	return end == e->str + e->len && isfinite(*to) ? bit : 0;
}

/* Accepts only a text that a device could have reported, because the text will be published in the retained status. */
static unsigned text(const redisReply *e, char **to, unsigned bit)
{
	char plain[HW_REPORT_TEXT_MAX];
	if (!e || e->len > sizeof(plain))
		return 0;
	for (size_t i = 0; i < e->len; i++)
		plain[i] = e->str[i] == '+' || e->str[i] == '#' ? '.' : e->str[i];
	if (e->len && !hw_id_valid(plain, e->len)) /* valid UTF-8 without control characters */
		return 0;
	*to = strndup(e->str, e->len);
	return *to ? bit : 0;
}

/* `data` must be JSON; the payload decoder checks that. */
static unsigned json(const redisReply *e, char **to, unsigned bit)
{
	struct hw_payload p;
	if (!e || e->len == 0 || e->len > HW_REPORT_DATA_MAX)
		return 0;
	struct hw_json j;
	size_t len;
	hw_json_begin_alloc(&j);
	hw_json_open(&j, '{');
	hw_json_raw(&j, "data", e->str, e->len);
	hw_json_close(&j, '}');
	char *object = hw_json_end_alloc(&j, &len);
	if (!object)
		return 0;
	hw_payload_decode(&p, object, len);
	bool good = !p.malformed && (p.report.has & HW_HAS_DATA) && p.report.data;
	if (good) {
		*to = p.report.data;
		p.report.data = NULL;
		p.report.has &= ~(unsigned)HW_HAS_DATA;
	}
	hw_payload_fini(&p);
	free(object);
	return good ? bit : 0;
}

static void read_report(const redisReply *reply, struct hw_report *p)
{
	p->has = 0;
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		const redisReply *e = field(reply, (enum field)(F_REPORTED + k));
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			p->has |= real(e, hw_report_number(p, k), 1U << k);
		else if (hw_report_fields[k].kind == HW_REPORT_TEXT)
			p->has |= text(e, hw_report_string(p, k), 1U << k);
		else
			p->has |= json(e, hw_report_string(p, k), 1U << k);
	}
}

/* The form as items.c writes it; 0: none. */
static uint64_t read_form(const redisReply *e)
{
	uint64_t form;
	return e && hw_entry_form(e->str, e->len, &form) ? form : 0;
}

static unsigned read_source(const redisReply *e)
{
	if (e && strcmp(e->str, "key") == 0)
		return HW_SOURCE_KEY;
	if (e && strcmp(e->str, "both") == 0)
		return HW_SOURCE_MQTT | HW_SOURCE_KEY;
	return HW_SOURCE_MQTT;
}

/* Returns a decimal number above 0, or 0 if the text is anything else. A number that is too large becomes INT64_MAX,
 * which the core corrects. */
static uint64_t seq_of(const redisReply *e)
{
	int64_t seq = number(e, INT64_MAX, 0);
	bool digits = e && e->len > 0 && e->len <= 40 && strspn(e->str, "0123456789") == e->len;
	return seq == 0 && digits && e->str[0] != '0' ? INT64_MAX : (uint64_t)seq;
}

/* Whether the hash is a device's record, which has a state or a seq. One of the two may be malformed: another
 * program may have written it, or the stream has refused an entry (transition.lua). The core then replaces it. All
 * other fields have defaults. */
static bool read_device(const redisReply *reply, struct hw_stored *s)
{
	const redisReply *state = field(reply, F_STATE), *reason = field(reply, F_REASON),
			 *group = field(reply, F_GROUP);
	if (!state && !field(reply, F_SEQ))
		return false;
	s->seq = seq_of(field(reply, F_SEQ));
	if (!state || hw_state_parse(state->str, &s->state) != 0)
		s->state = HW_STATE_PROVISIONAL;
	if (!reason || hw_reason_parse(reason->str, &s->reason) != 0)
		s->reason = s->state == HW_STATE_ONLINE ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT;
	s->since_ms = number(field(reply, F_SINCE), INT64_MAX, 0);
	s->last_seen_ms = number(field(reply, F_LAST_SEEN), INT64_MAX, 0);
	const redisReply *own = field(reply, F_OWN_TIMEOUT);
	s->own_timeout_ms = own ? number(own, HW_TIMEOUT_MAX_MS, -1) : 0;
	s->group = group ? group->str : NULL;
	s->source = read_source(field(reply, F_SOURCE));
	s->form = read_form(field(reply, F_FORM));
	s->once = number(field(reply, F_ONCE), 1, 0) == 1;
	const redisReply *parent = field(reply, F_PARENT);
	s->parents = parent ? parent->str : NULL;
	const redisReply *gaps = field(reply, F_GAPS);
	s->gaps = gaps ? gaps->str : NULL;
	const redisReply *captures = field(reply, F_CAPTURES);
	s->captures = captures ? captures->str : NULL;
	return true;
}

/* Returns for how long no node was watching the fleet before this run began. */
static int64_t down_ms(const struct hw_redis *r)
{
	int64_t ms = r->started_wall_ms - r->sight_record.newest_ms;
	return r->sight_record.newest_ms && ms > 0 ? ms : 0;
}

/* Counts an unusable record or outbox entry. */
static void skip(struct hw_redis *r, const char *id, size_t len)
{
	if (r->load.unusable++ == 0)
		hw_bounds_text(r->load.first_unusable, sizeof(r->load.first_unusable), id, len);
}

static void take_device(struct hw_redis *r, const struct asked *a, const redisReply *reply, bool known_by_stream)
{
	struct hw_stored s = {.id = a->id, .id_len = a->id_len, .known_by_stream = known_by_stream};
	bool any = false;
	for (size_t i = 0; i < FIELDS; i++)
		any |= reply->element[i]->type != REDIS_REPLY_NIL;
	if (!any)
		return; /* deleted since the SCAN */
	if (!hw_id_valid(a->id, a->id_len) || !read_device(reply, &s)) {
		skip(r, a->id, a->id_len);
		return;
	}
	read_report(reply, &s.report);
	s.down_ms = down_ms(r);
	s.ahead_ms = r->load.ahead_ms;
	const redisReply *watched = field(reply, F_WATCHED);
	s.gone_ms = watched ? hw_watched_gone_ms(r, watched->str, watched->len, s.seq) : 0;
	r->load.devices++;
	r->ops->on_device(r->arg, &s);
	hw_report_fini(&s.report);
}

/* --- pages ------------------------------------------------------------------------------------------------------- */

/* Schedules a new load after AGAIN_SECONDS. */
static void give_up(struct hw_redis *r)
{
	struct timeval second = {AGAIN_SECONDS, 0};
	r->load.stage = HW_LOAD_WANTED;
	r->load.unarmed = event_add(r->load.again, &second) != 0;
}

static void finish(struct hw_redis *r)
{
	r->load.stage = HW_LOAD_DONE;
	r->ops->on_loaded(r->arg, r->load.devices, r->load.unusable, r->load.first_unusable, true);
	hw_plan_sweep(r); /* compares all devices, because keys may have expired or been deleted while no monitor ran */
	hw_plan_pump(r);
}

/* Starts the next stage of the load, or ends the load, when every request is answered. */
static void go_on(struct hw_redis *r)
{
	struct hw_load *l = &r->load;
	if (l->scanning || l->waiting > 0)
		return;
	if (l->stage == HW_LOAD_AGAIN) {
		l->stage = HW_LOAD_DONE; /* if the outbox could not be read, it is read again after the next connect */
		r->published.removes_old = false;
		if (l->next)
			hw_redis_load(r);
		return;
	}
	if (!l->failed && l->stage == HW_LOAD_STATES) {
		l->stage = HW_LOAD_OUTBOX;
		l->failed |= !r->ops->owner && hw_redis_read_published(r) != 0;
		scan(r);
	} else if (!l->failed) {
		finish(r);
	}
	if (l->failed)
		give_up(r);
}

/* Whether Redis as a whole fails, not only this hash. */
static bool cannot_serve(struct hw_redis *r, const redisReply *reply)
{
	return !reply || (reply->type == REDIS_REPLY_ERROR && hw_trouble_is_global(hw_refusal_trouble(r, reply->str)));
}

static void on_fields(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked *a = arg;
	struct hw_redis *r = a->r;
	const redisReply *reply = answer;
	(void)ac;
	if (reply) {
		hw_redis_link_got(&r->link);
		if (reply->type == REDIS_REPLY_ARRAY && reply->elements == FIELDS)
			take_device(r, a, reply, false);
		else if (cannot_serve(r, reply))
			r->load.failed = true;
		else
			skip(r, a->id, a->id_len);
	}
	free(a);
	if (reply && --r->load.waiting == 0)
		go_on(r);
}

/* Sends HMGET for a hash. `fn` gets a struct asked, which it must free. */
static int ask_fields(struct hw_redis *r, redisCallbackFn *fn, struct hw_id key, struct hw_id id, bool again)
{
	const char *argv[2 + FIELDS] = {"HMGET", key.text};
	size_t len[2 + FIELDS] = {5, key.len};
	struct asked *a = malloc(sizeof(*a) + id.len);
	if (!a)
		return -ENOMEM;
	a->r = r;
	a->again = again;
	a->id_len = id.len;
	memcpy(a->id, id.text, id.len);
	for (size_t i = 0; i < FIELDS; i++) {
		argv[2 + i] = field_name((int)i);
		len[2 + i] = strlen(field_name((int)i));
	}
	int rc = hw_redis_link_command(&r->link, fn, a, 2 + FIELDS, argv, len);
	if (rc != 0)
		free(a);
	return rc;
}

static int ask(struct hw_redis *r, const redisReply *key)
{
	struct hw_id id;
	if (!hw_keys_state_id(&r->keys, key->str, key->len, &id.text, &id.len))
		return 0;
	int rc = ask_fields(r, on_fields, (struct hw_id){key->str, key->len}, id, false);
	r->load.waiting += rc == 0;
	return rc;
}

static void on_one(redisAsyncContext *ac, void *answer, void *arg)
{
	struct asked *a = arg;
	struct hw_redis *r = a->r;
	const redisReply *reply = answer;
	(void)ac;
	r->load.reads--;
	r->load.again_reads -= a->again;
	if (reply)
		hw_redis_link_got(&r->link);
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == FIELDS)
		take_device(r, a, reply, !a->again);
	else if (cannot_serve(r, reply) && r->ops->on_read_device_failed)
		r->ops->on_read_device_failed(r->arg);
	free(a);
}

int hw_redis_read_device(struct hw_redis *r, const char *id, size_t id_len, bool again)
{
	if (!r->up)
		return -ENOTCONN;
	if (r->load.reads >= HW_READ_DEVICES_MAX)
		return -ENOBUFS;
	size_t len = hw_keys_device(&r->keys, HW_KEY_STATE, id, id_len, r->sink.key);
	int rc = ask_fields(r, on_one, (struct hw_id){r->sink.key, len}, (struct hw_id){id, id_len}, again);
	r->load.reads += rc == 0;
	r->load.again_reads += rc == 0 && again;
	return rc;
}

bool hw_redis_is_reading_again(const struct hw_redis *r)
{
	return r->load.again_reads > 0;
}

static bool of_outbox(const struct hw_load *l)
{
	return l->stage == HW_LOAD_OUTBOX || l->stage == HW_LOAD_AGAIN;
}

static void take_page(struct hw_redis *r, const redisReply *page)
{
	for (size_t i = 0; i < page->elements; i++)
		if (page->element[i]->type == REDIS_REPLY_STRING && ask(r, page->element[i]) != 0)
			r->load.failed = true;
}

static void on_removed(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	(void)ac;
	if (answer)
		hw_redis_link_got(&r->link);
}

/* Takes an entry with the status of a device, as earlier versions wrote them. */
static void take_old(struct hw_redis *r, const redisReply *id)
{
	const char *argv[] = {"HDEL", r->keys.outbox, id->str};
	const size_t len[] = {4, strlen(r->keys.outbox), id->len};
	uint64_t epoch;
	if (!r->published.removes_old) {
		r->published.has_old = true;
		r->ops->on_outbox(r->arg, id->str, id->len, true);
	} else if (hw_call_owner_epoch(r, id->str, id->len, &epoch)) {
		(void)hw_redis_link_command(&r->link, on_removed, r, 3, argv, len);
	}
}

static void take_outbox(struct hw_redis *r, const redisReply *page)
{
	for (size_t i = 0; i + 1 < page->elements; i += 2) {
		const redisReply *id = page->element[i], *payload = page->element[i + 1];
		if (id->type != REDIS_REPLY_STRING || payload->type != REDIS_REPLY_STRING ||
		    !hw_id_valid(id->str, id->len))
			skip(r, id->str ? id->str : "", id->str ? id->len : 0);
		else if (payload->len > 0)
			take_old(r, id);
		else
			r->ops->on_outbox(r->arg, id->str, id->len, false);
	}
}

static bool is_page(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_ARRAY &&
	       reply->element[0]->len < sizeof(((struct hw_load *)0)->cursor);
}

static void on_page(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	struct hw_load *l = &r->load;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	l->scanning = false;
	if (is_page(reply)) {
		snprintf(l->cursor, sizeof(l->cursor), "%s", reply->element[0]->str);
		if (strcmp(l->cursor, "0") != 0 && !l->failed)
			scan(r);
		if (of_outbox(l))
			take_outbox(r, reply->element[1]);
		else
			take_page(r, reply->element[1]);
	} else {
		const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "ERR malformed answer to SCAN";
		/* If the outbox is a key of another type, the devices are loaded nevertheless. */
		if (hw_refusal_trouble(r, error) != HW_TROUBLE_WRONGTYPE)
			l->failed = true;
		snprintf(l->cursor, sizeof(l->cursor), "0");
	}
	go_on(r);
}

static void scan(struct hw_redis *r)
{
	struct hw_load *l = &r->load;
	bool outbox = of_outbox(l);
	const char *fields[] = {"HSCAN", r->keys.outbox, l->cursor, "COUNT", PAGE_TEXT};
	const char *states[] = {"SCAN", l->cursor, "MATCH", r->keys.state_match, "COUNT", PAGE_TEXT};
	const char **argv = outbox ? fields : states;
	int argc = outbox ? 5 : 6;
	size_t len[6];
	for (int i = 0; i < argc; i++)
		len[i] = strlen(argv[i]);
	l->scanning = hw_redis_link_command(&r->link, on_page, r, argc, argv, len) == 0;
	l->failed |= !l->scanning;
}

/* Handles the answer with Redis' clock. Without the right to read Redis' clock, times are compared with the clock of
 * this machine. */
static void on_clock(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	            reply->element[0]->type == REDIS_REPLY_STRING;
	struct hw_now now = hw_clock_now();
	int64_t redis_ms = good ? number(reply->element[0], INT32_MAX, 0) * 1000 : 0;
	r->load.ahead_ms = redis_ms > now.wall_ms ? redis_ms - now.wall_ms : 0;
	if (redis_ms > 0)
		hw_watched_clock(r, now, redis_ms);
}

int hw_load_ask_clock(struct hw_redis *r)
{
	const char *argv[] = {"TIME"};
	const size_t len[] = {4};
	return hw_redis_link_command(&r->link, on_clock, r, 1, argv, len);
}

static void begin(struct hw_redis *r, bool again)
{
	struct hw_load *l = &r->load;
	l->stage = again ? HW_LOAD_AGAIN : HW_LOAD_STATES;
	snprintf(l->cursor, sizeof(l->cursor), "0");
	l->waiting = 0;
	l->failed = false;
	l->devices = l->unusable = 0;
	l->first_unusable[0] = '\0';
	l->failed |= hw_load_ask_clock(r) != 0;
	scan(r);
	if (l->failed && again)
		l->stage = HW_LOAD_DONE;
	else if (l->failed)
		give_up(r);
}

/* --- the start of a load ----------------------------------------------------------------------------------------- */

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct hw_redis *r = arg;
	(void)fd, (void)what;
	if (r->up && r->load.stage == HW_LOAD_WANTED)
		begin(r, false);
}

void hw_load_up(struct hw_redis *r)
{
	if (r->load.stage == HW_LOAD_WANTED || r->load.stage == HW_LOAD_DONE)
		begin(r, r->load.stage == HW_LOAD_DONE);
}

void hw_load_lost(struct hw_redis *r)
{
	if (hw_load_pending(r))
		r->load.stage = HW_LOAD_WANTED;
	else if (r->load.stage == HW_LOAD_AGAIN)
		r->load.stage = HW_LOAD_DONE;
	r->published.removes_old = false;
	r->load.next = false;
	event_del(r->load.again);
}

bool hw_load_pending(const struct hw_redis *r)
{
	return r->load.stage == HW_LOAD_WANTED || r->load.stage == HW_LOAD_STATES || r->load.stage == HW_LOAD_OUTBOX ||
	       r->load.next;
}

void hw_redis_load(struct hw_redis *r)
{
	struct timeval now = {0, 0};
	r->load.next = r->load.stage == HW_LOAD_AGAIN;
	if (r->load.next)
		return; /* its pages would be taken for those of the new load */
	r->load.stage = HW_LOAD_WANTED;
	if (r->up)
		r->load.unarmed = event_add(r->load.again, &now) != 0;
}

/* Reads the sight records of the other nodes again, before the load. If the connection is lost meanwhile, the records
 * are read after the reconnect. */
void hw_redis_load_late(struct hw_redis *r)
{
	r->started_wall_ms = hw_clock_now().wall_ms;
	r->sight_record.read = r->sight_record.searched = false;
	r->sight_record.saw_ms = r->sight_record.newest_ms = 0;
	r->load.stage = HW_LOAD_WANTED;
	if (r->up)
		hw_sight_record_read(r, hw_redis_load);
}

void hw_load_tick(struct hw_redis *r)
{
	if (r->load.unarmed)
		event_active(r->load.again, EV_TIMEOUT, 0);
	r->load.unarmed = false;
}

int hw_load_init(struct hw_redis *r)
{
	r->load.again = event_new(r->base, -1, 0, on_again, r);
	return r->load.again ? 0 : -ENOMEM;
}

void hw_load_fini(struct hw_redis *r)
{
	if (r->load.again)
		event_free(r->load.again);
}
