/* SPDX-License-Identifier: MIT */
/* The page of held wills: each goes to the broker once, although a message of the page is lost or cannot be handed
 * over. Redis and the broker are what this file says: a real broker loses no chosen message of several. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/follow/wills.h"

#define DEVICES 3
#define ASKED   8

static struct hw_tasks_settings conf;
static struct hw_tasks_app app;
static struct hw_tasks_wills *wills;
static struct hw_device_hook *hook;

/* What Redis was asked and has not answered. */
static struct asked {
	hw_tasks_answer_fn *fn;
	void *arg;
	char command[16];
} asked[ASKED];
static size_t n_asked;
static bool page_read;

/* What was handed to the broker. */
static struct put {
	hw_put_fn *fn;
	void *arg;
} handed[ASKED];
static size_t n_puts;
static unsigned published[DEVICES], tries;
static unsigned refuse_try; /* the hand-over that fails, counted from 1; 0: none */
static char saved[48];

/* --- what wills.c calls ------------------------------------------------------------------------------------------- */

static int ask(hw_tasks_answer_fn *fn, void *arg, const char *command)
{
	ck_assert_uint_lt(n_asked, ASKED);
	asked[n_asked] = (struct asked){.fn = fn, .arg = arg};
	snprintf(asked[n_asked++].command, sizeof(asked->command), "%s", command);
	return 0;
}

int hw_tasks_store_ask(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, const char *const *words)
{
	(void)s;
	if (strcmp(words[0], "SET") == 0)
		snprintf(saved, sizeof(saved), "%s", words[2]);
	return fn ? ask(fn, arg, words[0]) : 0;
}

int hw_tasks_store_command(struct hw_tasks_store *s, hw_tasks_answer_fn *fn, void *arg, int argc, const char **argv,
                           const size_t *len)
{
	(void)s, (void)argc, (void)len;
	return ask(fn, arg, argv[0]);
}

bool hw_tasks_store_is_up(const struct hw_tasks_store *s)
{
	(void)s;
	return true;
}

const char *hw_tasks_store_key(const struct hw_tasks_store *s, const char *rest, char buf[HW_TASKS_KEY_MAX])
{
	(void)s;
	snprintf(buf, HW_TASKS_KEY_MAX, "task:%s", rest);
	return buf;
}

int64_t hw_tasks_store_now_ms(const struct hw_tasks_store *s)
{
	(void)s;
	return 1000000;
}

int hw_tasks_broker_publish(struct hw_tasks_broker *b, const struct hw_tasks_put *m, hw_put_fn *fn, void *arg)
{
	(void)b;
	if (++tries == refuse_try)
		return -EBUSY;
	ck_assert_uint_eq(m->topic.len, 5);
	published[m->topic.at[4] - 'a']++;
	handed[n_puts++] = (struct put){fn, arg};
	return 0;
}

bool hw_tasks_broker_publishes(const struct hw_tasks_broker *b)
{
	(void)b;
	return true;
}

uint64_t hw_tasks_subject(struct hw_text a, struct hw_text b)
{
	return a.len + b.len;
}

void hw_tasks_unusable(struct hw_tasks_app *a, enum hw_tasks_unusable kind, uint64_t n, const char *format, ...)
{
	(void)a, (void)kind, (void)format;
	ck_assert_uint_eq(n, 0);
}

bool hw_allow_publish(const struct hw_tasks_settings *s, struct hw_text sender, struct hw_text topic)
{
	(void)s, (void)sender, (void)topic;
	return true;
}

void hw_tasks_inbox_done(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, struct hw_text value)
{
	(void)b, (void)sender, (void)msg_id, (void)value;
}

void hw_tasks_inbox_refuse(struct hw_tasks_inbox *b, struct hw_text sender, struct hw_text msg_id, const char *why)
{
	(void)b, (void)sender, (void)msg_id, (void)why;
}

void hw_tasks_inbox_take(struct hw_tasks_inbox *b, enum hw_request_action action, hw_request_fn *fn, void *arg)
{
	(void)b, (void)action, (void)fn, (void)arg;
}

void hw_device_reader_join(struct hw_device_reader *t, struct hw_device_hook *h)
{
	(void)t;
	hook = h;
}

/* An entry's one field is the device that went offline. */
bool hw_device_transition_read(const struct redisReply *entry, int64_t now_ms, struct hw_device_transition *out)
{
	struct hw_text none = {"", 0};
	(void)now_ms;
	*out = (struct hw_device_transition){.device = {entry->element[1]->str, entry->element[1]->len},
	                                     .state = {"offline", 7},
	                                     .reason = none,
	                                     .group = none,
	                                     .node = none,
	                                     .seq = none};
	return true;
}

/* --- Redis and the broker ----------------------------------------------------------------------------------------- */

static redisReply text(const char *t)
{
	return (redisReply){.type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)t, .len = strlen(t)};
}

static redisReply list(redisReply **elements, size_t n)
{
	return (redisReply){.type = REDIS_REPLY_ARRAY, .element = elements, .elements = n};
}

