/* SPDX-License-Identifier: MIT */
/*
 * The scheduler against a naive twin: an array of tasks with their due times, which answers as Redis would. Random
 * operations in virtual time. Each claim must be of a task that is due as far as the scheduler knows, and each due task
 * must be claimed in time, whatever was lost.
 *
 * The seed is printed; HW_SEED sets it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "tasks/schedule/schedule.h"

#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define TASKS    300
#define STEPS    6000
#define STEP_MS  20
#define BEGIN_MS INT64_C(1790000000000)
#define LATE_MS  3000 /* what is due is claimed within that */
#define OUT      8    /* orders under way */

struct out {
	bool is;
	int64_t at; /* its answer arrives then */
	bool fails, vanishes;
	struct hw_schedule_order order;
};

static struct hw_schedule *s;
static struct {
	struct hw_task_id id;
	int64_t due, since; /* -1: it is not there; since when it may be claimed */
	uint32_t receiver;
} twin[TASKS];
static struct out outs[OUT];
static int64_t now_ms, up_since;
static bool up;
static unsigned rate, instances;
static uint64_t sent, claims;

static int64_t below(int64_t n)
{
	return sim_below(&random_state, n);
}

static bool chance(double p)
{
	return sim_chance(&random_state, p);
}

static struct hw_mono mono(void)
{
	return (struct hw_mono){now_ms * HW_NS_PER_MS};
}

static int64_t redis_ms(void)
{
	return BEGIN_MS + now_ms;
}

static int twin_of(const struct hw_task_id *id)
{
	for (int k = 0; k < TASKS; k++)
		if (memcmp(&twin[k].id, id, sizeof(*id)) == 0)
			return k;
	return -1;
}

static void set_due(int k, int64_t due)
{
	twin[k].due = due;
	twin[k].since = due < redis_ms() ? redis_ms() : due;
}

/* --- Redis -------------------------------------------------------------------------------------------------------- */

static int by_due(const void *a, const void *b)
{
	const struct hw_schedule_found *x = a, *y = b;
	if (x->due_ms != y->due_ms)
		return x->due_ms < y->due_ms ? -1 : 1;
	return memcmp(&x->task, &y->task, sizeof(x->task));
}

static void answer_page(const struct hw_schedule_order *o)
{
	struct hw_schedule_found found[TASKS];
	int64_t until = o->until_ms == INT64_MAX ? redis_ms() : o->until_ms;
	size_t n = 0;
	for (int k = 0; k < TASKS; k++)
		if (twin[k].due >= o->from_ms && twin[k].due >= 0 && twin[k].due <= until)
			found[n++] = (struct hw_schedule_found){twin[k].id, twin[k].receiver, twin[k].due, false};
	qsort(found, n, sizeof(*found), by_due);
	size_t from = o->skip < n ? o->skip : n, count = n - from < o->count ? n - from : o->count;
	hw_schedule_page(s, mono(), o->serial, redis_ms(), found + from, count);
}

static void answer_claim(const struct hw_schedule_order *o)
{
	struct hw_schedule_claimed claimed[HW_CLAIM_MAX];
	for (size_t k = 0; k < o->n; k++) {
		int t = twin_of(&o->tasks[k]);
		MUST(t >= 0);
		claimed[k] = (struct hw_schedule_claimed){.task = o->tasks[k], .due_ms = 0};
		if (twin[t].due < 0)
			continue;
		if (twin[t].due <= redis_ms()) {
			claimed[k].sent = true;
			sent++;
			set_due(t, chance(0.5) ? -1 : redis_ms() + below(20000));
		}
		claimed[k].due_ms = twin[t].due < 0 ? 0 : twin[t].due;
	}
	hw_schedule_claimed(s, mono(), o->serial, redis_ms(), claimed, o->n);
}

static void answer(void)
{
	for (int k = 0; k < OUT; k++) {
		if (!outs[k].is || outs[k].at > now_ms)
			continue;
		outs[k].is = false;
		if (outs[k].vanishes || !up)
			continue;
		if (outs[k].fails)
			hw_schedule_failed(s, mono(), outs[k].order.serial);
		else if (outs[k].order.kind == HW_SCHEDULE_CLAIM)
			answer_claim(&outs[k].order);
		else
			answer_page(&outs[k].order);
	}
}

