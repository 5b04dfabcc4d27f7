/* SPDX-License-Identifier: MIT */
/*
 * What the keyspace listener does when notifications do not come, with a real Redis behind a proxy that keeps them. The
 * listener's intervals are shorter than in production, so that an hour takes no hour.
 */
#include <check.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/keyspace.h"
#include "redis/ttl_queries.h"
#include "redis_proxy.h"
#include "redis_rig.h"

#define NEVER_MS   INT64_C(600000)
#define MANY       6000
#define LOOKS_MAX  2048
#define PACED_NS   (45 * HW_NS_PER_MS) /* a page each 50 ms, by a timer that rounds */
#define PUBLISHES  "CONFIG SET notify-keyspace-events Exg$e"
#define NO_ANSWERS "published messages do not arrive"

static struct rig rig; /* its server and its connection that looks, no more */
static struct proxy proxy;
static struct event_base *base;
static struct hw_monitor *monitor;
static struct hw_keyspace *keyspace;
static struct hw_keyspace_conf conf;
static struct {
	unsigned ups, downs;
	unsigned flag_looks, publishes; /* of the proxy, when it was up last */
	char why[512], trouble[512];
} said;

/* --- what it says ------------------------------------------------------------------------------------------------- */

static void on_link(void *arg, bool up, const char *why)
{
	(void)arg;
	*(up ? &said.ups : &said.downs) += 1;
	said.flag_looks = proxy.flag_looks;
	said.publishes = proxy.publishes;
	if (!up)
		snprintf(said.why, sizeof(said.why), "%s", why);
}

static void drain(void)
{
	struct hw_out out;
	unsigned budget = 100000;
	while (hw_monitor_next(monitor, rig_now(), &budget, &out))
		if (out.kind == HW_OUT_KEY_CHECK)
			hw_keyspace_check(keyspace, out.device);
}

static void on_sight(void *arg, bool sees)
{
	(void)arg;
	hw_monitor_key_sight(monitor, rig_now(), sees);
}

static void on_key(void *arg, unsigned why, const char *id, size_t id_len, int64_t ttl_ms)
{
	(void)arg;
	hw_monitor_key(monitor, rig_now(), why, id, id_len, ttl_ms);
	drain();
}

static void on_loss(void *arg)
{
	(void)arg;
}

static void on_back(void *arg, const char *id, size_t id_len)
{
	(void)arg, (void)id, (void)id_len;
}

static void on_trouble(void *arg, const char *what)
{
	(void)arg;
	snprintf(said.trouble, sizeof(said.trouble), "%s", what);
}

static const struct hw_keyspace_ops ops = {on_link, on_sight, on_key, on_loss, on_back, on_trouble};

static void until(bool (*done)(void), int ms)
{
	ms = ms < PATIENCE_MS ? PATIENCE_MS : ms;
	int64_t end = rig_now().mono.ns + ms * HW_NS_PER_MS;
	while (!done()) {
		ck_assert_msg(rig_now().mono.ns < end, "not within %d ms; link: %s; trouble: %s", ms, said.why,
		              said.trouble);
		ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE), 0);
	}
}

static const struct hw_keyspace_stats *stats(void)
{
	return hw_keyspace_stats(keyspace);
}

static bool is(const char *id, enum hw_state state)
{
	const struct hw_registry *devices = hw_monitor_registry(monitor);
	uint32_t i = hw_registry_find(devices, id, strlen(id));
	return i != HW_NIL && hw_device_state(hw_registry_at(devices, i)) == state;
}

/* --- the world ---------------------------------------------------------------------------------------------------- */

static void setup(void)
{
	static const uint8_t key[16] = {1};
	static const char *const filter[] = {"a/{id}"};
	const struct hw_monitor_conf mc = {
		.max_devices = 10000, .readers = 1, .ttl_factor = 3, .key_group = "g", .forget_after_ms = NEVER_MS};
	const struct hw_group_spec group = {
		.name = "g", .heartbeat = filter, .n_heartbeat = 1, .timeout_ms = NEVER_MS, .timeout_max_ms = NEVER_MS};
	memset(&said, 0, sizeof(said));
	base = event_base_new();
	ck_assert_ptr_nonnull(base);
	rig_serve(&rig, NULL);
	rig_do(&rig, PUBLISHES);
	proxy_start(&proxy, base, rig.port);
	rig.conf.at.port = proxy.port;
	monitor = hw_monitor_new(&mc, &group, 1, key, rig_now());
	ck_assert_ptr_nonnull(monitor);
	conf = (struct hw_keyspace_conf){
		.redis = &rig.conf, .resync_ms = NEVER_MS, .resync_deaf_ms = NEVER_MS, .deaf_ms = NEVER_MS};
}

