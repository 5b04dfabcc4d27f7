/* SPDX-License-Identifier: MIT */
/*
 * The simulation, as a test: some hundred seeds that break no promise; a seed whose repetition gives the same run; an
 * oracle that finds lies; and the mistakes of the failure detector, compared with theory.
 *
 * HW_SEED sets the first of the many seeds (default 1), HW_RUNS their number.
 */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "../suite.h"
#include "sim.h"

#define RUNS           150
#define FEW_RUNS       20
#define BEHIND         300 /* devices behind gateways: more than the core takes of a list at once */
#define DEVICES_A_KIND 2
#define LEARNING_DAYS  6
#define TRIES          6 /* one of this many seeds must find a lie, for each kind of trouble */

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Whether HW_FEW_ROUNDS is set. It leaves out most seeds, the lies and the statistics: a sanitizer checks how the
 * code reads and writes memory, and not what it decides. */
static bool few(void)
{
	return getenv("HW_FEW_ROUNDS") != NULL;
}

START_TEST(test_no_seed_breaks_a_promise)
{
	uint64_t seed = from_env("HW_SEED", 1), runs = from_env("HW_RUNS", few() ? FEW_RUNS : RUNS), transitions = 0;
	unsigned breaches = 0;
	struct sim_metrics metrics = {0};
	printf("HW_SEED=%" PRIu64 " HW_RUNS=%" PRIu64 "\n", seed, runs);
	for (uint64_t k = 0; k < runs; k++) {
		struct sim s;
		sim_init(&s, seed + k);
		s.tell = stdout;
		s.metrics = &metrics;
		sim_run(&s);
		breaches += s.breaches;
		sim_fini(&s);
	}
	transitions = metrics.transitions;
	sim_metrics_fini(&metrics);
	fflush(stdout);
	ck_assert_uint_eq(breaches, 0);
	ck_assert_uint_gt(transitions, 50 * runs); /* checks that much happened in the runs */
}
END_TEST

/* Seeds that were found among many. Each showed a fault of the core or of the oracle that was then mended. */
static const struct {
	uint64_t seed;
	const char *fault;
} mended[] = {
	{920775, "no fault: of barriers that hang behind a lost publisher's the last good one was long ago"},
};

START_TEST(test_what_broke_a_promise_keeps_it)
{
	struct sim s;
	sim_init(&s, mended[_i].seed);
	s.tell = stdout;
	sim_run(&s);
	ck_assert_msg(s.breaches == 0, "seed %" PRIu64 ": %s", mended[_i].seed, mended[_i].fault);
	sim_fini(&s);
}
END_TEST

static uint64_t hash_of(uint64_t seed)
{
	struct sim s;
	sim_init(&s, seed);
	sim_run(&s);
	uint64_t hash = s.hash;
	sim_fini(&s);
	return hash;
}

START_TEST(test_a_seed_replays_its_run)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t hash = hash_of(seed);
		ck_assert_uint_eq(hash, hash_of(seed));
		ck_assert_uint_ne(hash, hash_of(seed + 1));
	}
}
END_TEST

/* Lies that only a fleet behind a gateway can show. */
static bool is_of_lists(enum sim_lie lie)
{
	return lie == SIM_LEFT_OUT || lie == SIM_FIRST_ALONE;
}

/* Returns the breaches of a run without trouble in which half of the devices die. Only the lie is wrong. */
static unsigned breaches_of(enum sim_lie lie, bool gateways)
{
	struct sim s;
	sim_init(&s, 7);
	sim_plan_steady(&s, 10, 0, 3500, 100 * HW_NS_PER_S);
	if (gateways)
		sim_plan_gateways(&s, BEHIND, 1);
	s.plan.calm_ns = 60 * HW_NS_PER_S;
	s.plan.deaths = 0.7;
	s.lie = lie;
	sim_run(&s);
	unsigned n = s.breaches;
	sim_fini(&s);
	return n;
}

/* The same for devices that stop and return. Three heartbeats in a row bring a device online, and one device is the
 * parent of all. */
