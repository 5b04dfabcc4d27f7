/* SPDX-License-Identifier: MIT */
/*
 * See message.h: reads messages. The members of an object are found once, with a table of the known names. Then each
 * member is read with its type and its limits. Cost: three passes over the bytes, and one allocation of twice their
 * size.
 */
#include "tasks/mqtt/message.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "heartwheel/topic.h"
#include "stream/id.h"

#define ACTION_MAX 255
#define TOPIC_MAX  1024
#define LATEST_S   253402300799.0 /* the end of the year 9999 */
#define LONGEST_S  (400.0 * 86400)

/* --- members ------------------------------------------------------------------------------------------------------ */

enum name {
	ACTION,
	AFTER,
	AT,
	ERROR,
	EXP,
	FORCE,
	FROM,
	GROUP,
	HOLD,
	IDS,
	MSG_ID,
	PAYLOAD,
	PREFIX,
	QOS,
	RECEIVER,
	REPLY,
	RETAIN,
	RUN,
	SENDER,
	TASK,
	TIME,
	TIMEOUT,
	TOPIC,
	VALUE,
	NAMES
};

static const char *const names[NAMES] = {
	[ACTION] = "action", [AFTER] = "after",     [AT] = "at",           [ERROR] = "error", [EXP] = "exp",
	[FORCE] = "force",   [FROM] = "from",       [GROUP] = "group",     [HOLD] = "hold",   [IDS] = "ids",
	[MSG_ID] = "msg_id", [PAYLOAD] = "payload", [PREFIX] = "prefix",   [QOS] = "qos",     [RECEIVER] = "receiver",
	[RETAIN] = "retain", [RUN] = "run",         [SENDER] = "sender",   [TIME] = "time",   [TOPIC] = "topic",
	[VALUE] = "value",   [REPLY] = "reply",     [TIMEOUT] = "timeout", [TASK] = "task"};

/* A message that is being read: its members as raw JSON, and the memory for unquoted strings. */
struct reading {
	struct hw_text found[NAMES];
	char *memory; /* end of the part in use */
	const char *why;
};

static bool is_named(const struct hw_json_member *m, const char *name)
{
	char key[32];
	if (m->key_len == strlen(name))
		return memcmp(m->key, name, m->key_len) == 0;
	/* The name may be written with escapes. */
	if (m->key_len + 2 > sizeof(key) || !memchr(m->key, '\\', m->key_len))
		return false;
	int n = hw_json_unquote(m->key - 1, m->key_len + 2, key);
	return n >= 0 && (size_t)n == strlen(name) && memcmp(key, name, (size_t)n) == 0;
}

static void collect(struct reading *r, struct hw_text object)
{
	struct hw_json_member m;
	size_t at = 0;
	memset(r->found, 0, sizeof(r->found));
	while (hw_json_object_next(object.at, object.len, &at, &m))
		for (enum name k = ACTION; k < NAMES; k++)
			if (!r->found[k].at && is_named(&m, names[k])) {
				r->found[k] = (struct hw_text){m.value, m.value_len};
				break;
			}
}

static int wrong(struct reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return -EINVAL;
}

static bool is_there(const struct reading *r, enum name k)
{
	return r->found[k].at && r->found[k].at[0] != 'n'; /* null is no value */
}

/* Unquotes a string into `memory`. Returns -EINVAL if the value is no string. */
static int unquote(struct reading *r, struct hw_text raw, struct hw_text *out)
{
	if (raw.len < 2 || raw.at[0] != '"')
		return -EINVAL;
	int n = hw_json_unquote(raw.at, raw.len, r->memory);
	if (n < 0)
		return -EINVAL;
	*out = (struct hw_text){r->memory, (size_t)n};
	r->memory += n;
	return 0;
}

/* Reads an optional string; without one *out is empty. */
static int take_text(struct reading *r, enum name k, struct hw_text *out, const char *why)
{
	*out = (struct hw_text){"", 0};
	if (is_there(r, k) && unquote(r, r->found[k], out) != 0)
		return wrong(r, why);
	return 0;
}

