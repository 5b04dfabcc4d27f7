/* SPDX-License-Identifier: MIT */
/* The keyspace listener. See keyspace.h. */
#include "redis/keyspace.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "link/clock.h"
#include "link/link.h"
#include "link/trouble.h"
#include "redis/flags.h"
#include "redis/keys.h"
#include "redis/resync.h"
#include "redis/ttl_queries.h"

/* how often notify-keyspace-events is read: any client may change it */
#define FLAGS_EVERY_NS (5 * HW_NS_PER_S)

static const struct {
	const char *name;
	unsigned why;
	bool ours; /* our scripts cause it, too */
} events[HW_KEYSPACE_EVENTS] = {
	{"set", HW_KEY_WRITTEN, true},          {"expire", HW_KEY_TTL, true},
	{"del", HW_KEY_REMOVED, true},          {"expired", HW_KEY_EXPIRED, false},
	{"evicted", HW_KEY_EVICTED, false},     {"persist", HW_KEY_TTL, false},
	{"rename_to", HW_KEY_WRITTEN, false},   {"rename_from", HW_KEY_REMOVED, false},
	{"move_to", HW_KEY_WRITTEN, false},     {"move_from", HW_KEY_REMOVED, false},
	{"copy_to", HW_KEY_WRITTEN, false},     {"restore", HW_KEY_WRITTEN, false},
	{"append", HW_KEY_WRITTEN, false},      {"incrby", HW_KEY_WRITTEN, false},
	{"incrbyfloat", HW_KEY_WRITTEN, false}, {"setrange", HW_KEY_WRITTEN, false},
	{"setbit", HW_KEY_WRITTEN, false},
};

struct hw_keyspace {
	struct event_base *base;
	const struct hw_monitor *m;
	struct hw_redis *store;
	const struct hw_keyspace_ops *ops;
	void *arg;
	struct hw_keyspace_conf conf;
	bool active;
	struct hw_keys keys;
	char *self, channel[32]; /* prefix of the channels of notifications; the event's name follows */
	struct hw_redis_link ttl_link, hear_link;
	struct hw_ttl_queries queries;
	struct hw_resync resync;
	bool sees;       /* ttl_link works, and Redis serves */
	bool subscribed; /* to all channels */
	bool listening;  /* and messages are received */
	bool was_up;
	bool own; /* between '+' and '-': our own scripts are writing */
	unsigned confirmed;
	struct hw_mono asked; /* when the oldest message to itself that has not arrived was sent; 0: all have arrived */
	struct hw_mono flags_at;
	bool flags_wrong, flags_asked;
	char flags_wanted[HW_FLAGS_MAX];
	struct event *tick;
	char reported[512]; /* the last text that on_trouble() got about ttl_link or the flags */
	struct hw_keyspace_stats stats;
};

const char *hw_keyspace_event_name(unsigned place)
{
	return place < HW_KEYSPACE_EVENTS ? events[place].name : "unknown";
}

/* Reports a text, unless it was the last one reported. */
static void report(struct hw_keyspace *ks, const char *text)
{
	if (strcmp(ks->reported, text) == 0)
		return;
	snprintf(ks->reported, sizeof(ks->reported), "%s", text);
	ks->ops->on_trouble(ks->arg, text);
}

static void report_error(struct hw_keyspace *ks, const char *reply)
{
	char text[HW_TROUBLE_TEXT];
	hw_trouble_text(reply, text);
	report(ks, text);
}

/* A reply on ttl_link; NULL if the link is lost. */
static const redisReply *got(struct hw_keyspace *ks, const redisReply *reply)
{
	if (reply)
		hw_redis_link_got(&ks->ttl_link);
	return reply;
}

/* Whether the reply is no error. An error is reported. */
static bool got_without_error(struct hw_keyspace *ks, const redisReply *reply)
{
	if (got(ks, reply) && reply->type == REDIS_REPLY_ERROR)
		report_error(ks, reply->str);
	return reply && reply->type != REDIS_REPLY_ERROR;
}