static unsigned breaches_of_returns(enum sim_lie lie, uint64_t seed)
{
	struct sim s;
	sim_init(&s, seed);
	sim_plan_steady(&s, 10, 0, 3500, 100 * HW_NS_PER_S);
	s.plan.calm_ns = 60 * HW_NS_PER_S;
	s.plan.deaths = 1;
	s.plan.online_after[0] = lie >= SIM_PARENT_LIES ? 1 : 3;
	s.plan.parent = true;
	s.lie = lie;
	sim_run(&s);
	unsigned n = s.breaches;
	sim_fini(&s);
	return n;
}

START_TEST(test_the_oracle_counts_what_brings_a_device_back)
{
	for (int lie = SIM_RETURNS_LIES; lie < SIM_ALL_LIES; lie++) {
		unsigned found = 0;
		for (uint64_t seed = 1; seed <= 2 * TRIES && found == 0; seed++) {
			ck_assert_uint_eq(breaches_of_returns(SIM_NO_LIE, seed), 0);
			found = breaches_of_returns((enum sim_lie)lie, seed);
		}
		ck_assert_msg(found > 0, "lie %d", lie);
	}
}
END_TEST

/* The same for a fleet that learns, in which devices die. *mistakes: for each kind of traffic, the mistakes per
 * device and day. */
static unsigned breaches_of_learning(enum sim_lie lie, uint64_t seed, double mistakes[SIM_TRAFFIC_KINDS])
{
	struct sim s;
	sim_init(&s, seed);
	sim_plan_learning(&s, DEVICES_A_KIND * SIM_TRAFFIC_KINDS, LEARNING_DAYS * SIM_DAY_NS,
	                  lie == SIM_NO_LIE && seed % 2 ? SIM_TROUBLES_MAX / 2 : 0);
	s.lie = lie;
	s.tell = lie == SIM_NO_LIE ? stdout : NULL;
	sim_run(&s);
	fflush(stdout);
	for (uint32_t i = 0; i < s.plan.devices; i++)
		mistakes[i % SIM_TRAFFIC_KINDS] +=
			s.oracle.watched[i].mistakes / (DEVICES_A_KIND * LEARNING_DAYS * 0.75);
	unsigned n = s.breaches;
	sim_fini(&s);
	return n;
}

/* With four mistakes a day configured, the mean of all kinds must be at most that, and no kind may make more than
 * 20. */
START_TEST(test_a_fleet_that_learns)
{
	uint64_t seed = from_env("HW_SEED", 1);
	double mistakes[SIM_TRAFFIC_KINDS] = {0}, sum = 0;
	ck_assert_uint_eq(breaches_of_learning(SIM_NO_LIE, seed, mistakes), 0);
	for (int k = 0; k < SIM_TRAFFIC_KINDS; k++) {
		printf("%s: %.2f mistakes a day\n", sim_traffic_name((enum sim_traffic_kind)k), mistakes[k]);
		ck_assert(mistakes[k] <= 20);
		sum += mistakes[k];
	}
	ck_assert(sum <= SIM_MISTAKES_A_DAY * SIM_TRAFFIC_KINDS);
	ck_assert(sum > 1); /* the timeouts are not simply long */
	for (int lie = SIM_LEARNING_LIES; lie < SIM_LEARNING_LIES_END; lie++)
		ck_assert_msg(breaches_of_learning((enum sim_lie)lie, seed, mistakes) > 0, "lie %d", lie);
}
END_TEST

START_TEST(test_the_oracle_finds_lies_out)
{
	bool gateways = is_of_lists((enum sim_lie)_i);
	ck_assert_uint_eq(breaches_of(SIM_NO_LIE, gateways), 0);
	ck_assert_msg(breaches_of((enum sim_lie)_i, gateways) > 0, "lie %d", _i);
	if (gateways)
		ck_assert_uint_eq(breaches_of((enum sim_lie)_i, false), 0);
}
END_TEST

/* A broker that stops publishes every will and then closes the connection: the reader finds its buffer full. */
START_TEST(test_wills_that_fill_a_buffer_explain_its_loss)
{
	struct sim s;
	sim_init(&s, 11);
	sim_plan_steady(&s, 10, 0, 3500, 40 * HW_NS_PER_S);
	s.plan.calm_ns = 60 * HW_NS_PER_S;
	s.plan.wills = 1;
	s.plan.buffer_bound = s.plan.devices;
	s.plan.troubles = 1;
	s.plan.trouble[0] = (struct sim_trouble){
		.kind = SIM_BROKER_RESTART, .at = 20 * HW_NS_PER_S + 1, .length_ns = 2 * HW_NS_PER_S};
	s.tell = stdout;
	sim_run(&s);
	fflush(stdout);
	ck_assert_int_gt(hw_monitor_blind(s.host.m)->cause_ns[HW_CAUSE_LOSS], 0);
	ck_assert_uint_eq(s.breaches, 0);
	sim_fini(&s);
}
END_TEST