/* Reads an optional number of seconds, from 0 to `most`, as ms. If there is none, *out keeps its value. */
static int take_seconds(struct reading *r, enum name k, double most, int64_t *out, const char *why)
{
	char text[64], *end;
	struct hw_text raw = r->found[k];
	if (!is_there(r, k))
		return 0;
	if (raw.len >= sizeof(text) || (raw.at[0] != '-' && (raw.at[0] < '0' || raw.at[0] > '9')))
		return wrong(r, why);
	memcpy(text, raw.at, raw.len);
	text[raw.len] = '\0';
	double s = strtod(text, &end);
	if (*end || !isfinite(s) || s < 0 || s > most)
		return wrong(r, why);
	*out = llround(s * 1000);
	return 0;
}

static int take_bool(struct reading *r, enum name k, bool *out, const char *why)
{
	if (!is_there(r, k))
		return 0;
	if (r->found[k].at[0] != 't' && r->found[k].at[0] != 'f')
		return wrong(r, why);
	*out = r->found[k].at[0] == 't';
	return 0;
}

static int take_qos(struct reading *r, unsigned *out)
{
	struct hw_text raw = r->found[QOS];
	if (!is_there(r, QOS))
		return 0;
	if (raw.len != 1 || raw.at[0] < '0' || raw.at[0] > '2')
		return wrong(r, "qos must be 0, 1 or 2");
	*out = (unsigned)(raw.at[0] - '0');
	return 0;
}

/* --- valid values ------------------------------------------------------------------------------------------------- */

bool hw_task_name_is_valid(struct hw_text name)
{
	return hw_id_valid(name.at, name.len) && !memchr(name.at, '/', name.len);
}

