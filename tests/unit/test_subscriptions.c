/* SPDX-License-Identifier: MIT */
/* The subscriptions that the readers get, at the start and at a reload for which one reader has no memory. */
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "daemon/broker/broker_priv.h"

static struct hw_settings settings = {.mqtt = {.protocol = 5}};
static struct hw_app_broker broker = {.n_readers = 2};
static struct hw_app app = {.conf = &settings, .start = &settings, .broker = &broker};

/* Used instead of libmqtt's function: there are no readers, and the filters are recorded in `told`. */
static char told[512];
static unsigned sets, refused_from;

int hw_reader_set_filters(struct hw_reader *r, const struct hw_mqtt_filter *filters, size_t n)
{
	(void)r;
	if (++sets > refused_from)
		return -ENOMEM;
	told[0] = '\0';
	for (size_t i = 0; i < n; i++)
		strcat(strcat(strcat(strcat(told, filters[i].replay ? "*" : ""), filters[i].plain ? "!" : ""),
		              filters[i].filter),
		       " ");
	return 0;
}

void hw_reader_reconnect(struct hw_reader *r)
{
	(void)r;
}

static const char *answers; /* of probes */
static size_t n_whiles;

static void begin(enum hw_store_type store)
{
	static const char *const a[] = {"a/{id}/x", "a/{id}/#", "a/+/{id}"}, *const b[] = {"b/{id}"};
	static const char *const bye[] = {"a/{id}/lwt off", "b/{id} off", "c/{id}"};
	static const char *const whiles[] = {"s/gw online=true"};
	static const struct hw_group_spec groups[] = {{.name = "a",
	                                               .heartbeat = a,
	                                               .n_heartbeat = 3,
	                                               .goodbye = bye,
	                                               .n_goodbye = 1,
	                                               .status = "s/{id}",
	                                               .id = "{id}",
	                                               .id_prefix = "",
	                                               .timeout_ms = 1000,
	                                               .timeout_max_ms = 1000},
	                                              {.name = "b",
	                                               .heartbeat = b,
	                                               .n_heartbeat = 1,
	                                               .goodbye = bye + 1,
	                                               .n_goodbye = 2,
	                                               .status = "b/{id}",
	                                               .id = "{id}",
	                                               .id_prefix = "b-",
	                                               .timeout_ms = 1000,
	                                               .timeout_max_ms = 1000}};
	struct hw_group_spec with[] = {groups[0], groups[1]};
	with[1].whiles = whiles;
	with[1].n_whiles = n_whiles;
	const struct hw_monitor_conf conf = {
		.max_devices = 10, .readers = 2, .ttl_factor = 3, .probe_answers = answers};
	static const unsigned char key[16];
	static char readers[2]; /* which nobody looks into */
	for (unsigned i = 0; i < 2; i++)
		broker.reader[i].reader = (struct hw_reader *)&readers[i];
	settings.store = (int)store;
	sets = 0;
	app.monitor = hw_monitor_new(&conf, with, 2, key, (struct hw_now){.mono = {1}, .wall_ms = 1});
	ck_assert_ptr_nonnull(app.monitor);
}

static void end(void)
{
	hw_copies_fini(&broker.copies);
	hw_monitor_free(app.monitor);
}

/* Each filter once, and none that another one covers. */
START_TEST(the_groups_filters_are_subscribed_to)
{
	begin(HW_STORE_REDIS);
	refused_from = 2;
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_uint_eq(sets, 2);
	ck_assert_str_eq(told, "a/+/# b/+ c/+ ");
	end();
}
END_TEST

/* What nodes say of themselves comes to one reader alone, in no shared subscription. */
START_TEST(reader_0_hears_the_other_nodes)
{
	static char some;
	begin(HW_STORE_REDIS);
	app.cluster = (struct hw_app_cluster *)&some;
	refused_from = 1;
	ck_assert_int_eq(hw_app_subscribe(&app, false), -ENOMEM);
	ck_assert_str_eq(told, "a/+/# b/+ c/+ *!heartwheel/+/status *!heartwheel/+/known ");
	sets = 0;
	refused_from = 2;
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_str_eq(told, "a/+/# b/+ c/+ ");
	app.cluster = NULL;
	end();
}
END_TEST

/* The topic on which probes are answered, unless a group's filter brings it. */
START_TEST(answers_to_probes_are_subscribed_to)
{
	answers = "nodes/n/ack";
	begin(HW_STORE_REDIS);
	refused_from = 2;
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_str_eq(told, "a/+/# b/+ c/+ nodes/n/ack ");
	end();
	answers = "a/n/ack";
	begin(HW_STORE_REDIS);
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_str_eq(told, "a/+/# b/+ c/+ ");
	end();
	answers = NULL;
}
END_TEST

/* Retained statuses are requested, also where a heartbeat's filter brings the same topics without retained messages.
 * Only one reader requests them, because a broker sends no retained message to a shared subscription. */
START_TEST(without_a_store_statuses_are_replayed)
{
	begin(HW_STORE_MEMORY);
	refused_from = 1;
	ck_assert_int_eq(hw_app_subscribe(&app, false), -ENOMEM);
	ck_assert_str_eq(told, "a/+/# *!s/+ *!b/+ c/+ ");
	sets = 0;
	refused_from = 2;
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_str_eq(told, "a/+/# c/+ ");
	end();
}
END_TEST

/* A topic of `while` that is a status too: reader 0 alone gets it, by a filter of its own, and no other reader does. */
START_TEST(topics_of_while_are_of_reader_0)
{
	n_whiles = 1;
	begin(HW_STORE_MEMORY);
	refused_from = 1;
	ck_assert_int_eq(hw_app_subscribe(&app, false), -ENOMEM);
	ck_assert_str_eq(told, "a/+/# *!s/+ *!b/+ c/+ *!s/gw ");
	sets = 0;
	refused_from = 2;
	ck_assert_int_eq(hw_app_subscribe(&app, false), 0);
	ck_assert_str_eq(told, "a/+/# c/+ ");
	end();
	n_whiles = 0;
}
END_TEST

/* The filters that were allocated for the readers are freed, whichever reader refuses them. */
START_TEST(what_cannot_be_set_is_freed)
{
	enum { ROUNDS = 2000 };
	begin(HW_STORE_REDIS);
	refused_from = 0;
	ck_assert_int_eq(hw_app_subscribe(&app, false), -ENOMEM);
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < ROUNDS; i++) {
		sets = 0;
		refused_from = i % 2;
		ck_assert_int_eq(hw_app_subscribe(&app, false), -ENOMEM);
		ck_assert_uint_eq(sets, 1 + i % 2);
	}
	/* a sanitizer says 0 here, and looks for itself */
	ck_assert_uint_lt(mallinfo2().uordblks, before + ROUNDS * sizeof(struct hw_mqtt_filter));
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("subscriptions");
	TCase *t = tcase_create("all");
	tcase_add_test(t, the_groups_filters_are_subscribed_to);
	tcase_add_test(t, reader_0_hears_the_other_nodes);
	tcase_add_test(t, answers_to_probes_are_subscribed_to);
	tcase_add_test(t, without_a_store_statuses_are_replayed);
	tcase_add_test(t, topics_of_while_are_of_reader_0);
	tcase_add_test(t, what_cannot_be_set_is_freed);
	suite_add_tcase(s, t);
	return suite_run(s);
}
