/* SPDX-License-Identifier: MIT */
/* What is owed to the broker, and in which order it goes: here the publisher is a list of what it has taken. */
#include "../suite.h"
#include "daemon/retained/retained_sink.h"
#include "world.h"

#define DEVICES 2000
#define ROOM    10 /* messages that the publisher takes at a time */
#define AHEAD   100

struct hw_publisher {
	unsigned room;
	size_t n, acked;
	uint32_t device[2 * DEVICES]; /* whose message it was */
	uint64_t publish_id[2 * DEVICES];
};

/* These two stand before libmqtt's. */
unsigned hw_publisher_room(const struct hw_publisher *p)
{
	return p->room;
}

bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what)
{
	world_must(p->room > 0 && p->n < 2 * DEVICES);
	p->room--;
	p->device[p->n] = (uint32_t)(what->subject & ~HW_RETAINED_PUBLISH_ID_KIND) - 1;
	p->publish_id[p->n++] = what->publish_id;
	return true;
}

static bool wanted(const struct hw_retained_sink *s, const struct hw_group *g)
{
	(void)s, (void)g;
	return true;
}

static uint64_t version(const struct hw_device *d)
{
	return d->seq;
}

static int topic(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap)
{
	(void)s, (void)d;
	return snprintf(buf, cap, "x");
}

static int payload(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
                   size_t cap)
{
	(void)now;
	return topic(s, d, buf, cap);
}

static const struct hw_retained_kind kind = {.pending = HW_PENDING_STATUS,
                                             .queued = HW_QUEUED_STATUS,
                                             .publish_id = UINT64_C(0x4000000000000000),
                                             .wanted = wanted,
                                             .version = version,
                                             .topic = topic,
                                             .payload = payload};
static struct world *w;
static struct hw_publisher publisher;
static struct hw_retained_sink pending;
static bool told[DEVICES], dropped[DEVICES];
static unsigned refusals;

static void on_published(void *arg, struct hw_ref device, bool cleared)
{
	(void)arg, (void)cleared;
	told[device.index] = true;
}

static void on_dropped(void *arg, struct hw_ref device)
{
	(void)arg;
	dropped[device.index] = true;
	hw_monitor_reap(w->m, device);
}

static void on_refused(void *arg, const struct hw_device *d)
{
	(void)arg, (void)d;
	refusals++;
}

static void begin(void)
{
	const struct hw_group_spec group = world_group("g", 3600000);
	const struct hw_monitor_conf conf = world_conf();
	char id[16];
	w = world_new(&conf, &group, 1);
	world_connect(w);
	for (unsigned k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		world_beat(w, id, "");
	}
	memset(&publisher, 0, sizeof(publisher));
	memset(told, 0, sizeof(told));
	memset(dropped, 0, sizeof(dropped));
	hw_retained_init(&pending, &kind);
	pending.m = w->m;
	pending.publisher = &publisher;
	pending.on_published = on_published;
	pending.on_dropped = on_dropped;
	pending.on_refused = on_refused;
	refusals = 0;
	pending.sweep.rate = 1000000;
}

static void end(void)
{
	hw_retained_fini(&pending);
	world_free(w);
}

/* The broker acknowledges what it has, the publisher has room again, and takes as much as it can. */
static void go_on(void)
{
	unsigned budget = 4096;
	while (publisher.acked < publisher.n)
		hw_retained_acked(&pending, publisher.publish_id[publisher.acked++]);
	world_pass(w, 50 * MS);
	publisher.room = ROOM;
	hw_retained_pump(&pending, w->now, &budget);
}

static size_t times_told(uint32_t device)
{
	size_t n = 0;
	for (size_t k = 0; k < publisher.n; k++)
		n += publisher.device[k] == device;
	return n;
}

/* Its next message is taken: no message is pending, so none is old. */
START_TEST(test_a_refusal_ends_with_the_last_pending_message)
{
	const struct hw_ref device = hw_registry_ref(hw_monitor_registry(w->m), 0);
	hw_retained_add(&pending, 0);
	ck_assert_int_eq(hw_retained_release(&pending, device, w->now.mono.ns / MS), 0);
	go_on();
	ck_assert_uint_eq(publisher.n, 1);
	hw_retained_refused(&pending, publisher.publish_id[publisher.acked++], w->now.mono.ns / MS);
	world_pass(w, 20 * S);
	ck_assert_int_eq(hw_retained_oldest_ms(&pending, w->now.mono.ns / MS), 20000);
	ck_assert_int_eq(hw_retained_release(&pending, device, w->now.mono.ns / MS), 0);
	go_on();
	go_on();
	ck_assert_uint_eq(publisher.n, 2);
	ck_assert_uint_eq(pending.pending, 0);
	ck_assert_int_eq(hw_retained_oldest_ms(&pending, w->now.mono.ns / MS), 0);
}
END_TEST