/* --- what is pulled ----------------------------------------------------------------------------------------------- */

static void check_claim(const struct hw_schedule_order *o)
{
	unsigned out = 1;
	MUST(o->n > 0 && o->n <= HW_CLAIM_MAX);
	for (int k = 0; k < OUT; k++)
		out += outs[k].is && !outs[k].vanishes && outs[k].order.kind == HW_SCHEDULE_CLAIM;
	MUST(out <= HW_CLAIMS_OUT);
	for (size_t k = 0; k < o->n; k++) {
		for (size_t j = 0; j < k; j++)
			MUST(memcmp(&o->tasks[k], &o->tasks[j], sizeof(o->tasks[k])) != 0);
		MUST(twin_of(&o->tasks[k]) >= 0);
	}
	claims += o->n;
}

static void pull(bool trouble)
{
	struct hw_schedule_order o;
	while (hw_schedule_next(s, mono(), &o)) {
		int k = 0;
		MUST(up);
		if (o.kind == HW_SCHEDULE_CLAIM)
			check_claim(&o);
		while (k < OUT && outs[k].is)
			k++;
		MUST(k < OUT);
		outs[k] = (struct out){true, now_ms + below(40), trouble && chance(0.02), trouble && chance(0.005), o};
	}
	MUST(hw_schedule_due(s, mono()).ns > mono().ns || !up);
}

/* A task that has been due for long, while Redis was there, was claimed. */
static void check_late(int64_t calm_since)
{
	int64_t late = LATE_MS + (int64_t)instances * HW_RANK_MS;
	for (int k = 0; k < TASKS && up && now_ms - up_since > late && now_ms - calm_since > late && rate == 0; k++)
		MUST(twin[k].due < 0 || redis_ms() - twin[k].since <= late);
}

static void change(void)
{
	int k = (int)below(TASKS);
	if (chance(0.7)) {
		bool tells = chance(0.6);
		/* If another instance moves a task forward, this one knows that only after it reads the set again:
		 * within LATE_MS. */
		set_due(k, redis_ms() + below(chance(0.5) ? 3000 : 400000));
		if (tells)
			hw_schedule_put(s, mono(), twin[k].id, twin[k].receiver, twin[k].due);
	} else {
		twin[k].due = -1;
		if (chance(0.5))
			hw_schedule_drop(s, twin[k].id);
	}
}

static void check_stats(void)
{
	struct hw_schedule_stats stats;
	hw_schedule_stats(s, &stats);
	MUST(stats.known <= TASKS && stats.waiting <= stats.known);
	MUST(stats.sent <= sent && stats.claimed == claims);
	if (rate) /* of a rate the burst is a tenth of a second */
		MUST((double)stats.sent <= rate * (double)now_ms / 1000 + rate / 10.0 + 1);
}

static void run(void)
{
	static const char *const names[] = {"a", "b", "c"};
	int64_t calm_since = 0;
	instances = (unsigned)below(3) + 1;
	rate = chance(0.3) ? (unsigned)below(200) + 1 : 0;
	struct hw_schedule_conf conf = {.horizon_ms = 2000 + below(60000), .clock_hold_ms = 60000, .rate = rate};
	s = hw_schedule_new(&conf, random64());
	MUST(s);
	memset(outs, 0, sizeof(outs));
	now_ms = 1000;
	sent = claims = 0;
	hw_schedule_instances(s, names, instances, "a");
	for (int k = 0; k < TASKS; k++) {
		for (size_t b = 0; b < sizeof(twin[k].id.bytes); b++)
			twin[k].id.bytes[b] = (uint8_t)random64();
		twin[k].receiver = (uint32_t)below(20);
		twin[k].due = -1;
		if (chance(0.5))
			set_due(k, redis_ms() + below(60000) - 30000);
	}
	hw_schedule_up(s, mono());
	up = true;
	up_since = now_ms;
	for (unsigned step = 0; step < STEPS; step++, now_ms += STEP_MS) {
		bool trouble = step % 3000 < 1000;
		if (trouble)
			calm_since = now_ms + HW_ORDER_PATIENCE_MS;
		if (trouble && chance(0.005)) {
			up = !up;
			up_since = now_ms;
			(up ? hw_schedule_up : hw_schedule_down)(s, mono());
		} else if (!trouble && !up) {
			up = true;
			up_since = now_ms;
			hw_schedule_up(s, mono());
		}
		if (chance(0.2))
			change();
		answer();
		pull(trouble);
		check_late(calm_since);
		check_stats();
	}
	MUST(sent > 10); /* 750 as a rule; 92 in the run in which Redis was hardly ever up */
	hw_schedule_free(s);
}