/* A canary is on its way on a filter that delivers nothing when the monitor is suspended. When the monitor resumes,
 * the filter delivers again, and the loss before that is still new to the monitor. */
START_TEST(test_a_deafness_is_told_after_a_standstill)
{
	struct sim s;
	sim_init(&s, 12);
	sim_plan_steady(&s, 10, 0, 3500, 60 * HW_NS_PER_S);
	s.plan.calm_ns = 60 * HW_NS_PER_S;
	s.plan.troubles = 2;
	s.plan.trouble[0] =
		(struct sim_trouble){.kind = SIM_RIGHT_LOST, .at = 20 * HW_NS_PER_S, .length_ns = 5 * HW_NS_PER_S};
	s.plan.trouble[1] =
		(struct sim_trouble){.kind = SIM_HOST_STANDS, .at = 24 * HW_NS_PER_S, .length_ns = 11 * HW_NS_PER_S};
	s.tell = stdout;
	sim_run(&s);
	fflush(stdout);
	ck_assert_uint_gt(s.oracle.deaf[0].n, 0);
	ck_assert_uint_eq(s.breaches, 0);
	sim_fini(&s);
}
END_TEST

/* A timeout of silence by the store, and then three more periods of blindness: devices send little more than once a
 * timeout, and those whose heartbeat came during blindness are called offline by the limit of three. */
START_TEST(test_the_bound_of_three_timeouts_is_no_breach)
{
	uint64_t bounded = 0;
	for (uint64_t seed = 31; seed < 31 + TRIES && bounded == 0; seed++) {
		struct sim s;
		sim_init(&s, seed);
		sim_plan_steady(&s, 20, 0, 10000, 100 * HW_NS_PER_S);
		s.plan.calm_ns = 60 * HW_NS_PER_S;
		s.plan.interval_ns = 19 * HW_NS_PER_S / 2;
		s.plan.troubles = 5;
		s.plan.trouble[0] = (struct sim_trouble){
			.kind = SIM_HOST_DIES, .at = 20 * HW_NS_PER_S, .length_ns = 25 * HW_NS_PER_S};
		s.plan.trouble[1] = (struct sim_trouble){
			.kind = SIM_HOST_DIES, .at = 46 * HW_NS_PER_S, .length_ns = 2 * HW_NS_PER_S};
		s.plan.trouble[2] = (struct sim_trouble){
			.kind = SIM_BROKER_RESTART, .at = 51 * HW_NS_PER_S, .length_ns = HW_NS_PER_S};
		s.plan.trouble[3] = (struct sim_trouble){
			.kind = SIM_BROKER_RESTART, .at = 60 * HW_NS_PER_S, .length_ns = HW_NS_PER_S};
		s.plan.trouble[4] = (struct sim_trouble){
			.kind = SIM_BROKER_RESTART, .at = 69 * HW_NS_PER_S, .length_ns = 2 * HW_NS_PER_S};
		s.tell = stdout;
		sim_run(&s);
		fflush(stdout);
		bounded += s.oracle.bounded;
		ck_assert_uint_eq(s.breaches, 0);
		sim_fini(&s);
	}
	ck_assert_uint_gt(bounded, 0);
}
END_TEST

/* Returns whether one of TRIES seeds finds the lie, in runs with deaths and four troubles of one kind. */
static bool is_found(enum sim_lie lie, enum sim_trouble_kind kind, bool gateways)
{
	bool found = false;
	for (uint64_t seed = 1; seed <= (lie == SIM_NO_LIE ? 2 : TRIES) && !found; seed++) {
		struct sim s;
		sim_init(&s, seed);
		sim_plan_of_one_kind(&s, kind);
		if (gateways)
			sim_plan_gateways(&s, BEHIND, 2);
		s.lie = lie;
		sim_run(&s);
		found = s.breaches > 0;
		sim_fini(&s);
	}
	return found;
}