bool hw_task_msg_id_is_valid(struct hw_text t)
{
	static const char may[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	for (size_t k = 0; k < t.len; k++)
		if (!memchr(may, t.at[k], sizeof(may) - 1))
			return false;
	return t.len >= 1 && t.len <= HW_TASK_MSG_ID_MAX;
}

/* Checks a topic with hw_id_valid(), in pieces of at most HW_ID_MAX bytes. The inner loop cuts between whole
 * characters. */
static bool is_topic(struct hw_text t)
{
	if (t.len == 0 || t.len > TOPIC_MAX || t.at[0] == '$')
		return false;
	for (size_t from = 0, n; from < t.len; from += n) {
		n = t.len - from < HW_ID_MAX ? t.len - from : HW_ID_MAX;
		while (from + n < t.len && ((unsigned char)t.at[from + n] & 0xc0) == 0x80)
			n--;
		if (n == 0 || !hw_id_valid(t.at + from, n))
			return false;
	}
	return true;
}

static int take_msg_id(struct reading *r, struct hw_text *out)
{
	static const char why[] = "msg_id must be 1 to 64 characters of A-Z a-z 0-9 . _ -";
	if (!is_there(r, MSG_ID))
		return wrong(r, "msg_id is missing");
	if (unquote(r, r->found[MSG_ID], out) != 0 || !hw_task_msg_id_is_valid(*out)) {
		*out = (struct hw_text){"", 0};
		return wrong(r, why);
	}
	return 0;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static int read_publication(struct reading *r, struct hw_text *topic, unsigned *qos, bool *retain)
{
	if (take_text(r, TOPIC, topic, "topic must be a string") != 0)
		return -EINVAL;
	if (!is_topic(*topic))
		return wrong(r, "topic cannot be published on");
	return take_qos(r, qos) != 0 || take_bool(r, RETAIN, retain, "retain must be true or false") != 0 ? -EINVAL : 0;
}

static int read_addressee(struct reading *r, struct hw_task_submission *t)
{
	if (is_there(r, TOPIC)) {
		if (is_there(r, RECEIVER) || is_there(r, ACTION))
			return wrong(r, "topic excludes receiver and action");
		return read_publication(r, &t->topic, &t->qos, &t->retain);
	}
	if (take_text(r, RECEIVER, &t->receiver, "receiver must be a string") != 0 ||
	    take_text(r, ACTION, &t->action, "action must be a string") != 0)
		return -EINVAL;
	if (!hw_task_name_is_valid(t->receiver))
		return wrong(r, "receiver is missing, or not a receiver's name");
	if (t->action.len > ACTION_MAX || !hw_id_valid(t->action.at, t->action.len))
		return wrong(r, "action must be 1 to 255 bytes without control characters, + and #");
	return 0;
}

static int read_times(struct reading *r, struct hw_task_submission *t)
{
	bool hold = true;
	t->at_ms = t->after_ms = t->exp_ms = t->run_ms = -1;
	if (is_there(r, AT) && is_there(r, AFTER))
		return wrong(r, "at and after exclude each other");
	if (take_seconds(r, AT, LATEST_S, &t->at_ms, "at must be a time in Unix seconds") != 0 ||
	    take_seconds(r, AFTER, LONGEST_S, &t->after_ms, "after must be a number of seconds, at most 366 days") !=
	            0 ||
	    take_seconds(r, EXP, LATEST_S, &t->exp_ms, "exp must be a time in Unix seconds") != 0 ||
	    take_seconds(r, RUN, LONGEST_S, &t->run_ms, "run must be a number of seconds within the limit") != 0 ||
	    take_bool(r, HOLD, &hold, "hold must be true or false") != 0)
		return -EINVAL;
	t->no_hold = !hold;
	return 0;
}

/* Reads the body of a task. The payload for a device is passed on unchanged. If a payload for a topic is a string, the
 * bytes of the string are published. */
static int read_body(struct reading *r, struct hw_task_submission *t)
{
	t->body = r->found[PAYLOAD];
	if (t->topic.len && t->body.at && t->body.at[0] == '"')
		return unquote(r, t->body, &t->body) == 0 ? 0 : wrong(r, "payload must be a text");
	if (!t->body.at)
		t->body = t->topic.len ? (struct hw_text){"", 0} : (struct hw_text){"null", 4};
	return 0;
}

static int read_task(struct reading *r, struct hw_request *q)
{
	struct hw_task_submission *t = &q->task;
	t->msg_id = q->msg_id;
	if (read_addressee(r, t) != 0 || read_times(r, t) != 0)
		return -EINVAL;
	return read_body(r, t);
}

static int read_other(struct reading *r, struct hw_request *q)
{
	if (take_msg_id(r, &q->of) != 0)
		return -EINVAL;
	return take_bool(r, FORCE, &q->force, "force must be true or false");
}

/* Reads an array of strings, each a valid id, or `*` for all devices. */
static int read_ids(struct reading *r, struct hw_request *q)
{
	struct hw_text raw = r->found[IDS];
	if (!is_there(r, IDS))
		return 0;
	if (raw.at[0] != '[')
		return wrong(r, "ids must be an array");
	q->ids = calloc(HW_FOLLOW_IDS_MAX, sizeof(*q->ids));
	if (!q->ids)
		return -ENOMEM;
	size_t at = 0;
	struct hw_json_member m;
	while (hw_json_array_next(raw.at, raw.len, &at, &m)) {
		struct hw_text *id = &q->ids[q->n_ids];
		if (q->n_ids == HW_FOLLOW_IDS_MAX)
			return wrong(r, "ids may have at most 1000 elements");
		if (unquote(r, (struct hw_text){m.value, m.value_len}, id) != 0 || !hw_id_valid(id->at, id->len))
			return wrong(r, "each element of ids must be a device id");
		q->n_ids++;
	}
	return q->n_ids ? 0 : wrong(r, "ids is empty");
}

/* Whether a text can be the value of `from`: "new", "start", or an id of the stream. */
static bool is_offset(struct hw_text t)
{
	struct hw_stream_id id;
	return (t.len == 3 && memcmp(t.at, "new", 3) == 0) || (t.len == 5 && memcmp(t.at, "start", 5) == 0) ||
	       (t.len < HW_STREAM_ID_TEXT && hw_stream_id_parse_loose(t.at, t.len, &id) == 0);
}

static int read_follow(struct reading *r, struct hw_request *q)
{
	if (take_text(r, GROUP, &q->group, "group must be a string") != 0 ||
	    take_text(r, PREFIX, &q->prefix, "prefix must be a string") != 0 ||
	    take_text(r, FROM, &q->from, "from must be a string") != 0)
		return -EINVAL;
	if (q->group.len > HW_ID_MAX || q->prefix.len > HW_ID_MAX)
		return wrong(r, "group or prefix is too long");
	if (q->from.len && !is_offset(q->from))
		return wrong(r, "from must be new, start or the id of an event");
	return read_ids(r, q);
}

/* A will without a topic removes the present one. */
static int read_will(struct reading *r, struct hw_request *q, struct hw_text payload)
{
	if (!is_there(r, TOPIC))
		return 0;
	q->raw = payload;
	return read_publication(r, &q->topic, &q->qos, &q->retain);
}

static int read_action(struct reading *r, struct hw_request *q, struct hw_text action)
{
	static const char *const actions[HW_REQUEST_ACTIONS] = {
		[HW_REQUEST_DELIVER] = "deliver", [HW_REQUEST_CANCEL] = "cancel",     [HW_REQUEST_QUERY] = "query",
		[HW_REQUEST_FOLLOW] = "follow",   [HW_REQUEST_UNFOLLOW] = "unfollow", [HW_REQUEST_WILL] = "will"};
	for (q->action = HW_REQUEST_DELIVER; q->action < HW_REQUEST_ACTIONS; q->action++)
		if (strlen(actions[q->action]) == action.len && memcmp(actions[q->action], action.at, action.len) == 0)
			return 0;
	q->action = HW_REQUEST_DELIVER;
	return wrong(r, "action must be deliver, cancel, query, follow, unfollow or will");
}

static int read_payload(struct reading *r, struct hw_request *q)
{
	struct hw_text payload = r->found[PAYLOAD];
	bool may_lack =
		q->action == HW_REQUEST_FOLLOW || q->action == HW_REQUEST_UNFOLLOW || q->action == HW_REQUEST_WILL;
	if (!is_there(r, PAYLOAD) && may_lack)
		return 0;
	if (!is_there(r, PAYLOAD) || payload.at[0] != '{')
		return wrong(r, "payload must be an object");
	collect(r, payload);
	switch (q->action) {
	case HW_REQUEST_DELIVER:
		return read_task(r, q);
	case HW_REQUEST_CANCEL:
	case HW_REQUEST_QUERY:
		return read_other(r, q);
	case HW_REQUEST_WILL:
		return read_will(r, q, payload);
	case HW_REQUEST_FOLLOW:
		return read_follow(r, q);
	default:
		return 0;
	}
}

static int read_request(struct reading *r, struct hw_request *q)
{
	struct hw_text action;
	/* The msg_id and the sender are read first, because errors are reported to this sender. */
	int rc = take_msg_id(r, &q->msg_id);
	if (take_text(r, SENDER, &q->sender, "sender must be a string") != 0)
		return -EINVAL;
	if (q->sender.len && !hw_task_name_is_valid(q->sender)) {
		q->sender = (struct hw_text){"", 0};
		return wrong(r, "sender must be a sender's name");
	}
	if (rc != 0 || take_text(r, ACTION, &action, "action must be a string") != 0 ||
	    take_seconds(r, TIME, LATEST_S, &q->task.time_ms, "time must be Unix seconds") != 0)
		return -EINVAL;
	if (read_action(r, q, action) != 0)
		return -EINVAL;
	return read_payload(r, q);
}

static int begin(struct reading *r, struct hw_request *q, const void *bytes, size_t len, const char **why)
{
	*q = (struct hw_request){.sender = {"", 0}, .msg_id = {"", 0}};
	if (len > HW_TASK_BYTES_MAX) {
		*why = "the message is larger than 64 KiB";
		return -EINVAL;
	}
	if (len == 0 || !hw_json_object_valid(bytes, len)) {
		*why = "the message is not a JSON object";
		return -EINVAL;
	}
	q->memory = r->memory =
		malloc(2 * len); /* twice the length: for the members of the message, and those of its payload */
	if (!q->memory)
		return -ENOMEM;
	collect(r, (struct hw_text){bytes, len});
	return 0;
}

int hw_request_read(struct hw_request *q, const void *bytes, size_t len, const char **why)
{
	struct reading r = {.why = NULL};
	int rc = begin(&r, q, bytes, len, why);
	if (rc)
		return rc;
	rc = read_request(&r, q);
	*why = r.why;
	return rc;
}

int hw_request_read_task(struct hw_request *q, const void *bytes, size_t len, const char **why)
{
	struct reading r = {.why = NULL};
	int rc = begin(&r, q, bytes, len, why);
	if (rc)
		return rc;
	if (is_there(&r, MSG_ID))
		rc = take_msg_id(&r, &q->msg_id);
	if (!rc)
		rc = take_seconds(&r, TIME, LATEST_S, &q->task.time_ms, "time must be Unix seconds");
	if (!rc)
		rc = read_task(&r, q);
	*why = r.why;
	return rc;
}

void hw_request_fini(struct hw_request *q)
{
	free(q->memory);
	free(q->ids);
	q->memory = NULL;
	q->ids = NULL;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static int read_call(struct reading *r, struct hw_call_request *q)
{
	struct hw_task_submission t = {.body = {"", 0}};
	if (!is_there(r, TOPIC))
		return wrong(r, "topic is missing");
	if (read_publication(r, &t.topic, &q->qos, &t.retain) != 0 ||
	    take_text(r, REPLY, &q->reply, "reply must be a string") != 0)
		return -EINVAL;
	if (t.retain)
		return wrong(r, "a call must not be retained");
	if (!is_topic(q->reply))
		return wrong(r, "reply must be a topic without wildcards");
	q->timeout_ms = 10000;
	if (take_seconds(r, TIMEOUT, 50, &q->timeout_ms, "timeout must be 0 to 50 seconds") != 0)
		return -EINVAL;
	q->topic = t.topic;
	int rc = read_body(r, &t);
	q->payload = t.body;
	return rc;
}

int hw_call_request_read(struct hw_call_request *q, const void *bytes, size_t len, const char **why)
{
	struct reading r = {.why = NULL};
	struct hw_request whole;
	int rc = begin(&r, &whole, bytes, len, why);
	*q = (struct hw_call_request){.qos = 1, .memory = whole.memory};
	if (rc)
		return rc;
	rc = read_call(&r, q);
	*why = r.why;
	return rc;
}

void hw_call_request_fini(struct hw_call_request *q)
{
	free(q->memory);
	q->memory = NULL;
}

/* --- responses ---------------------------------------------------------------------------------------------------- */

int hw_response_read(struct hw_response *p, const void *bytes, size_t len, enum hw_task_answer_kind kind,
                     const char **why)
{
	char memory[HW_RESPONSE_ID_MAX];
	struct reading r = {.memory = memory};
	struct hw_text id;
	*p = (struct hw_response){.value = {"", 0}};
	*why = "the message must be a JSON object of at most 64 KiB";
	if (len == 0 || len > HW_TASK_BYTES_MAX || !hw_json_object_valid(bytes, len))
		return -EINVAL;
	collect(&r, (struct hw_text){bytes, len});
	*why = "msg_id must be a string of at most 64 bytes";
	if (!is_there(&r, MSG_ID) || r.found[MSG_ID].len > sizeof(memory) || unquote(&r, r.found[MSG_ID], &id) != 0)
		return -EINVAL;
	*why = NULL;
	if (kind == HW_ANSWER_COMPLETE && r.found[VALUE].at)
		p->value = r.found[VALUE];
	else if (kind == HW_ANSWER_FAILED && r.found[ERROR].at)
		p->value = r.found[ERROR];
	return hw_task_id_parse(&p->task, id.at, id.len) ? 0 : -ENOENT;
}

int hw_response_msg_id(const void *bytes, size_t len, char memory[HW_RESPONSE_ID_MAX], struct hw_text *id)
{
	struct reading r = {.memory = memory};
	if (len == 0 || len > HW_TASK_BYTES_MAX || !hw_json_object_valid(bytes, len))
		return -EINVAL;
	collect(&r, (struct hw_text){bytes, len});
	if (!is_there(&r, MSG_ID) || r.found[MSG_ID].len > HW_RESPONSE_ID_MAX)
		return -EINVAL;
	return unquote(&r, r.found[MSG_ID], id);
}

/* --- messages among nodes ----------------------------------------------------------------------------------------- */

/* Reads only the members that are needed to follow a task. The other members may be missing or may differ from ours,
 * because other clients define them. */
int hw_overheard_read(struct hw_overheard *s, const void *bytes, size_t len)
{
	struct reading r = {.why = NULL};
	struct hw_request whole;
	const char *why;
	struct hw_text task;
	struct hw_task_id id;
	int rc = begin(&r, &whole, bytes, len, &why);
	*s = (struct hw_overheard){.sender = {"", 0}, .msg_id = {"", 0}, .action = {"", 0}, .exp_ms = -1};
	s->memory = whole.memory;
	if (rc || (rc = take_msg_id(&r, &s->msg_id)))
		return rc;
	if (take_text(&r, SENDER, &s->sender, "") != 0)
		s->sender = (struct hw_text){"", 0};
	if (take_text(&r, ACTION, &s->action, "") != 0 || s->action.len > ACTION_MAX ||
	    !hw_id_valid(s->action.at, s->action.len))
		s->action = (struct hw_text){"", 0};
	(void)take_seconds(&r, EXP, LATEST_S, &s->exp_ms, "");
	if (s->exp_ms == 0)
		s->exp_ms = -1; /* 0 means no exp: some clients always send the member */
	s->is_ours = take_text(&r, TASK, &task, "") == 0 && hw_task_id_parse(&id, task.at, task.len);
	return 0;
}

void hw_overheard_fini(struct hw_overheard *s)
{
	free(s->memory);
	s->memory = NULL;
}

/* --- topics ------------------------------------------------------------------------------------------------------- */

enum hw_task_topic hw_task_topic_read(const char *root, const char *topic, size_t len, struct hw_text *name,
                                      struct hw_text *last)
{
	static const char *const words[HW_TOPIC_NONE] = {"pending", "ack", "complete", "failed"};
	size_t root_len = strlen(root);
	const char *end = topic + len;
	*name = *last = (struct hw_text){"", 0};
	if (len <= root_len + 1 || memcmp(topic, root, root_len) != 0 || topic[root_len] != '/')
		return HW_TOPIC_NONE;
	const char *at = topic + root_len + 1, *slash = memchr(at, '/', (size_t)(end - at));
	if (!slash || slash == at)
		return HW_TOPIC_NONE;
	*name = (struct hw_text){at, (size_t)(slash - at)};
	at = slash + 1;
	slash = memchr(at, '/', (size_t)(end - at));
	size_t word_len = (size_t)((slash ? slash : end) - at);
	if (slash)
		*last = (struct hw_text){slash + 1, (size_t)(end - slash - 1)};
	if (slash && !hw_task_name_is_valid(*last))
		return HW_TOPIC_NONE;
	for (enum hw_task_topic k = HW_TOPIC_PENDING; k < HW_TOPIC_NONE; k++)
		if (strlen(words[k]) == word_len && memcmp(words[k], at, word_len) == 0)
			return k;
	return HW_TOPIC_NONE;
}
