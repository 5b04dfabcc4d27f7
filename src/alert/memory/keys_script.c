/* SPDX-License-Identifier: MIT */
/*
 * See keys.h. Does the work of the scripts in ../state/scripts, each in a function with the script's name.
 * tests/system/test_alert_keys.py compares these functions with the scripts in a real Redis. The file `places` of the
 * scripts says at which positions the arguments are. Only this program makes the arguments, so they are not checked.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alert/memory/keys_priv.h"
#include "alert/state/places.h"
#include "alert/state/script.h"

#define EVENTS_KEPT "1000" /* entries of device:incident_events; each new state file has all of them */
#define CLOSED_KEPT 1000   /* closed incidents, likewise */
#define REPLAY_KEPT 1000   /* read entries of device:events; after a start, they show which devices flap */

const char *const hw_alert_script_texts[HW_ALERT_SCRIPTS] = {[HW_ALERT_COMMIT] = hw_alert_script_commit_text,
                                                             [HW_ALERT_RENEW] = hw_alert_script_renew_text,
                                                             [HW_ALERT_TAKE] = hw_alert_script_take_text,
                                                             [HW_ALERT_TRIM] = hw_alert_script_trim_text};

/* A call: KEYS and ARGV begin with 1, as in Lua. */
struct call {
	struct hw_keys *k;
	const char *const *keys, *const *argv;
	size_t n; /* arguments */
	FILE *out;
};

#define DO(call, ...) hw_keys_do((call)->k, (const char *const[]){__VA_ARGS__, NULL})

static void answer(const struct call *c, const char *verdict, const char *text)
{
	hw_keys_answer_count(c->out, 2);
	hw_keys_answer_text(c->out, verdict);
	hw_keys_answer_text(c->out, text ? text : "");
}