START_TEST(test_lies_are_found_out_on_every_kind_of_trouble)
{
	enum sim_trouble_kind kind = (enum sim_trouble_kind)_i;
	const char *name = sim_trouble_name(kind);
	ck_assert_msg(!is_found(SIM_NO_LIE, kind, false), "%s: a lie where there is none", name);
	ck_assert_msg(!is_found(SIM_NO_LIE, kind, true), "%s: a lie where there is none, of lists", name);
	for (enum sim_lie lie = SIM_NO_LIE + 1; lie < SIM_LIES; lie++)
		ck_assert_msg(is_found(lie, kind, is_of_lists(lie)), "%s: lie %d is not found", name, (int)lie);
}
END_TEST

/* That barriers are sent after statuses becomes visible if many devices send little more than once a timeout. */
static bool is_found_on_its_kind(enum sim_lie lie, enum sim_trouble_kind kind)
{
	bool found = false;
	for (uint64_t seed = 1; seed <= TRIES && !found; seed++) {
		struct sim s;
		sim_init(&s, seed);
		sim_plan_of_one_kind(&s, kind);
		s.plan.devices = 40;
		s.plan.reads_whole = false;
		s.plan.tight = true;
		s.plan.jitter = 0;
		s.plan.delay_ns = HW_NS_PER_MS / 5;
		s.plan.conf.barrier_slow_ms = 1000; /* otherwise a pause would be a standstill, and deadlines would
		                                     * wait for its end */
		s.plan.pipe_bound = s.plan.buffer_bound = 2000;
		s.lie = lie;
		sim_run(&s);
		found = s.breaches > 0;
		sim_fini(&s);
	}
	return found;
}

START_TEST(test_lies_of_one_kind_of_trouble_are_found_out)
{
	static const struct {
		enum sim_lie lie;
		enum sim_trouble_kind kind;
	} cases[] = {{SIM_TOGETHER, SIM_READS_ON}, {SIM_ANSWERED, SIM_BARRIERS_LOST}, {SIM_UNTOLD, SIM_BRIDGE_AWAY}};
	ck_assert_msg(!is_found_on_its_kind(SIM_NO_LIE, cases[_i].kind), "a lie where there is none");
	ck_assert_msg(is_found_on_its_kind(cases[_i].lie, cases[_i].kind), "lie %d is not found", (int)cases[_i].lie);
}
END_TEST

/* Single devices die and return behind a working gateway, which dies as well; its will says goodbye for all. */
START_TEST(test_lists_are_worked_off_over_several_turns)
{
	uint64_t leftovers = 0;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim s;
		sim_init(&s, seed);
		sim_plan_steady(&s, 10, 0, 3500, 100 * HW_NS_PER_S);
		sim_plan_gateways(&s, BEHIND, 2);
		s.plan.calm_ns = 60 * HW_NS_PER_S;
		s.plan.deaths = 1;
		s.plan.wills = 0.5;
		s.tell = stdout;
		sim_run(&s);
		ck_assert_uint_eq(s.breaches, 0);
		leftovers += s.host.leftovers;
		sim_fini(&s);
	}
	ck_assert_uint_gt(leftovers, 500);
}
END_TEST

/* --- the failure detector ---------------------------------------------------- */

/* Measures one device that sends a heartbeat each second. A message is lost with probability p. The timeout is k and
 * a half intervals. */
static void measure(double p, int k, uint64_t seed, struct sim_metrics *m)
{
	struct sim s;
	sim_init(&s, seed);
	sim_plan_steady(&s, 100, p, 1000 * k + 500,
	                (p < 0.2 ? 3000 : 1000) * HW_NS_PER_S); /* rare mistakes need a longer run */
	s.tell = stdout;
	s.metrics = m;
	sim_run(&s);
	ck_assert_uint_eq(s.breaches, 0);
	sim_fini(&s);
}

/* A mistake begins when a heartbeat that was heard is followed by k that are lost: (1 - p) p^k an interval. It lasts
 * until the next that gets through: half an interval, and 1 / p' - 1 more, where p' = 1 - p. */