static void teardown(void)
{
	hw_keyspace_free(keyspace);
	proxy_stop(&proxy);
	hw_monitor_free(monitor);
	event_base_free(base);
	rig_kill_server(&rig);
}

static bool has_resynced(void)
{
	return stats()->resyncs >= 1;
}

static void start(void)
{
	keyspace = hw_keyspace_new(base, &conf, NULL, monitor, &ops, NULL);
	ck_assert_ptr_nonnull(keyspace);
	hw_keyspace_loaded(keyspace);
}

static void listen_to_keys(void)
{
	start();
	until(has_resynced, 5000);
}

/* Keys FROM0 ... of a name, by one command. */
static void write_many(const char *name, unsigned n)
{
	const char **argv = calloc(2 * n + 1, sizeof(*argv));
	char(*keys)[48] = calloc(n, sizeof(*keys));
	ck_assert(argv && keys);
	argv[0] = "MSET";
	for (unsigned i = 0; i < n; i++) {
		snprintf(keys[i], sizeof(keys[i]), "device:connected:%s%u", name, i);
		argv[2 * i + 1] = keys[i];
		argv[2 * i + 2] = "x";
	}
	redisReply *reply = redisCommandArgv(rig.look, (int)(2 * n + 1), argv, NULL);
	ck_assert(reply && reply->type == REDIS_REPLY_STATUS);
	freeReplyObject(reply);
	free(argv);
	free(keys);
}

/* Runs a command without a notification to the listener, which finds the setting unchanged. */
static void without_notification(const char *command)
{
	rig_do(&rig, "MULTI");
	rig_do(&rig, "CONFIG SET notify-keyspace-events %s", "");
	rig_do(&rig, command);
	rig_do(&rig, PUBLISHES);
	rig_do(&rig, "EXEC");
}

static bool first_is_online(void)
{
	return is("first", HW_STATE_ONLINE);
}

static bool first_is_offline(void)
{
	return is("first", HW_STATE_OFFLINE);
}

static bool second_is_online(void)
{
	return is("second", HW_STATE_ONLINE);
}

/* --- once an hour ------------------------------------------------------------------------------------------------- */

START_TEST(each_interval_all_keys_are_gone_through)
{
	conf.resync_ms = 300;
	listen_to_keys();
	without_notification("SET device:connected:first x PX 500000");
	until(first_is_online, 5000);
	without_notification("DEL device:connected:first");
	until(first_is_offline, 5000);
	ck_assert_uint_ge(stats()->resyncs, 3);
	ck_assert_uint_eq(said.ups, 1);
	ck_assert_uint_eq(said.downs, 0);
}
END_TEST

static bool has_resynced_thrice(void)
{
	return stats()->resyncs >= 3;
}

START_TEST(it_is_paced)
{
	conf.resync_ms = 300;
	write_many("many", 2500);
	listen_to_keys();
	proxy.n_scans = 0;
	until(has_resynced_thrice, 8000);
	unsigned gaps = 0;
	for (unsigned i = 1; i < proxy.n_scans; i++) {
		if (proxy.scans[i].first)
			continue;
		ck_assert_int_ge(proxy.scans[i].ns - proxy.scans[i - 1].ns, PACED_NS);
		gaps++;
	}
	ck_assert_uint_ge(gaps, 6);
}
END_TEST

/* The flags are missing, and no program sets them: changes are found all the same, later. */
START_TEST(more_often_while_nothing_is_told)
{
	rig_do(&rig, "CONFIG SET notify-keyspace-events %s", "");
	conf.resync_deaf_ms = 300;
	listen_to_keys();
	rig_do(&rig, "SET device:connected:first x");
	until(first_is_online, 5000);
	ck_assert_ptr_nonnull(strstr(said.trouble, "notify-keyspace-events"));
}
END_TEST