static void now(char text[24], int64_t *seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*seconds = t.tv_sec;
	snprintf(text, 24, "%" PRId64, (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static const char *text_of(const struct call *c, const char *key, const char *field)
{
	return hw_keys_field(c->k, key, field);
}

/* Whether a text is there and equals `other`. */
static bool is(const char *text, const char *other)
{
	return text && strcmp(text, other) == 0;
}

static int64_t number_of(const char *text)
{
	return text ? strtoll(text, NULL, 10) : 0;
}

/* --- take, renew -------------------------------------------------------------------------------------------------- */

static void take(const struct call *c)
{
	const char *alert = c->keys[HW_AT_LEASED_ALERT];
	char epoch_text[24], holder[256], at[24];
	int64_t seconds;
	now(at, &seconds);
	int64_t epoch = number_of(text_of(c, alert, "epoch")), own = number_of(c->argv[HW_AT_TAKE_EPOCH]);
	epoch = epoch > own ? epoch + 1 : own + 1;
	snprintf(epoch_text, sizeof(epoch_text), "%" PRId64, epoch > seconds ? epoch : seconds);
	snprintf(holder, sizeof(holder), "%s %s", c->argv[HW_AT_TAKE_NODE], c->argv[HW_AT_TAKE_RUN]);
	hw_keys_answer_count(c->out, 6);
	hw_keys_answer_text(c->out, "TAKEN");
	hw_keys_answer_text(c->out, epoch_text);
	hw_keys_answer_text(c->out, text_of(c, alert, "holder") ? "1" : "0");
	const char *commits = text_of(c, alert, "commits");
	hw_keys_answer_text(c->out, commits ? commits : "");
	hw_keys_answer_text(c->out, text_of(c, alert, "clean") ? "1" : "0");
	hw_keys_answer_text(c->out, at);
	DO(c, "HSET", alert, "epoch", epoch_text, "holder", holder);
	DO(c, "HDEL", alert, "clean");
	c->k->must_store = true;
}

static void renew(const struct call *c)
{
	const char *alert = c->keys[HW_AT_LEASED_ALERT], *has = text_of(c, alert, "holder");
	const char *verdict = "OK", *text = text_of(c, alert, "commits");
	char holder[256], at[24];
	int64_t seconds;
	now(at, &seconds);
	snprintf(holder, sizeof(holder), "%s %s", c->argv[HW_AT_TAKE_NODE], c->argv[HW_AT_TAKE_RUN]);
	if (!has) {
		verdict = "GONE";
		text = "";
	} else if (!is(has, holder) || !is(text_of(c, alert, "epoch"), c->argv[HW_AT_TAKE_EPOCH])) {
		verdict = "FENCED";
		text = has;
	} else if (is(c->argv[HW_AT_TAKE_RELEASE], "1")) {
		DO(c, "HSET", alert, "clean", "1");
		c->k->must_store = true;
	}
	hw_keys_answer_count(c->out, 3);
	hw_keys_answer_text(c->out, verdict);
	hw_keys_answer_text(c->out, text ? text : "");
	hw_keys_answer_text(c->out, at);
}

/* --- commit: items ------------------------------------------------------------------------------------------------ */

struct names {
	char incident[512], members[600];
};

static void names_of(const struct call *c, const char *id, struct names *n)
{
	snprintf(n->incident, sizeof(n->incident), "%.300sincident:%.100s", c->argv[HW_AT_COMMIT_PREFIX], id);
	snprintf(n->members, sizeof(n->members), "%s:members", n->incident);
}

static const char *other_key(const struct call *c, const char *kind, const char *name, char key[512])
{
	snprintf(key, 512, "%.300s%s:%.100s", c->argv[HW_AT_COMMIT_PREFIX], kind, name);
	return key;
}

/* HSET KEY with `n` names and values. */
static void hset(const struct call *c, const char *key, const char *const *pairs, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		DO(c, "HSET", key, pairs[i], pairs[i + 1]);
}

static size_t put_incident(const struct call *c, const char *const *a)
{
	size_t n = (size_t)number_of(a[HW_AT_INCIDENT_N]);
	struct names of;
	names_of(c, a[HW_AT_INCIDENT_ID], &of);
	hset(c, of.incident, a + HW_AT_INCIDENT_NEXT, n);
	DO(c, "ZADD", c->keys[HW_AT_KEYED_INCIDENTS], a[HW_AT_INCIDENT_OPENED], a[HW_AT_INCIDENT_ID]);
	if (!is(a[HW_AT_INCIDENT_CLOSED], "0"))
		DO(c, "ZADD", c->keys[HW_AT_KEYED_CLOSED], a[HW_AT_INCIDENT_CLOSED], a[HW_AT_INCIDENT_ID]);
	return HW_AT_INCIDENT_NEXT + n;
}

static size_t put_ended(const struct call *c, const char *const *a)
{
	DO(c, "ZREM", c->keys[HW_AT_KEYED_INCIDENTS], a[HW_AT_ENDED_ID]);
	return HW_AT_ENDED_NEXT;
}

static size_t put_dropped(const struct call *c, const char *const *a)
{
	struct names of;
	names_of(c, a[HW_AT_DROPPED_ID], &of);
	DO(c, "DEL", of.incident, of.members);
	DO(c, "ZREM", c->keys[HW_AT_KEYED_INCIDENTS], a[HW_AT_DROPPED_ID]);
	DO(c, "ZREM", c->keys[HW_AT_KEYED_CLOSED], a[HW_AT_DROPPED_ID]);
	return HW_AT_DROPPED_NEXT;
}

static size_t put_sent(const struct call *c, const char *const *a)
{
	struct names of;
	char field[128];
	names_of(c, a[HW_AT_SENT_ID], &of);
	snprintf(field, sizeof(field), "to:%s", a[HW_AT_SENT_RECEIVER]);
	DO(c, "HSET", of.incident, field, a[HW_AT_SENT_VALUE]);
	return HW_AT_SENT_NEXT;
}

static size_t put_joined(const struct call *c, const char *const *a)
{
	struct names of;
	names_of(c, a[HW_AT_JOINED_ID], &of);
	DO(c, "HSET", of.members, a[HW_AT_JOINED_DEVICE], a[HW_AT_JOINED_VALUE]);
	return HW_AT_JOINED_NEXT;
}

static size_t put_left(const struct call *c, const char *const *a)
{
	struct names of;
	names_of(c, a[HW_AT_LEFT_ID], &of);
	DO(c, "HDEL", of.members, a[HW_AT_LEFT_DEVICE]);
	return HW_AT_LEFT_NEXT;
}

static size_t put_receiver(const struct call *c, const char *const *a)
{
	char key[512];
	DO(c, "HSET", other_key(c, "receiver", a[HW_AT_RECEIVER_NAME], key), "n", a[HW_AT_RECEIVER_NUMBER], "from_ms",
	   a[HW_AT_RECEIVER_FROM], "sending", a[HW_AT_RECEIVER_SENDING]);
	return HW_AT_RECEIVER_NEXT;
}

static size_t put_silence(const struct call *c, const char *const *a)
{
	size_t n = (size_t)number_of(a[HW_AT_SILENCE_N]);
	char key[512];
	hset(c, other_key(c, "silence", a[HW_AT_SILENCE_ID], key), a + HW_AT_SILENCE_NEXT, n);
	DO(c, "SADD", c->keys[HW_AT_KEYED_SILENCES], a[HW_AT_SILENCE_ID]);
	return HW_AT_SILENCE_NEXT + n;
}

static size_t put_unsilence(const struct call *c, const char *const *a)
{
	char key[512];
	DO(c, "DEL", other_key(c, "silence", a[HW_AT_UNSILENCE_ID], key));
	DO(c, "SREM", c->keys[HW_AT_KEYED_SILENCES], a[HW_AT_UNSILENCE_ID]);
	return HW_AT_UNSILENCE_NEXT;
}

static size_t put_event(const struct call *c, const char *const *a)
{
	const char *words[32] = {"XADD",      c->keys[HW_AT_KEYED_EVENTS],
	                         "MAXLEN",    "~",
	                         EVENTS_KEPT, "*",
	                         "id",        a[HW_AT_EVENT_ID],
	                         "what",      a[HW_AT_EVENT_WHAT],
	                         "at_ms",     a[HW_AT_EVENT_AT],
	                         "by",        a[HW_AT_EVENT_BY],
	                         "receiver",  a[HW_AT_EVENT_RECEIVER]};
	const char *const about[] = {"kind",   a[HW_AT_EVENT_KIND],   "group",    a[HW_AT_EVENT_GROUP],
	                             "device", a[HW_AT_EVENT_DEVICE], "sentence", a[HW_AT_EVENT_SENTENCE]};
	size_t n = 16;
	for (size_t i = 0; i < sizeof(about) / sizeof(*about); i += 2)
		if (*about[i + 1]) {
			words[n++] = about[i];
			words[n++] = about[i + 1];
		}
	hw_keys_run(c->k, n, words, NULL);
	return HW_AT_EVENT_NEXT;
}

static size_t put_planned(const struct call *c, const char *const *a)
{
	DO(c, "XADD", c->keys[HW_AT_KEYED_EVENTS], "MAXLEN", "~", EVENTS_KEPT, "*", "what", "planned", "device",
	   a[HW_AT_PLANNED_DEVICE], "from_ms", a[HW_AT_PLANNED_FROM], "to_ms", a[HW_AT_PLANNED_TO], "silence",
	   a[HW_AT_PLANNED_SILENCE]);
	return HW_AT_PLANNED_NEXT;
}

/* Stores an offset, and removes entries of that stream that are long before it. */
static size_t put_offset(const struct call *c, const char *const *a)
{
	char field[64], key[512], least[HW_STREAM_ID_TEXT];
	struct hw_stream_id at = {0, 0};
	snprintf(field, sizeof(field), "at:%.40s", a[HW_AT_OFFSET_STREAM]);
	DO(c, "HSET", c->keys[HW_AT_KEYED_ALERT], field, a[HW_AT_OFFSET_AT]);
	snprintf(key, sizeof(key), "%.300s%.40s", c->argv[HW_AT_COMMIT_PREFIX], a[HW_AT_OFFSET_STREAM]);
	const struct hw_key *o = hw_keys_find(c->k, key);
	(void)hw_stream_id_parse(a[HW_AT_OFFSET_AT], strlen(a[HW_AT_OFFSET_AT]), &at);
	size_t read = o && o->type == HW_KEY_STREAM ? hw_key_first_entry(o, at) : 0;
	if (read > REPLAY_KEPT)
		DO(c, "XTRIM", key, "MINID", hw_stream_id_print(o->entries[o->first + read - REPLAY_KEPT].id, least));
	return HW_AT_OFFSET_NEXT;
}

/* --- commit ------------------------------------------------------------------------------------------------------- */

/* Removes all incidents and silences, because the items of this commit write them again. */
static void remove_all(const struct call *c)
{
	const struct hw_key *o = hw_keys_find(c->k, c->keys[HW_AT_KEYED_INCIDENTS]);
	struct names of;
	char key[512];
	for (size_t i = 0; o && i < o->items.n; i++) {
		names_of(c, o->items.items[i].name, &of);
		DO(c, "DEL", of.incident, of.members);
	}
	o = hw_keys_find(c->k, c->keys[HW_AT_KEYED_SILENCES]);
	for (size_t i = 0; o && i < o->items.n; i++)
		DO(c, "DEL", other_key(c, "silence", o->items.items[i].name, key));
	DO(c, "DEL", c->keys[HW_AT_KEYED_INCIDENTS], c->keys[HW_AT_KEYED_SILENCES]);
}

static void put_items(const struct call *c)
{
	static const struct {
		char kind;
		size_t (*put)(const struct call *c, const char *const *a);
	} kinds[] = {{'A', put_offset},  {'D', put_dropped}, {'E', put_event},     {'I', put_incident},
	             {'J', put_joined},  {'L', put_left},    {'P', put_planned},   {'R', put_receiver},
	             {'S', put_silence}, {'T', put_sent},    {'U', put_unsilence}, {'Z', put_ended}};
	for (size_t a = HW_AT_COMMIT_NEXT; a <= c->n;) {
		size_t kind = 0;
		while (kind + 1 < sizeof(kinds) / sizeof(*kinds) && kinds[kind].kind != *c->argv[a + HW_AT_ITEM_KIND])
			kind++;
		c->k->must_store |= kinds[kind].put != put_offset;
		a += kinds[kind].put(c, c->argv + a);
	}
}

static void commit(const struct call *c)
{
	const char *alert = c->keys[HW_AT_KEYED_ALERT], *number = c->argv[HW_AT_COMMIT_NUMBER];
	const char *has = text_of(c, alert, "holder"), *commits = text_of(c, alert, "commits");
	bool rewrite = is(c->argv[HW_AT_COMMIT_REWRITE], "1");
	if (!has) {
		answer(c, "GONE", "");
	} else if (!is(has, c->argv[HW_AT_COMMIT_HOLDER]) ||
	           !is(text_of(c, alert, "epoch"), c->argv[HW_AT_COMMIT_EPOCH])) {
		answer(c, "FENCED", has);
	} else if (is(commits, number)) {
		answer(c, "OK", number);
	} else if (!rewrite && number_of(commits) != number_of(number) - 1) {
		answer(c, "BEHIND", commits);
	} else {
		if (rewrite)
			remove_all(c);
		put_items(c);
		DO(c, "HSET", alert, "commits", number);
		answer(c, "OK", number);
	}
}

/* --- trim --------------------------------------------------------------------------------------------------------- */

static void trim(const struct call *c)
{
	const char *alert = c->keys[HW_AT_KEYED_ALERT], *closed = c->keys[HW_AT_KEYED_CLOSED];
	if (!is(text_of(c, alert, "holder"), c->argv[HW_AT_TRIM_HOLDER]) ||
	    !is(text_of(c, alert, "epoch"), c->argv[HW_AT_TRIM_EPOCH])) {
		hw_keys_answer_int(c->out, -1);
		return;
	}
	const struct hw_key *o = hw_keys_find(c->k, closed);
	struct hw_key_member *m = hw_keys_sorted(c->k, o);
	int64_t all = m && o ? (int64_t)o->items.n : 0, limit = number_of(c->argv[HW_AT_TRIM_LIMIT]), n = 0;
	int64_t most = number_of(c->argv[HW_AT_TRIM_MOST]);
	double before = strtod(c->argv[HW_AT_TRIM_BEFORE], NULL);
	most = most > CLOSED_KEPT ? CLOSED_KEPT : most;
	while (n < all && n < limit && m[n].score <= before)
		n++;
	if (n == 0 && all > most)
		n = all - most < limit ? all - most : limit;
	for (int64_t i = 0; i < n; i++) {
		char id[128], key[512], members[600];
		snprintf(id, sizeof(id), "%s", m[i].name); /* ZREM frees the name */
		snprintf(key, sizeof(key), "%.300sincident:%s", c->argv[HW_AT_TRIM_PREFIX], id);
		snprintf(members, sizeof(members), "%s:members", key);
		DO(c, "ZREM", closed, id);
		DO(c, "ZREM", c->keys[HW_AT_KEYED_INCIDENTS], id);
		DO(c, "DEL", key, members);
	}
	free(m);
	hw_keys_answer_int(c->out, n);
}

/* --- the commands ------------------------------------------------------------------------------------------------- */

#define SHA_TEXT "%040d" /* a script's digest is its number */

void hw_keys_script(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	char sha[48];
	int s = 0;
	(void)k, (void)n;
	while (s < HW_ALERT_SCRIPTS && strcmp(hw_alert_script_texts[s], words[2]) != 0)
		s++;
	snprintf(sha, sizeof(sha), SHA_TEXT, s);
	hw_keys_answer_text(out, sha);
}

void hw_keys_evalsha(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	static void (*const scripts[])(const struct call *c) = {
		[HW_ALERT_COMMIT] = commit, [HW_ALERT_RENEW] = renew, [HW_ALERT_TAKE] = take, [HW_ALERT_TRIM] = trim};
	size_t n_keys = strtoull(words[2], NULL, 10);
	int s = atoi(words[1]);
	if (s < 0 || s >= HW_ALERT_SCRIPTS || n < 3 + n_keys) {
		if (out)
			fputs("-NOSCRIPT there is no such script\r\n", out);
		return;
	}
	const struct call c = {k, words + 2, words + 2 + n_keys, n - 3 - n_keys, out};
	scripts[s](&c);
}