START_TEST(test_mistakes_are_as_rare_as_theory_says)
{
	static const double ps[] = {0.05, 0.1, 0.3, 0.5};
	for (size_t i = 0; i < sizeof(ps) / sizeof(*ps); i++)
		for (int k = 1; k <= 3; k++) {
			struct sim_metrics m = {0};
			double p = ps[i];
			measure(p, k, 1000 + 10 * i + (uint64_t)k, &m);
			double n = (double)m.beats, rate = (1 - p) * pow(p, k), got = (double)m.mistakes / n;
			double sigma = sqrt(rate / n), lasts = sim_samples_mean(&m.mistake);
			double should = 0.5 + p / (1 - p), spread = sqrt(p) / (1 - p) / sqrt((double)m.mistake.n);
			printf("p %.2f k %d: %.6f mistakes an interval, theory %.6f (%+.1f sigma); "
			       "last %.3f s, theory %.3f\n",
			       p, k, got, rate, (got - rate) / sigma, lasts, should);
			fflush(stdout);
			ck_assert_msg(fabs(got - rate) < 4 * sigma, "p %g k %d: %g, not %g", p, k, got, rate);
			ck_assert_msg(fabs(lasts - should) < 4 * spread + 0.05, "p %g k %d: last %g", p, k, lasts);
			/* Chen, Toueg, Aguilera, theorem 1: accuracy = 1 - mistake duration x mistake rate. */
			double wrong = lasts * (double)m.mistakes / m.alive_s;
			ck_assert_double_eq_tol(m.right_s / m.alive_s, 1 - wrong, 0.002);
			sim_metrics_fini(&m);
		}
}
END_TEST

/* Without losses and troubles there is no mistake, and a death is found within the timeout, a tick and the time of
 * the barriers. */
START_TEST(test_deaths_are_found_in_time)
{
	struct sim_metrics m = {0};
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sim s;
		sim_init(&s, seed);
		sim_plan_steady(&s, 20, 0, 3500, 200 * HW_NS_PER_S);
		s.plan.calm_ns = 60 * HW_NS_PER_S;
		s.plan.deaths = 1;
		s.metrics = &m;
		sim_run(&s);
		ck_assert_uint_eq(s.breaches, 0);
		sim_fini(&s);
	}
	ck_assert_uint_eq(m.mistakes, 0);
	ck_assert_uint_gt(m.detection.n, 100);
	ck_assert_double_le(sim_samples_quantile(&m.detection, 1), 3.5 + 1.0 / 31 + 0.02);
	ck_assert_double_le(sim_samples_quantile(&m.delay, 1), 1.0 / 31 + 0.02);
	ck_assert_double_ge(sim_samples_quantile(&m.delay, 0), 0);
	sim_metrics_fini(&m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("simulation");
	TCase *tc = tcase_create("runs");
	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, test_no_seed_breaks_a_promise);
	tcase_add_loop_test(tc, test_what_broke_a_promise_keeps_it, 0, sizeof(mended) / sizeof(*mended));
	tcase_add_test(tc, test_a_seed_replays_its_run);
	tcase_add_test(tc, test_the_oracle_counts_what_brings_a_device_back);
	if (!few())
		tcase_add_loop_test(tc, test_the_oracle_finds_lies_out, SIM_NO_LIE + 1, SIM_LIES);
	tcase_add_test(tc, test_wills_that_fill_a_buffer_explain_its_loss);
	tcase_add_test(tc, test_a_deafness_is_told_after_a_standstill);
	tcase_add_test(tc, test_lists_are_worked_off_over_several_turns);
	tcase_add_test(tc, test_the_bound_of_three_timeouts_is_no_breach);
	if (!few())
		tcase_add_test(tc, test_mistakes_are_as_rare_as_theory_says);
	tcase_add_test(tc, test_deaths_are_found_in_time);
	tcase_add_test(tc, test_a_fleet_that_learns);
	suite_add_tcase(suite, tc);
	if (few())
		return suite_run(suite);
	tc = tcase_create("lies");
	tcase_set_timeout(tc, 600);
	tcase_add_loop_test(tc, test_lies_are_found_out_on_every_kind_of_trouble, 0, SIM_TROUBLE_KINDS);
	tcase_add_loop_test(tc, test_lies_of_one_kind_of_trouble_are_found_out, 0, SIM_RETURNS_LIES - SIM_LIES);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