/* The device changes while its message is in flight. The refusal of the old message says nothing about the new one,
 * which the broker may still accept. */
START_TEST(test_a_refusal_of_an_older_message_does_not_count_for_the_present_one)
{
	const struct hw_ref device = hw_registry_ref(hw_monitor_registry(w->m), 0);
	hw_retained_add(&pending, 0);
	for (unsigned n = 0; n < 2; n++) {
		ck_assert_int_eq(hw_retained_release(&pending, device, w->now.mono.ns / MS), 0);
		go_on();
		ck_assert_uint_eq(publisher.n, n + 1);
		if (n == 0)
			hw_registry_at(hw_monitor_registry(w->m), 0)->seq++;
		hw_retained_refused(&pending, publisher.publish_id[publisher.acked++], w->now.mono.ns / MS);
		ck_assert_uint_eq(refusals, n);
		ck_assert_uint_eq(pending.pending, 1);
	}
}
END_TEST

/* After a reconnect everybody's message is owed again, and a broker may be slow to take so many. */
START_TEST(test_news_go_before_what_is_sent_again)
{
	const uint32_t last = DEVICES - 1;
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	go_on();
	ck_assert_uint_eq(publisher.n, ROOM);
	hw_retained_add(&pending, last);
	ck_assert_int_eq(
		hw_retained_release(&pending, hw_registry_ref(hw_monitor_registry(w->m), last), w->now.mono.ns / MS),
		0);
	size_t before = publisher.n;
	while (!times_told(last) && publisher.n < DEVICES)
		go_on();
	ck_assert_uint_eq(times_told(last), 1);
	ck_assert_uint_le(publisher.n - before, AHEAD);
}
END_TEST

static void expect_each_once(void)
{
	for (int k = 0; k < 2 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	ck_assert(!pending.sweeping && hw_retained_idle(&pending));
	for (uint32_t i = 0; i < DEVICES; i++)
		if (!told[i] || times_told(i) != 1)
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
	ck_assert_uint_eq(pending.pending, 0);
}

START_TEST(test_everybody_is_told_again)
{
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	expect_each_once();
}
END_TEST

/* Its status may have gone out while Redis was late, to a broker that has forgotten it: it waits for Redis, and goes.
 */
START_TEST(test_whose_state_is_not_stored_yet_is_told_again_once_it_is)
{
	struct hw_device *d = hw_registry_at(hw_monitor_registry(w->m), 7);
	hw_device_note(d, HW_PENDING_STORE, true);
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	for (int k = 0; k < 2 * DEVICES / ROOM && (pending.sweeping || pending.pending > 1); k++)
		go_on();
	ck_assert_uint_eq(times_told(7), 0);
	ck_assert_uint_eq(pending.pending, 1);
	hw_device_note(d, HW_PENDING_STORE, false);
	ck_assert_int_eq(
		hw_retained_release(&pending, hw_registry_ref(hw_monitor_registry(w->m), 7), w->now.mono.ns / MS), 0);
	go_on();
	go_on();
	ck_assert_uint_eq(times_told(7), 1);
	ck_assert_uint_eq(pending.pending, 0);
}
END_TEST

/* --- one of several nodes -------------------------------------------------------- */

/* Another node owns every second partition, or not any more. */
static void give_away(enum hw_role role)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p += 2)
		hw_monitor_role(w->m, p, role, 1);
}

static bool is_given_away(uint32_t index)
{
	return hw_device_partition(hw_registry_at(hw_monitor_registry(w->m), index)) % 2 == 0;
}

static void owe_all(void)
{
	for (uint32_t i = 0; i < DEVICES; i++) {
		hw_retained_add(&pending, i);
		ck_assert_int_eq(hw_retained_release(&pending, hw_registry_ref(hw_monitor_registry(w->m), i), 0), 0);
	}
}