static int command(struct hw_keyspace *ks, redisCallbackFn *fn, int argc, const char **argv)
{
	size_t len[8];
	for (int i = 0; i < argc; i++)
		len[i] = strlen(argv[i]);
	return hw_redis_link_command(&ks->ttl_link, fn, ks, argc, argv, len);
}

/* --- TTL queries -------------------------------------------------------------------------------------------------- */

static void on_answer(void *arg, unsigned why, const char *id, size_t len, int64_t ttl_ms)
{
	struct hw_keyspace *ks = arg;
	if (ks->active)
		ks->ops->on_key(ks->arg, why, id, len, ttl_ms);
}

static void on_error(void *arg, const char *reply)
{
	report_error(arg, reply);
}

/*
 * Called with the answer to the fence, which has read the sight record (device:monitor:NODE_ID) after the TTL queries.
 *
 * If Redis was emptied before the queries, the sight record is missing, or the sink has written a new one. In the
 * second case the sink has already called on_emptied(), or will call it when the write is answered. The fence waits for
 * that answer.
 */
static void on_fenced(void *arg, bool known, bool has_record)
{
	struct hw_keyspace *ks = arg;
	if (known && !has_record && ks->active)
		ks->ops->on_loss(ks->arg);
	hw_ttl_queries_fenced(&ks->queries, known);
}

static void on_record(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	const redisReply *reply = got(ks, answer);
	(void)ac;
	if (!reply || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_NIL))
		on_fenced(ks, false, false);
	else if (!hw_redis_is_writing_sight_record(ks->store))
		on_fenced(ks, true, reply->type == REDIS_REPLY_STRING || !hw_redis_has_sight_record(ks->store));
	else if (hw_redis_fence(ks->store, on_fenced, ks) != 0)
		on_fenced(ks, false, false);
}

static int fence(void *arg)
{
	struct hw_keyspace *ks = arg;
	const char *argv[] = {"GET", ks->keys.monitor};
	return command(ks, on_record, 2, argv);
}

static const struct hw_ttl_queries_ops queries_ops = {on_answer, on_error, fence},
				       unfenced_ops = {on_answer, on_error, NULL};

void hw_keyspace_check(struct hw_keyspace *ks, struct hw_ref ref)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(ks->m), ref);
	if (!d)
		return;
	struct hw_id id = hw_device_id(d);
	hw_ttl_queries_add(&ks->queries, 0, id.text, id.len);
}

/* --- notifications ------------------------------------------------------------------------------------------------ */

static bool is_online(const struct hw_keyspace *ks, const char *id, size_t len)
{
	const struct hw_registry *devices = hw_monitor_registry(ks->m);
	uint32_t i = hw_registry_find(devices, id, len);
	return i != HW_NIL && hw_device_state(hw_registry_at(devices, i)) == HW_STATE_ONLINE;
}

static void on_notification(struct hw_keyspace *ks, unsigned e, const char *key, size_t key_len)
{
	enum hw_device_key which;
	const char *id;
	size_t len;
	unsigned why = events[e].why;
	if (!hw_keys_device_id(&ks->keys, key, key_len, &which, &id, &len))
		return;
	ks->stats.notifications[e]++;
	if (ks->own && events[e].ours) {
		ks->stats.own++;
		return;
	}
	if (!ks->active)
		return; /* the resync after the load finds the change */
	if (which == HW_KEY_DISCONNECTED) {
		if (why & (HW_KEY_REMOVED | HW_KEY_EXPIRED))
			ks->ops->on_back(ks->arg, id, len);
		return;
	}
	/* A lost key matters only if the device is online. */
	bool lost = why & (HW_KEY_REMOVED | HW_KEY_EXPIRED | HW_KEY_EVICTED);
	if (lost && !is_online(ks, id, len))
		return;
	if ((why & HW_KEY_TTL) && !hw_resync_is_of_interest(ks->m, id, len))
		return;
	if (hw_ttl_queries_add(&ks->queries, why, id, len) != 0)
		hw_resync_want(&ks->resync, true);
}