/* Three devices have gone offline behind the place that is kept. */
static void answer_page(const struct asked *a)
{
	static const char *const at[DEVICES] = {"6-0", "7-0", "8-0"}, *const names[DEVICES] = {"a", "b", "c"};
	redisReply ids[DEVICES], devices[DEVICES], entries[DEVICES], *parts[DEVICES][2], *all[DEVICES];
	size_t n = page_read ? 0 : DEVICES;
	page_read = true;
	for (size_t i = 0; i < n; i++) {
		ids[i] = text(at[i]);
		devices[i] = text(names[i]);
		parts[i][0] = &ids[i];
		parts[i][1] = &devices[i];
		entries[i] = list(parts[i], 2);
		all[i] = &entries[i];
	}
	redisReply page = list(all, n);
	a->fn(a->arg, &page);
}

static void answer_wills(const struct asked *a)
{
	static const char *const kept[DEVICES] = {"{\"topic\":\"out/a\",\"payload\":1}",
	                                          "{\"topic\":\"out/b\",\"payload\":1}",
	                                          "{\"topic\":\"out/c\",\"payload\":1}"};
	redisReply one[DEVICES], *all[DEVICES];
	for (size_t i = 0; i < DEVICES; i++) {
		one[i] = text(kept[i]);
		all[i] = &one[i];
	}
	redisReply reply = list(all, DEVICES);
	a->fn(a->arg, &reply);
}

static void answer_end(const struct asked *a)
{
	redisReply id = text("8-0"), fields = text("c"), *parts[] = {&id, &fields}, entry = list(parts, 2),
		   *all[] = {&entry}, reply = list(all, 1);
	a->fn(a->arg, &reply);
}

/* Redis answers all that it was asked. */
static void redis_answers(void)
{
	for (size_t i = 0; i < n_asked; i++) {
		struct asked a = asked[i];
		redisReply place = text("5-0");
		if (strcmp(a.command, "GET") == 0)
			a.fn(a.arg, &place);
		else if (strcmp(a.command, "XREVRANGE") == 0)
			answer_end(&a);
		else if (strcmp(a.command, "XRANGE") == 0)
			answer_page(&a);
		else
			answer_wills(&a);
		ck_assert_uint_lt(i, ASKED);
	}
	n_asked = 0;
}

/* Ends all puts that were handed over: with HW_PUT_LOST the one with the number `lost` (-1: none), the others with
 * HW_PUT_TAKEN. */
static void broker_answers(int lost)
{
	size_t n = n_puts;
	struct put now[ASKED];
	memcpy(now, handed, sizeof(now));
	n_puts = 0;
	for (size_t i = 0; i < n; i++)
		now[i].fn(now[i].arg, (int)i == lost ? HW_PUT_LOST : HW_PUT_TAKEN, "");
}

static void setup(void)
{
	memset(&conf, 0, sizeof(conf));
	memset(&app, 0, sizeof(app));
	conf.redis.key_prefix = conf.id_prefix = (char *)(uintptr_t) "";
	app.conf = &conf;
	app.schedule = hw_schedule_new(&(struct hw_schedule_conf){.horizon_ms = 1000}, 1);
	n_asked = n_puts = tries = refuse_try = 0;
	page_read = false;
	memset(published, 0, sizeof(published));
	*saved = '\0';
	wills = hw_tasks_wills_new(&app);
	ck_assert_ptr_nonnull(wills);
	hook->on_up(hook->arg);
}

static void teardown(void)
{
	hw_tasks_wills_free(wills);
	hw_schedule_free(app.schedule);
}

static void each_once(void)
{
	for (int i = 0; i < 5; i++) {
		hw_tasks_wills_tick(wills);
		redis_answers();
		broker_answers(-1);
	}
	for (size_t i = 0; i < DEVICES; i++)
		ck_assert_msg(published[i] == 1, "the will of %c was published %u times", (char)('a' + i),
		              published[i]);
	ck_assert_str_eq(saved, "8-0");
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

START_TEST(all_are_taken)
{
	redis_answers();
	each_once();
}
END_TEST

/* The publisher had no room for one of the page. */
START_TEST(one_cannot_be_handed_over)
{
	refuse_try = 1 + (unsigned)_i;
	redis_answers();
	broker_answers(-1);
	ck_assert_str_eq(saved, "");
	each_once();
}
END_TEST

/* The connection was lost with one of the page. It is published again; that it was lost is all that is known. */
START_TEST(one_is_lost)
{
	redis_answers();
	ck_assert_uint_eq(n_puts, DEVICES);
	broker_answers(_i);
	ck_assert_str_eq(saved, "");
	published[_i]--;
	each_once();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("held wills");
	TCase *t = tcase_create("a page");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, all_are_taken);
	tcase_add_loop_test(t, one_cannot_be_handed_over, 0, DEVICES);
	tcase_add_loop_test(t, one_is_lost, 0, DEVICES);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return suite_run(suite());
}