START_TEST(test_the_scheduler_does_what_its_twin_says)
{
	random_begin(random_seed_of_now());
	for (int k = 0; k < 12; k++)
		run();
}
END_TEST

/* --- a year in the wheel ------------------------------------------------------------------------------------------ */

#define YEAR_MS    (INT64_C(366) * 86400 * 1000)
#define YEAR_TASKS 3000
#define TICK_MS    (1000 / 31 + 1)

static int64_t year_due[YEAR_TASKS]; /* -1: it was claimed */

static struct hw_task_id year_id(unsigned k)
{
	struct hw_task_id id = {{0}};
	memcpy(id.bytes, &k, sizeof(k));
	return id;
}

/* Zero; a tick and its neighbours; each power of two of ticks, where a level of the wheel ends, and its neighbours;
 * and any other delay, small or large. */
static int64_t year_delay(unsigned k)
{
	int64_t ticks = (INT64_C(1) << (k / 3 % 30)) + k % 3 - 1, ms = ticks * 1000 / 31;
	if (k < 90)
		return ms > YEAR_MS ? YEAR_MS : ms;
	if (k < 93)
		return k - 90;
	return k == 93 ? YEAR_MS : k % 2 ? below(YEAR_MS + 1) : below((YEAR_MS >> below(35)) + 1);
}

/* All tasks are in the wheel. The search for overdue tasks finds none, so only the wheel can have caused a claim. */
static void year_turn(unsigned *left)
{
	struct hw_schedule_order o;
	while (hw_schedule_next(s, mono(), &o)) {
		struct hw_schedule_claimed claimed[HW_CLAIM_MAX];
		if (o.kind == HW_SCHEDULE_READ) {
			hw_schedule_page(s, mono(), o.serial, redis_ms(), NULL, 0);
			continue;
		}
		for (size_t i = 0; i < o.n; i++) {
			unsigned k;
			memcpy(&k, o.tasks[i].bytes, sizeof(k));
			MUST(year_due[k] >= 0);
			MUST(redis_ms() >= year_due[k]);
			MUST(redis_ms() - year_due[k] <= 2 * TICK_MS);
			year_due[k] = -1;
			claimed[i] = (struct hw_schedule_claimed){.task = o.tasks[i], .sent = true};
		}
		hw_schedule_claimed(s, mono(), o.serial, redis_ms(), claimed, o.n);
		*left -= (unsigned)o.n;
	}
}

/* Passes time until the scheduler wants to be called. If nothing is due for long, some of these calls are left out,
 * as for a suspended process: so the year is over soon, and the wheel does many rounds at once. */
static void year_pass(void)
{
	int64_t next = INT64_MAX, wanted_ms = (hw_schedule_due(s, mono()).ns + HW_NS_PER_MS - 1) / HW_NS_PER_MS;
	for (unsigned k = 0; k < YEAR_TASKS; k++)
		if (year_due[k] >= 0 && year_due[k] < next)
			next = year_due[k];
	int64_t ahead = next - redis_ms();
	now_ms = wanted_ms > now_ms ? wanted_ms : now_ms + 1;
	if (next != INT64_MAX && ahead > 5000)
		now_ms += ahead - 5000 - below(1000);
}