static void begin_listening(struct hw_keyspace *ks)
{
	char text[400];
	ks->listening = true;
	ks->stats.reconnects += ks->was_up;
	ks->was_up = true;
	hw_redis_link_settled(&ks->hear_link);
	snprintf(text, sizeof(text), "receiving notifications of other programs' keys at %s", ks->hear_link.where);
	ks->flags_at.ns = 0;
	ks->ops->on_link(ks->arg, true, text);
	hw_resync_want(&ks->resync, false);
}

/* Handles a message on the channel of a node. '+' and '-' come from the node's scripts. Any other text is a time, which
 * this monitor sends to itself. Such a time never arrives between '+' and '-', because Redis runs a script alone. */
static void on_self(struct hw_keyspace *ks, const char *text, bool others)
{
	ks->own = text[0] == '+';
	if (text[0] == '+' || text[0] == '-' || others)
		return;
	int64_t now = hw_clock_mono().ns, sent = strtoll(text, NULL, 10);
	if (!ks->asked.ns || sent < ks->asked.ns || sent > now)
		return; /* not ours, or sent before a link was lost */
	ks->asked.ns = 0;
	ks->stats.lag_ns = now - sent;
	if (!ks->listening && ks->subscribed)
		begin_listening(ks);
}

static void on_published(struct hw_keyspace *ks, const char *channel, const redisReply *message)
{
	size_t head = strlen(ks->channel);
	/* Each other channel that is subscribed to belongs to a node. */
	if (strncmp(channel, ks->channel, head) != 0) {
		on_self(ks, message->str, strcmp(channel, ks->self) != 0);
		return;
	}
	for (unsigned e = 0; e < HW_KEYSPACE_EVENTS; e++)
		if (strcmp(channel + head, events[e].name) == 0) {
			on_notification(ks, e, message->str, message->len);
			return;
		}
}

static void ask_self(struct hw_keyspace *ks);

static void on_message(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&ks->hear_link);
	/* a message of a subscription by pattern has the pattern as an additional element */
	size_t n = reply->elements;
	if (reply->type != REDIS_REPLY_ARRAY || (n != 3 && n != 4) || reply->element[n - 2]->type != REDIS_REPLY_STRING)
		return;
	if (reply->element[n - 1]->type == REDIS_REPLY_STRING) {
		on_published(ks, reply->element[n - 2]->str, reply->element[n - 1]);
	} else if (++ks->confirmed == HW_KEYSPACE_EVENTS + 1) {
		ks->subscribed = true;
		ask_self(ks);
	}
}

/* --- each second -------------------------------------------------------------------------------------------------- */

static void on_asked(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	(void)ac;
	if (!got_without_error(ks, answer))
		ks->asked.ns = 0; /* no message was published */
}

/* Sends a message from this monitor to itself, which shows whether messages arrive, and how late. */
static void ask_self(struct hw_keyspace *ks)
{
	char text[24];
	const char *argv[] = {"PUBLISH", ks->self, text};
	if (!ks->sees || !ks->subscribed)
		return;
	struct hw_mono now = hw_clock_mono();
	snprintf(text, sizeof(text), "%" PRId64, now.ns);
	if (command(ks, on_asked, 3, argv) == 0 && !ks->asked.ns)
		ks->asked = now;
}

static void on_flags_set(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	const redisReply *reply = got(ks, answer);
	char text[HW_TROUBLE_TEXT + 200];
	(void)ac;
	if (!reply)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		snprintf(text, sizeof(text),
		         "cannot set notify-keyspace-events (%.200s): set it to '%s' in redis.conf and by CONFIG "
		         "SET, or allow [redis] username to: +config|set",
		         reply->str, ks->flags_wanted);
		report(ks, text);
		return;
	}
	report(ks, "added the missing flags to Redis' notify-keyspace-events");
	ks->reported[0] = '\0';
	ks->flags_at.ns = 0;
}

