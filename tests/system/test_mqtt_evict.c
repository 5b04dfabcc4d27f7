/* SPDX-License-Identifier: MIT */
/*
 * Evictions against a real mosquitto. A client that is evicted is cut off, and what the broker had not read of it is
 * lost. A refusal of the broker and the lack of an answer have different results.
 */
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "free_port.h"
#include "mqtt/evict.h"
#include "mqtt_broker.h"

#define OPEN     "allow_anonymous true\n"
#define PRESENCE "heartwheel/t/status"
#define VICTIM   "hw-v-pub"
#define OFFLINE  "{\"online\":false}"
#define TRIES    50

static const int protocols[] = {5, 311};

static struct broker broker;

static void set_up(void)
{
	broker_init(&broker, OPEN);
	broker_start(&broker);
}

static void tear_down(void)
{
	broker_stop(&broker, SIGTERM);
}

static struct hw_evict *evict(const struct hw_mqtt_conf *conf, int64_t timeout_ms)
{
	struct hw_evict *e;
	ck_assert_int_eq(hw_evict_start(&e, conf, PRESENCE, OFFLINE, strlen(OFFLINE), timeout_ms), 0);
	return e;
}

static void await(struct hw_evict *e, enum hw_eviction wanted, const char *said)
{
	enum hw_eviction how;
	const char *why;
	struct pollfd p = {hw_evict_fd(e), POLLIN, 0};
	ck_assert_int_eq(poll(&p, 1, PATIENCE), 1);
	ck_assert(hw_evict_is_over(e, &how, &why));
	ck_assert_msg(how == wanted, "%d '%s' instead of %d", (int)how, why, (int)wanted);
	ck_assert_msg(strstr(why, said), "'%s' does not say '%s'", why, said);
	hw_evict_end(e);
}

/* Whether it was taken; or else the one that was cut off was back, and has cut off who did it, before the broker had
 * answered: then the test begins again. */
static bool was_taken(struct hw_evict *e)
{
	enum hw_eviction how;
	const char *why;
	struct pollfd p = {hw_evict_fd(e), POLLIN, 0};
	ck_assert_int_eq(poll(&p, 1, PATIENCE), 1);
	ck_assert(hw_evict_is_over(e, &how, &why));
	bool taken = how == HW_EVICTION_TAKEN;
	ck_assert_msg(taken || (how == HW_EVICTION_FAILED && strstr(why, "lost")), "%d '%s'", (int)how, why);
	hw_evict_end(e);
	return taken;
}

static struct hw_reader *watch(const struct broker *b, const char *filter)
{
	struct hw_mqtt_conf conf = conf_for(b, 5, 1, "hw-t-watch");
	return reader_up(&conf, filter, false);
}

static bool cuts_off(const struct hw_mqtt_conf *conf)
{
	struct hw_reader *r = watch(&broker, PRESENCE);
	struct hw_publisher *p = publisher_up(conf);
	if (!was_taken(evict(conf, PATIENCE))) {
		hw_publisher_stop(p, 1000);
		hw_reader_stop(r);
		return false;
	}
	reader_expect(r, PRESENCE, "gone"); /* its will */
	reader_expect(r, PRESENCE, OFFLINE);
	publisher_await(p, HW_PUBLISHER_DOWN);
	publisher_await(p, HW_PUBLISHER_UP); /* what it does then is the fence's business */
	hw_publisher_stop(p, 1000);
	struct hw_reader_event ev;
	ck_assert_msg(!reader_next(r, &ev, 300), "an evictor leaves no will of its own");
	hw_reader_stop(r);
	struct hw_mqtt_filter filter = {.filter = PRESENCE, .replay = true};
	struct hw_mqtt_conf late = conf_for(&broker, 5, 1, "hw-t-late");
	ck_assert_int_eq(hw_reader_start(&r, &late, &filter, 1, NULL, 0, 500), 0);
	ev = reader_await(r, HW_READER_MESSAGE);
	ck_assert(ev.retained && ev.payload_len == strlen(OFFLINE));
	hw_reader_stop(r);
	return true;
}

START_TEST(test_cuts_off)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, VICTIM);
	for (int tries = 1; !cuts_off(&conf); tries++)
		ck_assert_int_lt(tries, TRIES);
}
END_TEST

/* Passes over what was acknowledged before. */
static void await_down(struct hw_publisher *p)
{
	struct hw_publisher_event ev;
	do
		ck_assert(publisher_next(p, &ev, PATIENCE));
	while (ev.kind != HW_PUBLISHER_DOWN);
}