static void expect_only_ours(void)
{
	for (int k = 0; k < 2 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	ck_assert(!pending.sweeping && hw_retained_idle(&pending));
	for (uint32_t i = 0; i < DEVICES; i++)
		if (times_told(i) != !is_given_away(i))
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
	ck_assert_uint_eq(pending.pending, 0);
}

START_TEST(test_what_another_node_owns_is_not_owed)
{
	give_away(HW_ROLE_WATCHES);
	owe_all();
	ck_assert_uint_lt(pending.pending, DEVICES);
	expect_only_ours();
}
END_TEST

START_TEST(test_what_is_owed_is_given_up_with_its_partition)
{
	owe_all();
	ck_assert_uint_eq(pending.pending, DEVICES);
	give_away(HW_ROLE_WATCHES);
	expect_only_ours();
	give_away(HW_ROLE_OWNS);
	owe_all();
	ck_assert_uint_eq(pending.pending, DEVICES);
}
END_TEST

START_TEST(test_what_another_node_owns_is_not_told_again)
{
	give_away(HW_ROLE_WATCHES);
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	expect_only_ours();
}
END_TEST

/* The broker may have what the one before did not mean to say last. */
START_TEST(test_partitions_that_were_taken_over_are_told_again)
{
	struct hw_partitions one = {{0}}, other = {{0}};
	for (unsigned p = 1; p < HW_PARTITIONS; p += 4)
		hw_partitions_add(&one, p);
	for (unsigned p = 3; p < HW_PARTITIONS; p += 4)
		hw_partitions_add(&other, p);
	hw_retained_republish_of(&pending, &one, w->now.mono.ns / MS);
	go_on();
	hw_retained_republish_of(&pending, &other, w->now.mono.ns / MS);
	for (int k = 0; k < 4 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	for (uint32_t i = 0; i < DEVICES; i++)
		if (is_given_away(i) ? times_told(i) > 0 : times_told(i) == 0)
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
	hw_retained_republish_of(&pending, &one, w->now.mono.ns / MS);
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	hw_retained_republish_of(&pending, &other, w->now.mono.ns / MS);
	for (int k = 0; k < 4 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	for (uint32_t i = 0; i < DEVICES; i++)
		if (is_given_away(i) && times_told(i) != 1)
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
}
END_TEST

/* Each partition comes while the devices of the one before are still being published. */
START_TEST(test_partitions_that_come_one_by_one_are_told_once)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++) {
		struct hw_partitions one = {{0}};
		hw_partitions_add(&one, p);
		hw_retained_republish_of(&pending, &one, w->now.mono.ns / MS);
		go_on();
	}
	for (int k = 0; k < 2 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	ck_assert(!pending.sweeping && hw_retained_idle(&pending));
	for (uint32_t i = 0; i < DEVICES; i++)
		if (times_told(i) != 1)
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
}
END_TEST

/* The removal of the device was not published: another node has to do it. */
START_TEST(test_what_a_stop_leaves_unsent_is_known)
{
	struct hw_partitions one = {{0}}, other = {{0}}, left;
	hw_partitions_add(&one, 1);
	hw_partitions_add(&other, 3);
	hw_retained_republish_of(&pending, &one, w->now.mono.ns / MS);
	hw_retained_republish_of(&pending, &other, w->now.mono.ns / MS);
	left = hw_retained_unswept(&pending);
	ck_assert(hw_partitions_has(&left, 1) && hw_partitions_has(&left, 3) && hw_partitions_count(&left) == 2);
	for (int k = 0; k < 4 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	left = hw_retained_unswept(&pending);
	ck_assert(!hw_partitions_any(&left));
	hw_retained_end_sweeps(&pending);
	left = hw_retained_unswept(&pending);
	ck_assert(!hw_partitions_any(&left));
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	hw_retained_republish_of(&pending, &other, w->now.mono.ns / MS);
	hw_retained_end_sweeps(&pending);
	ck_assert(!pending.sweeping);
	left = hw_retained_unswept(&pending);
	ck_assert_uint_eq(hw_partitions_count(&left), HW_PARTITIONS);
	size_t before = publisher.n;
	go_on();
	ck_assert_uint_eq(publisher.n, before);
}
END_TEST

/* What is counted of each partition is what a look at all devices finds. */
static void expect_counts(const uint32_t of[HW_PARTITIONS])
{
	const struct hw_registry *r = hw_monitor_registry(w->m);
	uint32_t found[HW_PARTITIONS] = {0};
	for (uint32_t i = 0; i < hw_registry_bound(r); i++) {
		const struct hw_device *d = hw_registry_at(r, i);
		if (d && hw_device_noted(d, HW_PENDING_STATUS))
			found[hw_device_partition(d)]++;
	}
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		ck_assert_uint_eq(of[p], found[p]);
}

START_TEST(test_what_is_owed_is_counted_by_partition)
{
	uint32_t of[HW_PARTITIONS] = {0};
	pending.pending_of = of;
	owe_all();
	owe_all();
	expect_counts(of);
	for (int k = 0; k < DEVICES / ROOM / 2; k++) {
		go_on();
		expect_counts(of);
	}
	ck_assert_uint_gt(pending.pending, 0);
	give_away(HW_ROLE_WATCHES);
	while (!hw_retained_idle(&pending)) {
		go_on();
		expect_counts(of);
	}
	ck_assert_uint_eq(pending.pending, 0);
}
END_TEST

START_TEST(test_what_is_given_up_is_reaped)
{
	struct hw_registry *r = hw_monitor_registry(w->m);
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct hw_id id = hw_device_id(hw_registry_at(r, i));
		ck_assert(hw_monitor_forget(w->m, w->now, id.text, id.len));
		world_drain(w);
	}
	owe_all();
	unsigned budget = 4 * DEVICES;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		hw_monitor_role(w->m, p, HW_ROLE_WATCHES, 0);
	publisher.room = ROOM;
	hw_retained_pump(&pending, w->now, &budget);
	ck_assert_uint_eq(publisher.n, 0);
	ck_assert_uint_eq(pending.pending, 0);
	ck_assert_uint_eq(hw_registry_count(r), 0);
	for (uint32_t i = 0; i < DEVICES; i++)
		if (told[i] || !dropped[i])
			ck_abort_msg("device %u", i);
}
END_TEST

/* It waits for the store, say. */
START_TEST(test_what_never_came_into_the_line_is_given_up_too)
{
	struct hw_partitions none = {{0}};
	for (uint32_t i = 0; i < DEVICES; i++)
		hw_retained_add(&pending, i);
	give_away(HW_ROLE_WATCHES);
	hw_retained_republish_of(&pending, &none, w->now.mono.ns / MS);
	while (pending.sweeping)
		go_on();
	ck_assert_uint_eq(publisher.n, 0);
	for (uint32_t i = 0; i < DEVICES; i++)
		if (dropped[i] != is_given_away(i) || hw_device_noted(hw_registry_at(hw_monitor_registry(w->m), i),
		                                                      HW_PENDING_STATUS) == is_given_away(i))
			ck_abort_msg("device %u", i);
}
END_TEST

/* With republish_rate = 0. */
static void refuse_all(void)
{
	pending.sweep.rate = 0;
	owe_all();
	while (!hw_retained_idle(&pending)) {
		while (publisher.acked < publisher.n)
			hw_retained_refused(&pending, publisher.publish_id[publisher.acked++], w->now.mono.ns / MS);
		go_on();
	}
	ck_assert_uint_eq(pending.pending, DEVICES);
	publisher.n = publisher.acked = 0;
}

START_TEST(test_without_a_rate_what_was_refused_is_published_again)
{
	struct hw_partitions unswept;
	const struct hw_ref first = hw_registry_ref(hw_monitor_registry(w->m), 0);
	refuse_all();
	hw_retained_release(&pending, first, w->now.mono.ns / MS);
	while (!hw_retained_idle(&pending))
		go_on();
	ck_assert_uint_eq(pending.pending, DEVICES - 1);
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	unswept = hw_retained_unswept(&pending);
	ck_assert(!hw_partitions_any(&unswept));
	ck_assert_int_eq(hw_retained_wait_ms(&pending), 10);
	expect_each_once();
}
END_TEST

START_TEST(test_without_a_rate_what_was_refused_is_given_up_with_its_partition)
{
	const struct hw_partitions none = {{0}};
	refuse_all();
	give_away(HW_ROLE_WATCHES);
	hw_retained_republish_of(&pending, &none, w->now.mono.ns / MS);
	for (int k = 0; k < DEVICES && pending.sweeping; k++)
		go_on();
	ck_assert_uint_eq(publisher.n, 0);
	for (uint32_t i = 0; i < DEVICES; i++)
		ck_assert_int_eq(dropped[i], is_given_away(i));
	hw_retained_republish(&pending, w->now.mono.ns / MS);
	expect_only_ours();
}
END_TEST

/* --- the fence at the broker ------------------------------------------------------ */

static bool fence_is_open;
static unsigned asked;

/* Every second partition is behind the fence. */
static bool may_go(void *arg, const struct hw_device *d)
{
	(void)arg;
	asked++;
	return fence_is_open || hw_device_partition(d) % 2;
}

static void go_on_until_idle(void)
{
	for (int k = 0; k < 4 * DEVICES / ROOM && (pending.sweeping || !hw_retained_idle(&pending)); k++)
		go_on();
	ck_assert(!pending.sweeping && hw_retained_idle(&pending));
}

static void expect_told(bool fenced)
{
	for (uint32_t i = 0; i < DEVICES; i++)
		if (times_told(i) != (fenced || !is_given_away(i)))
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
}

static void begin_fenced(void)
{
	begin();
	pending.may_go = may_go;
	fence_is_open = false;
	owe_all();
	go_on_until_idle();
	expect_told(false);
	ck_assert_uint_gt(pending.pending, DEVICES / 3);
}

START_TEST(test_what_may_not_go_is_held)
{
	unsigned budget = 4096;
	asked = 0;
	ck_assert(!hw_retained_pump(&pending, w->now, &budget));
	ck_assert_int_eq(hw_retained_wait_ms(&pending), -1);
	ck_assert_uint_eq(budget, 4096);
	ck_assert_uint_eq(asked, 0);
	ck_assert_int_ge(hw_retained_oldest_ms(&pending, w->now.mono.ns / MS), DEVICES / ROOM / 2 * 50);
	uint64_t held = pending.pending;
	hw_retained_retry(&pending); /* without success */
	go_on_until_idle();
	ck_assert_uint_eq(asked, held);
	ck_assert_uint_eq(pending.pending, held);
	fence_is_open = true;
	hw_retained_retry(&pending);
	go_on_until_idle();
	expect_told(true);
	ck_assert_uint_eq(pending.pending, 0);
}
END_TEST

/* What was in flight with a session that is lost is behind the fence of the next. */
START_TEST(test_what_was_in_flight_is_held)
{
	unsigned budget = 4096;
	fence_is_open = true;
	hw_retained_retry(&pending);
	publisher.room = ROOM;
	hw_retained_pump(&pending, w->now, &budget);
	ck_assert_uint_eq(pending.in_flight, ROOM);
	fence_is_open = false;
	hw_retained_down(&pending);
	publisher.n = publisher.acked = 0;
	go_on_until_idle();
	ck_assert_uint_eq(publisher.n, 0);
	fence_is_open = true;
	hw_retained_retry(&pending);
	go_on_until_idle();
	for (uint32_t i = 0; i < DEVICES; i++)
		if (times_told(i) != is_given_away(i))
			ck_abort_msg("device %u was told %zu times", i, times_told(i));
	ck_assert_uint_eq(pending.pending, 0);
}
END_TEST

START_TEST(test_what_is_held_is_given_up_with_its_partition)
{
	const struct hw_partitions none = {{0}};
	give_away(HW_ROLE_WATCHES);
	hw_retained_republish_of(&pending, &none, w->now.mono.ns / MS);
	go_on_until_idle();
	expect_told(false);
	ck_assert_uint_eq(pending.pending, 0);
	for (uint32_t i = 0; i < DEVICES; i++)
		ck_assert_int_eq(dropped[i], is_given_away(i));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("retained_sink");
	TCase *t = tcase_create("order");
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, test_a_refusal_ends_with_the_last_pending_message);
	tcase_add_test(t, test_a_refusal_of_an_older_message_does_not_count_for_the_present_one);
	tcase_add_test(t, test_news_go_before_what_is_sent_again);
	tcase_add_test(t, test_everybody_is_told_again);
	tcase_add_test(t, test_whose_state_is_not_stored_yet_is_told_again_once_it_is);
	tcase_add_test(t, test_what_another_node_owns_is_not_owed);
	tcase_add_test(t, test_what_is_owed_is_given_up_with_its_partition);
	tcase_add_test(t, test_what_another_node_owns_is_not_told_again);
	tcase_add_test(t, test_partitions_that_were_taken_over_are_told_again);
	tcase_add_test(t, test_partitions_that_come_one_by_one_are_told_once);
	tcase_add_test(t, test_what_a_stop_leaves_unsent_is_known);
	tcase_add_test(t, test_what_is_owed_is_counted_by_partition);
	tcase_add_test(t, test_what_is_given_up_is_reaped);
	tcase_add_test(t, test_what_never_came_into_the_line_is_given_up_too);
	tcase_add_test(t, test_without_a_rate_what_was_refused_is_published_again);
	tcase_add_test(t, test_without_a_rate_what_was_refused_is_given_up_with_its_partition);
	suite_add_tcase(s, t);
	t = tcase_create("fence");
	tcase_add_checked_fixture(t, begin_fenced, end);
	tcase_add_test(t, test_what_may_not_go_is_held);
	tcase_add_test(t, test_what_was_in_flight_is_held);
	tcase_add_test(t, test_what_is_held_is_given_up_with_its_partition);
	suite_add_tcase(s, t);
	return suite_run(s);
}