START_TEST(test_delays_of_up_to_366_days_come_out_of_the_wheel)
{
	struct hw_schedule_conf conf = {.horizon_ms = YEAR_MS, .clock_hold_ms = 60000};
	struct hw_schedule_stats stats;
	unsigned left = YEAR_TASKS;
	random_begin(random_seed_of_now());
	now_ms = 1000;
	s = hw_schedule_new(&conf, random64());
	MUST(s);
	hw_schedule_up(s, mono());
	for (unsigned k = 0; k < YEAR_TASKS; k++)
		year_due[k] = INT64_MAX - 1;
	year_turn(&left);
	for (unsigned k = 0; k < YEAR_TASKS; k++) {
		year_due[k] = redis_ms() + year_delay(k);
		hw_schedule_put(s, mono(), year_id(k), 7, year_due[k]);
	}
	hw_schedule_stats(s, &stats);
	MUST(stats.known == YEAR_TASKS);
	for (uint64_t turns = 0; left > 0; turns++) {
		MUST(turns < 1000000);
		year_turn(&left);
		year_pass();
	}
	hw_schedule_stats(s, &stats);
	MUST(now_ms >= YEAR_MS && stats.overdue == 0 && stats.known == 0);
	hw_schedule_free(s);
}
END_TEST

/* At most 64 bytes a task, whatever their number. */
START_TEST(test_a_task_costs_at_most_64_bytes)
{
	struct hw_schedule_conf conf = {.horizon_ms = 600000};
	struct hw_schedule_order o;
	struct hw_schedule_stats stats;
	random_begin(1);
	now_ms = 1000;
	s = hw_schedule_new(&conf, 1);
	MUST(s);
	hw_schedule_up(s, mono());
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ);
	hw_schedule_page(s, mono(), o.serial, redis_ms(), NULL, 0);
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ && o.until_ms >= redis_ms() + 600000);
	for (unsigned k = 0; k < 200000; k++) {
		struct hw_task_id id;
		for (size_t b = 0; b < sizeof(id.bytes); b++)
			id.bytes[b] = (uint8_t)random64();
		hw_schedule_put(s, mono(), id, 7, redis_ms() + 1000 + below(500000));
		hw_schedule_stats(s, &stats);
		MUST(stats.known == k + 1);
		MUST(k < 1000 || stats.bytes <= 64 * stats.known);
	}
	hw_schedule_free(s);
}
END_TEST

/* An empty answer to the present request for a page, from a Redis whose clock is ahead by this much. */
static void turn_empty_page(int64_t ahead_ms)
{
	struct hw_schedule_order o;
	while (hw_schedule_next(s, mono(), &o)) {
		MUST(o.kind == HW_SCHEDULE_READ);
		hw_schedule_page(s, mono(), o.serial, redis_ms() + ahead_ms, NULL, 0);
	}
	MUST(hw_schedule_due(s, mono()).ns > mono().ns);
}

START_TEST(test_a_clock_that_jumps_is_held)
{
	struct hw_schedule_conf conf = {.horizon_ms = 10000, .clock_hold_ms = 60000};
	struct hw_schedule_order o;
	const struct hw_task_id id = {{1}};
	now_ms = 1000;
	s = hw_schedule_new(&conf, 1);
	MUST(s);
	hw_schedule_up(s, mono());
	MUST(hw_schedule_next(s, mono(), &o));
	hw_schedule_failed(s, mono(), o.serial);
	MUST(hw_schedule_due(s, mono()).ns > mono().ns); /* nor does the loop turn while the time of Redis is unknown */
	now_ms += 1000;
	turn_empty_page(0);
	hw_schedule_put(s, mono(), id, 1, redis_ms() + 8000);
	now_ms += 1000;
	turn_empty_page(86400000);
	MUST(hw_schedule_clock_held(s, mono()) && hw_schedule_latest_ms(s, mono()) == 0);
	for (int k = 0; k < 30; k++, now_ms += 1000) /* no claim: turn_empty_page() would say so */
		turn_empty_page(86400000);
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ);
	hw_schedule_page(s, mono(), o.serial, redis_ms(), NULL, 0);
	MUST(!hw_schedule_clock_held(s, mono()));
	MUST(hw_schedule_latest_ms(s, mono()) == redis_ms() + HW_CLOCK_STEP_MS);
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_CLAIM && o.n == 1);
	hw_schedule_free(s);
}
END_TEST