static void flags_missing(struct hw_keyspace *ks, const char *have)
{
	const char *want = ks->flags_wanted, *argv[] = {"CONFIG", "SET", "notify-keyspace-events", want};
	char text[400];
	ks->flags_wrong = true;
	if (ks->conf.configure) {
		command(ks, on_flags_set, 4, argv);
		return;
	}
	snprintf(text, sizeof(text),
	         "notify-keyspace-events is '%.40s': set it to '%s' in redis.conf and by CONFIG SET "
	         "notify-keyspace-events '%s', or set [keyspace] configure = yes",
	         have, want, want);
	report(ks, text);
}

static void on_flags(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	const redisReply *reply = got(ks, answer);
	char text[HW_TROUBLE_TEXT + 200];
	(void)ac;
	if (!reply)
		return;
	ks->flags_asked = false;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[1]->type != REDIS_REPLY_STRING) {
		snprintf(text, sizeof(text),
		         "cannot read notify-keyspace-events (%.200s): check that it has '" HW_FLAGS_NEEDED "'",
		         reply->type == REDIS_REPLY_ERROR ? reply->str : "no answer");
		report(ks, text);
		return;
	}
	bool was_wrong = ks->flags_wrong;
	ks->flags_wrong = false;
	if (hw_flags_complete(reply->element[1]->str, ks->flags_wanted)) {
		flags_missing(ks, reply->element[1]->str);
	} else if (was_wrong) {
		ks->reported[0] = '\0';
		hw_resync_want(&ks->resync, false); /* changes during that time caused no notification */
	}
}

static void check_flags(struct hw_keyspace *ks, struct hw_mono now)
{
	const char *argv[] = {"CONFIG", "GET", "notify-keyspace-events"};
	if (!ks->sees || ks->flags_asked || (ks->flags_at.ns && now.ns - ks->flags_at.ns < FLAGS_EVERY_NS))
		return;
	ks->flags_at = now;
	ks->flags_asked = command(ks, on_flags, 3, argv) == 0;
}

static void tick(struct hw_keyspace *ks)
{
	struct hw_mono now = hw_clock_mono();
	int64_t every_ms = ks->listening && !ks->flags_wrong ? ks->conf.resync_ms : ks->conf.resync_deaf_ms;
	hw_redis_link_tick(&ks->hear_link);
	hw_redis_link_tick(&ks->ttl_link);
	hw_ttl_queries_tick(&ks->queries);
	hw_resync_tick(&ks->resync);
	check_flags(ks, now);
	if (ks->asked.ns && now.ns - ks->asked.ns > ks->conf.deaf_ms * HW_NS_PER_MS) {
		hw_redis_link_fail(&ks->hear_link, "published messages do not arrive");
		return;
	}
	ask_self(ks);
	if (ks->sees && hw_resync_is_due(&ks->resync, now, every_ms * HW_NS_PER_MS))
		hw_resync_want(&ks->resync, true);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	tick(arg);
}

/* --- the connection for TTL queries ------------------------------------------------------------------------------- */

/* Checks that Redis has loaded its data. While it loads, all keys seem to be missing. */
static void on_hello(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_keyspace *ks = arg;
	const redisReply *reply = got(ks, answer);
	(void)ac;
	if (!reply)
		return;
	if (reply->type != REDIS_REPLY_INTEGER) {
		hw_redis_link_fail(&ks->ttl_link, reply->type == REDIS_REPLY_ERROR ? reply->str : "no answer");
		return;
	}
	hw_redis_link_settled(&ks->ttl_link);
	ks->sees = true;
	if (ks->active)
		hw_resync_ready(&ks->resync);
	ks->reported[0] = '\0';
	ks->flags_at.ns = 0;
	ks->ops->on_sight(ks->arg, true);
	hw_ttl_queries_up(&ks->queries);
	check_flags(ks, hw_clock_mono());
	ask_self(ks);
	if (ks->listening)
		hw_resync_want(&ks->resync, false);
}