/* --- more than it can look at ------------------------------------------------------------------------------------- */

static bool has_dropped(void)
{
	return stats()->dropped > MANY / 4 && stats()->notifications[0] > MANY;
}

static bool all_is_known(void)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(monitor);
	return s->count[HW_STATE_ONLINE] == MANY + 1 && first_is_offline() && stats()->waiting == 0;
}

START_TEST(what_the_queue_refused_is_found)
{
	conf.queries_max = LOOKS_MAX;
	listen_to_keys();
	rig_do(&rig, "SET device:connected:first x");
	until(first_is_online, 5000);
	proxy_hold(&proxy, true);
	write_many("many", MANY);
	rig_do(&rig, "DEL device:connected:first");
	rig_do(&rig, "SET device:connected:second x");
	until(has_dropped, 3000);
	ck_assert_uint_le(stats()->waiting, LOOKS_MAX + HW_TTL_QUERIES_IN_FLIGHT);
	ck_assert(first_is_online());
	proxy_hold(&proxy, false);
	until(all_is_known, 10000);
	ck_assert(second_is_online());
	ck_assert_uint_eq(said.downs, 0); /* and no connection was lost, which would have caused the repair as well */
}
END_TEST

static bool is_looking(void)
{
	return stats()->waiting > 0;
}

static int64_t release_ns;

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static bool may_go_on(void)
{
	return rig_now().mono.ns >= release_ns;
}

static bool many_are_known(void)
{
	return hw_monitor_stats(monitor)->count[HW_STATE_ONLINE] == MANY && has_resynced();
}

/* After slow answers Redis is left alone, but for the scan: it waits before the queue is full. */
START_TEST(going_through_all_does_not_fill_the_queue)
{
	struct timeval every = {0, 10000};
	struct event *wake = event_new(base, -1, EV_PERSIST, on_wake, NULL);
	ck_assert(wake && event_add(wake, &every) == 0);
	conf.queries_max = LOOKS_MAX;
	write_many("many", MANY);
	start();
	until(is_looking, 5000);
	proxy_hold(&proxy, true);
	release_ns = rig_now().mono.ns + 2 * HW_TTL_QUERIES_SLOW_NS;
	until(may_go_on, 5000);
	proxy_hold(&proxy, false);
	until(many_are_known, 10000);
	ck_assert_uint_eq(stats()->dropped, 0);
	event_free(wake);
}
END_TEST

/* --- a connection that is open, and dead -------------------------------------------------------------------------- */

static bool is_down(void)
{
	return said.downs > 0;
}

static bool is_up(void)
{
	return said.ups > 0 && hw_keyspace_up(keyspace);
}

START_TEST(what_is_published_stops_coming)
{
	conf.deaf_ms = 300;
	listen_to_keys();
	rig_do(&rig, "SET device:connected:first x");
	until(first_is_online, 5000);
	proxy.swallow = true;
	rig_do(&rig, "DEL device:connected:first");
	rig_do(&rig, "SET device:connected:second x");
	until(is_down, 5000);
	ck_assert_msg(strstr(said.why, NO_ANSWERS), "%s", said.why);
	ck_assert(!hw_keyspace_up(keyspace));
	ck_assert(first_is_online());
	proxy.swallow = false;
	until(is_up, 5000);
	until(first_is_offline, 5000);
	until(second_is_online, 5000);
	ck_assert_uint_eq(stats()->reconnects, 1);
	ck_assert_uint_eq(stats()->resyncs, 2);
	ck_assert_uint_ge(proxy.swallowed, 1);
}
END_TEST

START_TEST(what_is_published_never_came)
{
	conf.deaf_ms = 300;
	proxy.swallow = true;
	start();
	until(is_down, 5000);
	ck_assert_msg(strstr(said.why, NO_ANSWERS), "%s", said.why);
	ck_assert_uint_eq(said.ups, 0);
	proxy.swallow = false;
	until(is_up, 5000);
}
END_TEST