/* While the broker is stopped, the victim's statuses wait in its socket; none of them is published after the
 * eviction. */
static bool drops_what_waits(const struct hw_mqtt_conf *conf)
{
	enum { STATUSES = 400 };
	struct hw_reader *r = watch(&broker, "#");
	struct hw_publisher *p = publisher_up(conf);
	kill(broker.pid, SIGSTOP);
	for (unsigned i = 0; i < STATUSES; i++) {
		char topic[64];
		snprintf(topic, sizeof(topic), "nodes/%u/status", i);
		ck_assert(publisher_retain(p, topic, "{\"online\":true}", 15, i));
	}
	hw_publisher_flush(p);
	poll(NULL, 0, 200); /* the thread writes what the window allows */
	struct hw_evict *e = evict(conf, PATIENCE);
	poll(NULL, 0, 200); /* ... and connects */
	kill(broker.pid, SIGCONT);
	if (!was_taken(e)) {
		hw_publisher_stop(p, 1000);
		hw_reader_stop(r);
		return false;
	}
	await_down(p);
	unsigned before = 0, behind = 0, offline = 0;
	struct hw_reader_event ev;
	while (reader_next(r, &ev, offline ? 300 : PATIENCE)) {
		if (ev.kind != HW_READER_MESSAGE)
			continue;
		offline += ev.payload_len == strlen(OFFLINE);
		before += !offline;
		behind += offline && ev.topic[0] == 'n';
	}
	printf("  protocol %d: %u of what waited was passed on before the eviction\n", conf->protocol, before);
	ck_assert_uint_eq(offline, 1);
	ck_assert_uint_eq(behind, 0);
	hw_publisher_stop(p, 1000);
	hw_reader_stop(r);
	return true;
}

START_TEST(test_what_waits_is_dropped)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, VICTIM);
	for (int tries = 1; !drops_what_waits(&conf); tries++)
		ck_assert_int_lt(tries, TRIES);
}
END_TEST

static void start_with_rights(struct broker *b, const char *rights)
{
	char extra[512];
	broker_init(b, "");
	snprintf(extra, sizeof(extra), "listener %d 127.0.0.1\nuser root\nallow_anonymous true\nacl_file %s\n", b->port,
	         broker_file(b, "rights"));
	broker_write(b, "conf", extra);
	broker_write(b, "rights", rights);
	broker_shell(b, "chmod 600 rights");
	broker_start(b);
}

START_TEST(test_refused_by_rights)
{
	struct broker b;
	start_with_rights(&b, "topic write nodes/+/status\n");
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, VICTIM);
	/* MQTT 3.1.1 has no reason codes: the broker acknowledges a message that it discards */
	bool five = conf.protocol == 5;
	await(evict(&conf, PATIENCE), five ? HW_EVICTION_REFUSED : HW_EVICTION_TAKEN,
	      five ? "allow anonymous clients to write heartwheel/t/status" : "");
	broker_stop(&b, SIGTERM);
}
END_TEST

START_TEST(test_refused_connection)
{
	struct broker b;
	broker_init(&b, "allow_anonymous false\n");
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, VICTIM);
	await(evict(&conf, PATIENCE), HW_EVICTION_REFUSED, "");
	broker_stop(&b, SIGTERM);
}
END_TEST

START_TEST(test_fails)
{
	struct hw_mqtt_conf conf = conf_for(&broker, protocols[_i], 0, VICTIM);
	int64_t began = now_ms();
	kill(broker.pid, SIGSTOP);
	await(evict(&conf, 500), HW_EVICTION_FAILED, "did not answer");
	ck_assert_int_ge(now_ms() - began, 500);
	hw_evict_end(evict(&conf, 60000)); /* freed before it is over */
	kill(broker.pid, SIGCONT);
	conf.port = free_port();
	await(evict(&conf, PATIENCE), HW_EVICTION_FAILED, "refused");
	hw_evict_end(NULL);
}
END_TEST

static void add(void *suite)
{
	TCase *tc = tcase_create("evict");
	tcase_set_timeout(tc, 90);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, test_cuts_off, 0, 2);
	tcase_add_loop_test(tc, test_what_waits_is_dropped, 0, 2);
	tcase_add_loop_test(tc, test_refused_by_rights, 0, 2);
	tcase_add_loop_test(tc, test_refused_connection, 0, 2);
	tcase_add_loop_test(tc, test_fails, 0, 2);
	suite_add_tcase(suite, tc);
}

int main(void)
{
	return test_mqtt_main("mqtt evict", add);
}
