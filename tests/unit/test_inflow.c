/* SPDX-License-Identifier: MIT */
/* Messages and signs of a source on their way into the monitor: everything in the order in which it was read. */
#include "../suite.h"
#include "core/monitor_priv.h"
#include "heartwheel/inflow.h"
#include "world.h"

#define LIST (2 * HW_ELEMENTS + 44) /* elements: what three calls take */

static struct world *w;
static struct hw_inflow f;
static unsigned calls;
static size_t taken;
static bool over; /* the turn is, after each call */

static bool on_taken(void *arg, struct hw_now now, size_t n)
{
	ck_assert_ptr_eq(arg, &w);
	ck_assert_int_eq(now.mono.ns, w->now.mono.ns);
	calls++;
	taken += n;
	world_drain(w);
	return hw_inflow_left(&f) && over;
}

static void setup(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g[2] = {world_group("default", 30000), world_group("lists", 30000)};
	static const char *const lists[] = {"lists/+"};
	g[1].heartbeat = lists;
	g[1].n_heartbeat = 1;
	g[1].status = NULL;
	g[1].batch = true;
	w = world_new(&conf, g, 2);
	world_connect(w);
	f = (struct hw_inflow){.source = 0, .on_taken = on_taken, .arg = &w};
	calls = 0;
	taken = 0;
	over = false;
}

static void teardown(void)
{
	world_free(w);
}

static struct hw_message message(const char *topic, const char *payload)
{
	return (struct hw_message){
		.topic = topic, .topic_len = strlen(topic), .payload = payload, .payload_len = strlen(payload)};
}

/* A list of so many devices. */
static const char *list(unsigned n)
{
	static char text[LIST * 8];
	char *at = text;
	for (unsigned k = 0; k < n; k++)
		at += sprintf(at, "%c\"d%u\"", k ? ',' : '[', k);
	strcpy(at, "]");
	return text;
}

static uint32_t known(void)
{
	return hw_registry_count(hw_monitor_registry(w->m));
}

START_TEST(test_messages_go_in_by_the_batch)
{
	static char topic[HW_BATCH + 1][32];
	ck_assert(hw_inflow_begin(&f, w->m, w->now));
	for (unsigned k = 0; k <= HW_BATCH; k++) {
		ck_assert_uint_eq(calls, 0);
		if (k == HW_BATCH)
			break;
		sprintf(topic[k], "nodes/d%u/heartbeat", k);
		ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
		*hw_inflow_slot(&f) = message(topic[k], "");
	}
	ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
	ck_assert_uint_eq(calls, 1);
	ck_assert_uint_eq(taken, HW_BATCH);
	*hw_inflow_slot(&f) = message("nodes/last/heartbeat", "");
	ck_assert(hw_inflow_flush(&f, w->m, w->now));
	ck_assert_uint_eq(taken, HW_BATCH + 1);
	ck_assert_uint_eq(known(), HW_BATCH + 1);
}
END_TEST

/* What is no message comes when all that was read before it is worked off, however many turns that takes. */
START_TEST(test_a_sign_waits_for_what_was_read_before_it)
{
	unsigned turns = 1;
	over = true;
	ck_assert(hw_inflow_begin(&f, w->m, w->now));
	ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
	*hw_inflow_slot(&f) = message("lists/x", list(LIST));
	ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
	*hw_inflow_slot(&f) = message("nodes/last/heartbeat", "");
	ck_assert(!hw_inflow_takes(&f, w->m, w->now, false));
	ck_assert(f.holding);
	for (; !hw_inflow_begin(&f, w->m, w->now); turns++)
		ck_assert(f.holding && !world_device(w, "last"));
	ck_assert_uint_eq(turns, 2);
	ck_assert_uint_eq(known(), LIST + 1);
	ck_assert(hw_inflow_takes(&f, w->m, w->now, false));
	ck_assert(!f.holding && f.n == 0);
	ck_assert_uint_eq(taken, 2);
}
END_TEST

/* A turn that is not over works a long message off by itself. */
START_TEST(test_what_is_left_is_given_again_in_the_same_turn)
{
	ck_assert(hw_inflow_begin(&f, w->m, w->now));
	ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
	*hw_inflow_slot(&f) = message("lists/x", list(LIST));
	ck_assert(hw_inflow_flush(&f, w->m, w->now));
	ck_assert_uint_eq(calls, 3);
	ck_assert_uint_eq(known(), LIST);
}
END_TEST

/* Each turn in which messages come, those that are left of the one before among them, says so before they do: once. */
START_TEST(test_the_source_has_arrived_once_a_turn)
{
	const struct hw_sight_source *s = &w->m->sight.source[0];
	over = true;
	world_pass(w, S);
	int64_t was_ns = s->arrived.ns;
	ck_assert(hw_inflow_begin(&f, w->m, w->now));
	ck_assert(hw_inflow_takes(&f, w->m, w->now, false));
	ck_assert_int_eq(s->arrived.ns, was_ns);
	ck_assert(hw_inflow_takes(&f, w->m, w->now, true));
	ck_assert_int_eq(s->arrived.ns, w->now.mono.ns);
	*hw_inflow_slot(&f) = message("lists/x", list(LIST));
	ck_assert(!hw_inflow_flush(&f, w->m, w->now));
	w->now.mono.ns += MS;
	ck_assert(!hw_inflow_begin(&f, w->m, w->now));
	ck_assert_int_eq(s->arrived.ns, w->now.mono.ns);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inflow");
	TCase *tc = tcase_create("inflow");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_messages_go_in_by_the_batch);
	tcase_add_test(tc, test_a_sign_waits_for_what_was_read_before_it);
	tcase_add_test(tc, test_what_is_left_is_given_again_in_the_same_turn);
	tcase_add_test(tc, test_the_source_has_arrived_once_a_turn);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