/* Publishing is denied: the listener reports that, and keeps what it receives. */
START_TEST(what_may_not_be_published)
{
	rig_do(&rig, "ACL SETUSER default -publish");
	conf.deaf_ms = 300;
	conf.resync_deaf_ms = 300;
	start();
	until(has_resynced, 5000);
	uint64_t resyncs = stats()->resyncs;
	rig_do(&rig, "SET device:connected:first x");
	until(first_is_online, 5000);
	ck_assert_ptr_nonnull(strstr(said.trouble, "publish"));
	ck_assert_uint_eq(said.downs, 0);
	ck_assert_uint_ge(resyncs, 1);
}
END_TEST

/* Another client's message on the listener's channel is not its own. */
START_TEST(what_others_publish_on_its_channel)
{
	static const char *const texts[] = {"1", "9223372036854775807", " -9223372036854775808", "x", ""};
	listen_to_keys();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		rig_do(&rig, "PUBLISH device:self:node-1:abcdef0123456789 %s", texts[i]);
	rig_do(&rig, "SET device:connected:first x");
	until(first_is_online, 5000);
	ck_assert_int_ge(stats()->lag_ns, 0);
	ck_assert_int_lt(stats()->lag_ns, 60 * HW_NS_PER_S);
}
END_TEST

/* --- the flags, after a connection that was lost ------------------------------------------------------------------ */

static bool has_looked_at_flags(void)
{
	return said.ups > 0 && proxy.flag_looks > said.flag_looks;
}

static bool is_up_again(void)
{
	return said.ups > 1 && hw_keyspace_up(keyspace);
}

/*
 * The connection that hears is lost, and the flags are others when it is back: they are looked at before a second
 * message to itself is sent, one each second, which is before the next look of those every five seconds is due.
 */
static void lose_flags_and_connection(void)
{
	listen_to_keys();
	until(has_looked_at_flags, 10000);
	ck_assert_str_eq(said.trouble, "");
	rig_do(&rig, "CONFIG SET notify-keyspace-events %s", "");
	rig_do(&rig, "CLIENT KILL TYPE pubsub");
	until(is_up_again, 10000);
	until(has_looked_at_flags, 10000);
	ck_assert_uint_le(proxy.publishes_at_look, said.publishes + 1);
	ck_assert_uint_eq(said.downs, 1);
}

static bool is_troubled(void)
{
	return said.trouble[0] != '\0';
}

START_TEST(flags_that_went_with_the_connection)
{
	lose_flags_and_connection();
	until(is_troubled, 5000);
	ck_assert_msg(strstr(said.trouble, "CONFIG SET notify-keyspace-events"), "%s", said.trouble);
}
END_TEST

static bool hears_a_set(void)
{
	rig_do(&rig, "SET device:connected:second x");
	return stats()->notifications[0] > 0;
}

START_TEST(flags_that_went_with_the_connection_are_added)
{
	conf.configure = true;
	lose_flags_and_connection();
	until(is_troubled, 5000);
	ck_assert_msg(strstr(said.trouble, "added"), "%s", said.trouble);
	until(hears_a_set, 5000);
	until(second_is_online, 5000);
}
END_TEST

static TCase *cases(void)
{
	TCase *t = tcase_create("faults");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, each_interval_all_keys_are_gone_through);
	tcase_add_test(t, it_is_paced);
	tcase_add_test(t, more_often_while_nothing_is_told);
	tcase_add_test(t, what_the_queue_refused_is_found);
	tcase_add_test(t, going_through_all_does_not_fill_the_queue);
	tcase_add_test(t, what_is_published_stops_coming);
	tcase_add_test(t, what_is_published_never_came);
	tcase_add_test(t, what_may_not_be_published);
	tcase_add_test(t, what_others_publish_on_its_channel);
	return t;
}

static TCase *flags(void)
{
	TCase *t = tcase_create("flags");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, flags_that_went_with_the_connection);
	tcase_add_test(t, flags_that_went_with_the_connection_are_added);
	return t;
}

int main(void)
{
	Suite *s = suite_create("keyspace_faults");
	suite_add_tcase(s, cases());
	suite_add_tcase(s, flags());
	return rig_run(s);
}