static void on_ttl_ready(void *arg)
{
	struct hw_keyspace *ks = arg;
	const char *argv[] = {"PTTL", ks->keys.monitor};
	if (command(ks, on_hello, 2, argv) != 0)
		hw_redis_link_fail(&ks->ttl_link, "out of memory");
}

static void on_ttl_lost(void *arg, const char *why)
{
	struct hw_keyspace *ks = arg;
	bool saw = ks->sees;
	ks->sees = false;
	ks->asked.ns = 0;
	ks->flags_asked = false;
	hw_resync_lost(&ks->resync);
	hw_ttl_queries_lost(&ks->queries);
	if (saw)
		ks->ops->on_sight(ks->arg, false);
	if (hw_trouble_of(why) != HW_TROUBLE_OTHER)
		report_error(ks, why);
}

static const struct hw_redis_link_ops ttl_link_ops = {on_ttl_ready, on_ttl_lost, NULL};

/* --- the connection for notifications ----------------------------------------------------------------------------- */

/* Subscribes by a pattern to the channels on which the nodes of a cluster announce their own writes. */
static int subscribe_to_all(struct hw_keyspace *ks)
{
	const char *argv[] = {"PSUBSCRIBE", ks->keys.self_match};
	const size_t len[] = {10, strlen(ks->keys.self_match)};
	return hw_redis_link_command(&ks->hear_link, on_message, ks, 2, argv, len);
}

static void on_hear_ready(void *arg)
{
	struct hw_keyspace *ks = arg;
	/* in a cluster, the pattern includes our own channel, which is the second element */
	const int first = ks->conf.several ? 1 : 2;
	const char *argv[HW_KEYSPACE_EVENTS + 2] = {"SUBSCRIBE", ks->self};
	size_t len[HW_KEYSPACE_EVENTS + 2] = {9, strlen(ks->self)};
	char names[HW_KEYSPACE_EVENTS][64];
	for (unsigned e = 0; e < HW_KEYSPACE_EVENTS; e++) {
		len[first + (int)e] = hw_print(names[e], sizeof(names[e]), "%s%s", ks->channel, events[e].name);
		argv[first + (int)e] = names[e];
	}
	ks->confirmed = 0;
	if ((ks->conf.several && subscribe_to_all(ks) != 0) ||
	    hw_redis_link_command(&ks->hear_link, on_message, ks, HW_KEYSPACE_EVENTS + first, argv, len) != 0)
		hw_redis_link_fail(&ks->hear_link, "out of memory");
}

static void on_hear_lost(void *arg, const char *why)
{
	struct hw_keyspace *ks = arg;
	char text[HW_TROUBLE_TEXT + 200];
	ks->listening = ks->subscribed = ks->own = false;
	ks->asked.ns = 0;
	bool denied = hw_trouble_of(why) == HW_TROUBLE_NOPERM;
	snprintf(text, sizeof(text),
	         denied ? "cannot subscribe: %.400s; allow the channels %s* and %s" : "not listening: %.400s", why,
	         ks->channel, ks->conf.several ? ks->keys.self_match : ks->self);
	ks->ops->on_link(ks->arg, false, text);
}

static const struct hw_redis_link_ops hear_ops = {on_hear_ready, on_hear_lost, NULL};

/* --- life --------------------------------------------------------------------------------------------------------- */

void hw_keyspace_loaded(struct hw_keyspace *ks)
{
	ks->active = true;
	if (ks->sees)
		hw_resync_ready(&ks->resync);
	if (ks->listening)
		hw_resync_want(&ks->resync, false);
}

void hw_keyspace_compare(struct hw_keyspace *ks)
{
	hw_resync_want(&ks->resync, false);
}

void hw_keyspace_emptied(struct hw_keyspace *ks)
{
	hw_resync_want(&ks->resync, false);
}