/* A hold counts only while the clock is observed: the clock may have gone back and returned unobserved. */
START_TEST(test_a_hold_counts_while_the_clock_is_seen)
{
	struct hw_schedule_conf conf = {.horizon_ms = 10000, .clock_hold_ms = 60000};
	now_ms = 1000;
	s = hw_schedule_new(&conf, 1);
	MUST(s);
	hw_schedule_up(s, mono());
	turn_empty_page(0);
	now_ms += 1000;
	turn_empty_page(86400000);
	MUST(hw_schedule_clock_held(s, mono()));
	now_ms += 61000; /* the process was suspended: neither that time alone ends the hold, nor the first answer
	                  * after it */
	MUST(hw_schedule_clock_held(s, mono()) && hw_schedule_latest_ms(s, mono()) == 0);
	turn_empty_page(86400000);
	MUST(hw_schedule_clock_held(s, mono()));
	for (int k = 0; k < 59; k++) {
		now_ms += 1000;
		turn_empty_page(86400000);
		MUST(hw_schedule_clock_held(s, mono()));
	}
	now_ms += 2000;
	turn_empty_page(86400000);
	MUST(!hw_schedule_clock_held(s, mono()));
	hw_schedule_free(s);
}
END_TEST

/* An answer that waited while this process was suspended has an old time: the next answer is no step ahead. */
START_TEST(test_an_old_answer_tells_no_time)
{
	struct hw_schedule_conf conf = {.horizon_ms = 10000, .clock_hold_ms = 60000};
	struct hw_schedule_order o;
	now_ms = 1000;
	s = hw_schedule_new(&conf, 1);
	MUST(s);
	hw_schedule_up(s, mono());
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ);
	int64_t then = redis_ms();
	now_ms += 90000;
	struct hw_schedule_found found = {{{1}}, 1, then - 5000, false};
	hw_schedule_page(s, mono(), o.serial, then, &found, 1);
	now_ms += 1000;
	turn_empty_page(0);
	MUST(!hw_schedule_clock_held(s, mono()));
	now_ms += 1000;
	MUST(hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ);
	hw_schedule_page(s, mono(), o.serial, redis_ms(), &found, 1); /* nor is a task put where no time is */
	while (hw_schedule_next(s, mono(), &o) && o.kind == HW_SCHEDULE_READ)
		hw_schedule_page(s, mono(), o.serial, redis_ms(), NULL, 0);
	MUST(o.kind == HW_SCHEDULE_CLAIM && o.n == 1);
	hw_schedule_claimed(s, mono(), o.serial, redis_ms(), &(struct hw_schedule_claimed){found.task, true, 0}, 1);
	now_ms += 90000;
	for (int k = 0; k < 20; k++) /* of others, as many as there may be */
		hw_schedule_clock(s, mono(), redis_ms() - 90000);
	turn_empty_page(0);
	MUST(!hw_schedule_clock_held(s, mono()) && hw_schedule_redis_ms(s, mono()) == redis_ms());
	hw_schedule_free(s);
}
END_TEST

/* Every instance has another rank, and all ranks from 0 on are used. */
START_TEST(test_ranks_are_a_permutation)
{
	static const char *const names[] = {"node-1", "node-2", "node-3", "node-4"};
	unsigned firsts[4] = {0};
	struct hw_schedule_conf conf = {.horizon_ms = 600000};
	s = hw_schedule_new(&conf, 1);
	MUST(s);
	for (uint32_t receiver = 0; receiver < 1000; receiver++) {
		unsigned seen = 0;
		for (size_t k = 0; k < 4; k++) {
			hw_schedule_instances(s, names, 4, names[k]);
			unsigned rank = hw_schedule_rank(s, receiver);
			MUST(rank < 4);
			seen |= 1U << rank;
			firsts[k] += rank == 0;
		}
		MUST(seen == 15);
	}
	for (size_t k = 0; k < 4; k++)
		MUST(firsts[k] > 150 && firsts[k] < 350);
	hw_schedule_instances(s, names, 1, names[0]);
	MUST(hw_schedule_rank(s, 5) == 0);
	hw_schedule_free(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schedule of tasks");
	TCase *tc = tcase_create("schedule");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_the_scheduler_does_what_its_twin_says);
	tcase_add_test(tc, test_delays_of_up_to_366_days_come_out_of_the_wheel);
	tcase_add_test(tc, test_a_task_costs_at_most_64_bytes);
	tcase_add_test(tc, test_a_clock_that_jumps_is_held);
	tcase_add_test(tc, test_a_hold_counts_while_the_clock_is_seen);
	tcase_add_test(tc, test_an_old_answer_tells_no_time);
	tcase_add_test(tc, test_ranks_are_a_permutation);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