bool hw_keyspace_up(const struct hw_keyspace *ks)
{
	return ks->listening && ks->sees;
}

const struct hw_keyspace_stats *hw_keyspace_stats(struct hw_keyspace *ks)
{
	ks->stats.resyncs = ks->resync.completed;
	ks->stats.queries = ks->queries.sent;
	ks->stats.dropped = ks->queries.dropped;
	ks->stats.waiting = hw_ttl_queries_waiting(&ks->queries);
	return &ks->stats;
}

static int start_links(struct hw_keyspace *ks, const struct hw_redis_conf *conf)
{
	struct hw_redis_link_conf c = {.at = conf->at, .seed = conf->run_id ^ 1};
	int rc = hw_redis_link_init(&ks->ttl_link, ks->base, &c, &ttl_link_ops, ks);
	c.subscriber = true;
	c.seed ^= 3;
	return rc ? rc : hw_redis_link_init(&ks->hear_link, ks->base, &c, &hear_ops, ks);
}

static struct hw_keyspace_conf complete(const struct hw_keyspace_conf *conf)
{
	struct hw_keyspace_conf c = *conf;
	c.resync_ms = c.resync_ms ? c.resync_ms : HW_KEYSPACE_RESYNC_MS;
	c.resync_deaf_ms = c.resync_deaf_ms ? c.resync_deaf_ms : HW_KEYSPACE_RESYNC_DEAF_MS;
	c.deaf_ms = c.deaf_ms ? c.deaf_ms : HW_KEYSPACE_DEAF_MS;
	c.queries_max = c.queries_max ? c.queries_max : HW_TTL_QUERIES_MAX;
	return c;
}

static int start(struct hw_keyspace *ks)
{
	struct timeval second = {1, 0};
	const struct hw_redis_conf *r = ks->conf.redis;
	const struct hw_ttl_queries_ops *ops = ks->store ? &queries_ops : &unfenced_ops;
	ks->self = hw_keys_self(r->key_prefix, r->node_id, r->run_id);
	hw_redis_address_keyevents(&r->at, ks->channel, sizeof(ks->channel));
	ks->tick = event_new(ks->base, -1, EV_PERSIST, on_tick, ks);
	int rc = ks->self && ks->tick ? 0 : -ENOMEM;
	if (!rc)
		rc = hw_keys_init(&ks->keys, r->key_prefix, r->node_id);
	if (!rc)
		rc = hw_ttl_queries_init(&ks->queries, ks->base, &ks->ttl_link, &ks->keys, ks->conf.queries_max, ops,
		                         ks);
	if (!rc)
		rc = hw_resync_init(&ks->resync, ks->base, &ks->ttl_link, &ks->keys, ks->m, &ks->queries, on_error, ks);
	if (!rc)
		rc = start_links(ks, r);
	return rc ? rc : event_add(ks->tick, &second);
}

struct hw_keyspace *hw_keyspace_new(struct event_base *base, const struct hw_keyspace_conf *conf,
                                    struct hw_redis *store, const struct hw_monitor *m,
                                    const struct hw_keyspace_ops *ops, void *arg)
{
	struct hw_keyspace *ks = calloc(1, sizeof(*ks));
	if (!ks)
		return NULL;
	ks->base = base;
	ks->m = m;
	ks->store = store;
	ks->ops = ops;
	ks->arg = arg;
	ks->conf = complete(conf);
	if (start(ks) == 0)
		return ks;
	hw_keyspace_free(ks);
	return NULL;
}

void hw_keyspace_free(struct hw_keyspace *ks)
{
	if (!ks)
		return;
	hw_redis_link_fini(&ks->ttl_link);
	hw_redis_link_fini(&ks->hear_link);
	hw_resync_fini(&ks->resync);
	hw_ttl_queries_fini(&ks->queries);
	hw_keys_fini(&ks->keys);
	if (ks->tick)
		event_free(ks->tick);
	free(ks->self);
	free(ks);
}
