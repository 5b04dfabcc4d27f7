/* SPDX-License-Identifier: MIT */
/*
 * See schedule.h.
 *
 * Invariant: a known task is in exactly one place: in the wheel, in the queue of due tasks (`ready`), or in a claim
 * that is not answered yet. The answer to a claim puts the task back into the wheel or removes it.
 */
#include "tasks/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "heartwheel/fnv.h"
#include "heartwheel/wheel.h"
#include "tasks/schedule/redis_clock.h"
#include "tasks/schedule/task_table.h"

#define TURN_BUDGET  4096 /* moves in the wheel per call */
#define READY_ENOUGH 4096 /* the OVERDUE walk reads no further page while this many tasks are due */
#define RETRY_MS     1000 /* delay before a failed order is repeated */
#define IDLE_MS      60000
#define LATEST_MS    INT64_C(253402300800000) /* the year 10000 */

struct claim {
	uint64_t serial; /* 0: free */
	struct hw_mono at;
	uint32_t entries[HW_CLAIM_MAX];
	size_t n;
};

/* A walk through the tasks in Redis in order of due time, page by page. The walk OVERDUE finds overdue tasks, HORIZON
 * the next ones. */
struct walk {
	bool going;
	int64_t from_ms, until_ms;
	size_t skip;
	struct hw_mono next; /* when the next walk begins */
};

enum walk_kind { OVERDUE, HORIZON, WALKS };

struct hw_schedule {
	struct hw_schedule_conf conf;
	bool up;
	struct hw_task_table table;
	struct hw_wheel wheel;
	struct hw_queue ready;
	int64_t base_ms; /* Redis' clock at tick 0; 0: no answer yet */
	uint64_t serials;
	struct claim claims[HW_CLAIMS_OUT];

	struct walk walks[WALKS];
	uint64_t page_serial; /* serial of the unanswered page order; 0: none */
	enum walk_kind page_of;
	size_t page_count;
	struct hw_mono page_at;
	int64_t read_until_ms; /* all tasks that are due before this were read */

	struct hw_redis_clock clock;

	double credit;
	struct hw_mono tokens_at;

	uint32_t instances[HW_INSTANCES_MAX];
	size_t n_instances;
	uint32_t self;
	struct hw_schedule_stats stats;
};

static struct hw_mono after_ms(struct hw_mono t, int64_t ms)
{
	return hw_mono_add(t, ms * HW_NS_PER_MS);
}

struct hw_schedule *hw_schedule_new(const struct hw_schedule_conf *conf, uint64_t seed)
{
	struct hw_schedule *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	s->clock.hold_ms = conf->clock_hold_ms;
	hw_task_table_init(&s->table, seed);
	hw_wheel_init(&s->wheel, NULL, sizeof(struct hw_task_entry), (struct hw_tick){0});
	hw_queue_init(&s->ready);
	return s;
}

void hw_schedule_free(struct hw_schedule *s)
{
	if (!s)
		return;
	hw_task_table_fini(&s->table);
	free(s);
}

void hw_schedule_set_rate(struct hw_schedule *s, unsigned rate)
{
	s->conf.rate = rate;
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

static bool is_clock_known(const struct hw_schedule *s)
{
	return hw_redis_clock_is_known(&s->clock);
}

int64_t hw_schedule_redis_ms(const struct hw_schedule *s, struct hw_mono now)
{
	return hw_redis_clock_ms(&s->clock, now);
}

/* Converts Redis' time to the wheel's time. If a time is before the base, the result is negative, and the task is
 * due at tick 0. */
static struct hw_seen since_base(const struct hw_schedule *s, int64_t redis_ms)
{
	int64_t ms = redis_ms - s->base_ms;
	return (struct hw_seen){ms < INT64_MAX / HW_NS_PER_MS ? ms * HW_NS_PER_MS : INT64_MAX};
}

static struct hw_tick present(const struct hw_schedule *s, struct hw_mono now)
{
	return hw_tick_floor(since_base(s, hw_schedule_redis_ms(s, now)));
}

static unsigned rank_of(const struct hw_schedule *s, const struct hw_task_entry *e)
{
	return e->node.user & HW_ENTRY_OWN ? 0 : hw_schedule_rank(s, e->receiver);
}

static struct hw_tick tick_of(const struct hw_schedule *s, const struct hw_task_entry *e)
{
	return hw_tick_ceil(since_base(s, e->due_ms + (int64_t)rank_of(s, e) * HW_RANK_MS));
}

static struct hw_task_entry *at(const struct hw_schedule *s, uint32_t i)
{
	return &s->table.entries[i];
}

static bool is_in_wheel(const struct hw_schedule *s, uint32_t i)
{
	return at(s, i)->node.place < HW_WHEEL_LEVELS;
}

static bool is_ready(const struct hw_schedule *s, uint32_t i)
{
	return at(s, i)->node.place == HW_PLACE_QUEUE;
}

/* Moves all entries into a new wheel that starts at the present time, because Redis' clock has gone back and the
 * wheel cannot go back. */
static void rebuild(struct hw_schedule *s, struct hw_mono now)
{
	s->base_ms = hw_schedule_redis_ms(s, now);
	hw_wheel_init(&s->wheel, s->table.entries, sizeof(struct hw_task_entry), (struct hw_tick){0});
	for (uint32_t i = 0; i < s->table.used; i++) {
		if (!(at(s, i)->node.user & HW_ENTRY_KNOWN) || !is_in_wheel(s, i))
			continue;
		uint8_t user = at(s, i)->node.user;
		hw_node_init(&at(s, i)->node);
		at(s, i)->node.user = user;
		hw_wheel_add(&s->wheel, i, tick_of(s, at(s, i)));
	}
	s->stats.rebuilt++;
}

static void take_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms)
{
	if (!hw_redis_clock_take(&s->clock, now, redis_ms))
		return;
	if (!s->base_ms)
		s->base_ms = hw_schedule_redis_ms(s, now);
	else if (!s->clock.held && present(s, now).n + HW_TICKS_PER_S < s->wheel.cursor)
		rebuild(s, now);
}

/*
 * Takes the clock from the answer to an order. Ignores an answer that took longer than HW_ORDER_PATIENCE_MS: its time
 * is old, for example because this process was stopped. Otherwise, after several late answers, the next timely one
 * would seem to show that the clock was set ahead.
 */
static void take_order_clock(struct hw_schedule *s, struct hw_mono now, struct hw_mono asked, int64_t redis_ms)
{
	if (now.ns <= after_ms(asked, HW_ORDER_PATIENCE_MS).ns)
		take_clock(s, now, redis_ms);
}

/* Takes the clock from a message of unknown age. Ignores a much earlier time, because the message may be old. If the
 * clock was set back, the next order shows it. */
void hw_schedule_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms)
{
	if (is_clock_known(s) && redis_ms >= hw_schedule_redis_ms(s, now) - HW_ORDER_PATIENCE_MS)
		take_clock(s, now, redis_ms);
}

bool hw_schedule_clock_held(const struct hw_schedule *s, struct hw_mono now)
{
	(void)now;
	return s->clock.held;
}

int64_t hw_schedule_latest_ms(const struct hw_schedule *s, struct hw_mono now)
{
	if (!is_clock_known(s) || s->conf.clock_hold_ms == 0)
		return LATEST_MS;
	return hw_schedule_clock_held(s, now) ? 0 : hw_schedule_redis_ms(s, now) + HW_CLOCK_STEP_MS;
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

uint32_t hw_schedule_receiver(const char *name, size_t len)
{
	return hw_fnv32(name, len);
}

/* Mixes the bits of two hashes. An attacker gains nothing by choosing them, so no secret key is needed. */
static uint64_t weight(uint32_t instance, uint32_t receiver)
{
	uint64_t x = (uint64_t)instance << 32 | receiver;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void hw_schedule_instances(struct hw_schedule *s, const char *const *names, size_t n, const char *self)
{
	s->self = hw_fnv32(self, strlen(self));
	s->n_instances = 0;
	for (size_t k = 0; k < n && s->n_instances < HW_INSTANCES_MAX; k++) {
		uint32_t name = hw_fnv32(names[k], strlen(names[k]));
		if (name != s->self)
			s->instances[s->n_instances++] = name;
	}
}

unsigned hw_schedule_rank(const struct hw_schedule *s, uint32_t receiver)
{
	unsigned rank = 0;
	uint64_t ours = s->n_instances ? weight(s->self, receiver) : 0;
	for (size_t k = 0; k < s->n_instances; k++)
		rank += weight(s->instances[k], receiver) > ours;
	return rank;
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static void arm(struct hw_schedule *s, uint32_t i)
{
	hw_wheel_add(&s->wheel, i, tick_of(s, at(s, i)));
}

static void disarm(struct hw_schedule *s, uint32_t i)
{
	if (is_in_wheel(s, i))
		hw_wheel_del(&s->wheel, i);
	else if (is_ready(s, i))
		hw_queue_del(&s->wheel, &s->ready, i);
}

static void forget(struct hw_schedule *s, uint32_t i)
{
	disarm(s, i);
	hw_task_table_del(&s->table, i);
	hw_wheel_rebase(&s->wheel, s->table.entries);
}

static int64_t known_until_ms(const struct hw_schedule *s)
{
	const struct walk *w = &s->walks[HORIZON];
	return w->going && w->until_ms > s->read_until_ms ? w->until_ms : s->read_until_ms;
}

/* Returns whether the task was unknown before. */
static bool put(struct hw_schedule *s, struct hw_task_id task, uint32_t receiver, int64_t due_ms, uint8_t flags)
{
	uint32_t i = hw_task_table_find(&s->table, &task);
	bool is_new = i == HW_NIL;
	if (is_new) {
		i = hw_task_table_add(&s->table, &task);
		if (i == HW_NIL) {
			s->stats.no_memory++;
			return false;
		}
		hw_wheel_rebase(&s->wheel, s->table.entries);
	}
	struct hw_task_entry *e = at(s, i);
	bool is_out = !is_new && !is_in_wheel(s, i) && !is_ready(s, i);
	e->receiver = receiver;
	if (is_ready(s, i) || (is_in_wheel(s, i) && e->due_ms == due_ms && !(flags & ~e->node.user)))
		return false;
	e->node.user |= flags;
	e->due_ms = due_ms;
	if (is_out) {
		e->node.user |= HW_ENTRY_MOVED;
		return false;
	}
	disarm(s, i);
	arm(s, i);
	return is_new;
}

void hw_schedule_put(struct hw_schedule *s, struct hw_mono now, struct hw_task_id task, uint32_t receiver,
                     int64_t due_ms)
{
	(void)now;
	if (due_ms <= known_until_ms(s))
		put(s, task, receiver, due_ms, HW_ENTRY_OWN);
	else
		hw_schedule_drop(s, task);
}

void hw_schedule_drop(struct hw_schedule *s, struct hw_task_id task)
{
	uint32_t i = hw_task_table_find(&s->table, &task);
	if (i != HW_NIL && (is_in_wheel(s, i) || is_ready(s, i)))
		forget(s, i);
}

/* Moves due tasks to the queue. The rank of this instance for a task's receiver may have grown since the task was
 * armed. The task is then due later, and is armed again. */
static void turn(struct hw_schedule *s, struct hw_mono now)
{
	unsigned budget = TURN_BUDGET;
	struct hw_tick until = present(s, now);
	uint32_t i;
	while (budget > 0 && (i = hw_wheel_take(&s->wheel, until, &budget)) != HW_NIL)
		if (tick_of(s, at(s, i)).n > until.n)
			arm(s, i);
		else
			hw_queue_push(&s->wheel, &s->ready, i, 0);
}

/* --- claims ------------------------------------------------------------------------------------------------------- */

static double burst_of(const struct hw_schedule *s)
{
	double burst = s->conf.rate / 10.0;
	return burst < 1 ? 1 : burst;
}

static void refill(struct hw_schedule *s, struct hw_mono now)
{
	double elapsed_s = (double)(now.ns - s->tokens_at.ns) / (double)HW_NS_PER_S;
	s->tokens_at = now;
	s->credit += elapsed_s * s->conf.rate;
	if (s->credit > burst_of(s))
		s->credit = burst_of(s);
}

/* Returns how many tasks may be claimed now. With a rate limit, a claim waits until a quarter of a burst is allowed,
 * because a call for few tasks is not worth its cost. */
static size_t allowed(const struct hw_schedule *s)
{
	size_t n = s->ready.length < HW_CLAIM_MAX ? s->ready.length : HW_CLAIM_MAX;
	if (!s->conf.rate)
		return n;
	size_t some = (size_t)(burst_of(s) / 4) < n ? (size_t)(burst_of(s) / 4) : n;
	if (s->credit < 1 || s->credit < (double)some)
		return 0;
	return s->credit < (double)n ? (size_t)s->credit : n;
}

static bool order_claim(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out)
{
	struct claim *c = s->claims;
	refill(s, now);
	size_t n = allowed(s);
	while (c < s->claims + HW_CLAIMS_OUT && c->serial)
		c++;
	if (n == 0 || c == s->claims + HW_CLAIMS_OUT)
		return false;
	*c = (struct claim){.serial = ++s->serials, .at = now, .n = n};
	out->kind = HW_SCHEDULE_CLAIM;
	out->serial = c->serial;
	out->n = n;
	for (size_t k = 0; k < n; k++) {
		uint32_t i = s->ready.head;
		hw_queue_del(&s->wheel, &s->ready, i);
		at(s, i)->node.user &= (uint8_t)~HW_ENTRY_MOVED;
		c->entries[k] = i;
		out->tasks[k] = at(s, i)->task;
	}
	s->credit -= s->conf.rate ? (double)n : 0;
	s->stats.claims++;
	s->stats.claimed += n;
	return true;
}

static struct claim *claim_of(struct hw_schedule *s, uint64_t serial)
{
	for (struct claim *c = s->claims; c < s->claims + HW_CLAIMS_OUT; c++)
		if (serial && c->serial == serial)
			return c;
	return NULL;
}

/* Puts a claimed task back into the wheel, due at `due_ms` or at an earlier time that was set since the claim. */
static void put_back(struct hw_schedule *s, uint32_t i, int64_t due_ms)
{
	struct hw_task_entry *e = at(s, i);
	if (!(e->node.user & HW_ENTRY_MOVED) || e->due_ms > due_ms)
		e->due_ms = due_ms;
	e->node.user &= (uint8_t)~HW_ENTRY_MOVED;
	if (e->due_ms > known_until_ms(s))
		forget(s, i);
	else
		arm(s, i);
}

static void end_claim(struct hw_schedule *s, struct hw_mono now, struct claim *c)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->entries[k] != HW_NIL)
			put_back(s, c->entries[k], hw_schedule_redis_ms(s, now) + RETRY_MS);
	c->serial = 0;
}

static void fail_claim(struct hw_schedule *s, struct hw_mono now, struct claim *c)
{
	s->credit += s->conf.rate ? (double)c->n : 0;
	s->stats.failed++;
	end_claim(s, now, c);
}

static uint32_t *slot_of(struct claim *c, uint32_t i)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->entries[k] == i)
			return &c->entries[k];
	return NULL;
}

void hw_schedule_claimed(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                         const struct hw_schedule_claimed *tasks, size_t n)
{
	struct claim *c = claim_of(s, serial);
	if (!c)
		return;
	take_order_clock(s, now, c->at, redis_ms);
	size_t sent = 0;
	for (size_t k = 0; k < n; k++) {
		uint32_t i = hw_task_table_find(&s->table, &tasks[k].task);
		uint32_t *slot = i != HW_NIL ? slot_of(c, i) : NULL;
		if (!slot)
			continue;
		*slot = HW_NIL;
		sent += tasks[k].sent;
		/* From now on this instance tries the task in the order of ranks (an instance's place in the order
		 * for a receiver), as the other instances do. */
		at(s, i)->node.user &= (uint8_t)~HW_ENTRY_OWN;
		if (tasks[k].due_ms > 0)
			put_back(s, i, tasks[k].due_ms);
		else
			forget(s, i);
	}
	s->stats.sent += sent;
	s->credit += s->conf.rate && c->n > sent ? (double)(c->n - sent) : 0;
	end_claim(s, now, c);
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

static void begin_walk(struct walk *w, int64_t from_ms, int64_t until_ms)
{
	w->going = true;
	w->from_ms = from_ms;
	w->until_ms = until_ms;
	w->skip = 0;
}

/* Begins the walks that are due. HORIZON needs Redis' clock, which the answers to OVERDUE contain. */
static void begin_walks(struct hw_schedule *s, struct hw_mono now)
{
	struct walk *overdue = &s->walks[OVERDUE], *horizon = &s->walks[HORIZON];
	if (!overdue->going && now.ns >= overdue->next.ns) {
		begin_walk(overdue, 0, INT64_MAX);
		overdue->next = after_ms(now, HW_CHECK_EVERY_MS);
	}
	if (!horizon->going && now.ns >= horizon->next.ns && is_clock_known(s) && !hw_schedule_clock_held(s, now)) {
		begin_walk(horizon, s->read_until_ms, hw_schedule_redis_ms(s, now) + s->conf.horizon_ms);
		horizon->next = after_ms(now, s->conf.horizon_ms / 2);
	}
}

static bool order_page(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out)
{
	begin_walks(s, now);
	if (s->page_serial || !(s->walks[OVERDUE].going || s->walks[HORIZON].going))
		return false;
	s->page_of = s->walks[OVERDUE].going ? OVERDUE : HORIZON;
	const struct walk *w = &s->walks[s->page_of];
	/* While the clock is held, a page is read only for the clock in its answer. */
	s->page_count = hw_schedule_clock_held(s, now) ? 1 : HW_PAGE_MAX;
	s->page_serial = ++s->serials;
	s->page_at = now;
	*out = (struct hw_schedule_order){.kind = HW_SCHEDULE_READ,
	                                  .serial = s->page_serial,
	                                  .from_ms = w->from_ms,
	                                  .until_ms = w->until_ms,
	                                  .skip = w->skip,
	                                  .count = s->page_count};
	s->stats.pages++;
	return true;
}

/* Continues the walk after this page, or ends it. Tasks that are due in the same millisecond have no order, so the
 * next page skips as many of them as were read. If one of these tasks is added or removed meanwhile, the walk may
 * miss another one; OVERDUE finds it later. */
static void walk_on(struct hw_schedule *s, struct walk *w, const struct hw_schedule_found *tasks, size_t n)
{
	bool is_last = n < s->page_count;
	if (w == &s->walks[OVERDUE])
		is_last |= s->walks[HORIZON].going || s->ready.length >= READY_ENOUGH;
	if (is_last) {
		w->going = false;
		if (w == &s->walks[HORIZON])
			s->read_until_ms = w->until_ms;
		return;
	}
	int64_t last = tasks[n - 1].due_ms;
	size_t same = 0;
	while (same < n && tasks[n - 1 - same].due_ms == last)
		same++;
	w->skip = last == w->from_ms ? w->skip + n : same;
	w->from_ms = last;
}

void hw_schedule_page(struct hw_schedule *s, struct hw_mono now, uint64_t serial, int64_t redis_ms,
                      const struct hw_schedule_found *tasks, size_t n)
{
	if (!serial || serial != s->page_serial)
		return;
	take_order_clock(s, now, s->page_at, redis_ms);
	struct walk *w = &s->walks[s->page_of];
	s->page_serial = 0;
	if (s->page_count == 1 || !is_clock_known(s) || hw_schedule_clock_held(s, now)) {
		w->going = false;
		w->next = after_ms(now, RETRY_MS);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		bool is_new = !tasks[k].is_none && put(s, tasks[k].task, tasks[k].receiver, tasks[k].due_ms, 0);
		s->stats.found += is_new;
		s->stats.overdue += is_new && w == &s->walks[OVERDUE];
	}
	walk_on(s, w, tasks, n);
}

static void fail_page(struct hw_schedule *s, struct hw_mono now)
{
	struct walk *w = &s->walks[s->page_of];
	s->page_serial = 0;
	s->stats.failed++;
	w->going = false;
	w->next = after_ms(now, RETRY_MS);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

void hw_schedule_failed(struct hw_schedule *s, struct hw_mono now, uint64_t serial)
{
	struct claim *c = claim_of(s, serial);
	if (c)
		fail_claim(s, now, c);
	else if (serial && serial == s->page_serial)
		fail_page(s, now);
}

static void fail_all(struct hw_schedule *s, struct hw_mono now)
{
	for (struct claim *c = s->claims; c < s->claims + HW_CLAIMS_OUT; c++)
		if (c->serial)
			fail_claim(s, now, c);
	if (s->page_serial)
		fail_page(s, now);
}

void hw_schedule_up(struct hw_schedule *s, struct hw_mono now)
{
	fail_all(s, now);
	s->up = true;
	s->tokens_at = now;
	s->read_until_ms = 0;
	hw_redis_clock_hold_on(&s->clock, now);
	for (enum walk_kind k = OVERDUE; k < WALKS; k++)
		s->walks[k] = (struct walk){.next = now};
}

void hw_schedule_down(struct hw_schedule *s, struct hw_mono now)
{
	fail_all(s, now);
	s->up = false;
}

static void lose_patience(struct hw_schedule *s, struct hw_mono now)
{
	for (struct claim *c = s->claims; c < s->claims + HW_CLAIMS_OUT; c++)
		if (c->serial && now.ns >= after_ms(c->at, HW_ORDER_PATIENCE_MS).ns)
			fail_claim(s, now, c);
	if (s->page_serial && now.ns >= after_ms(s->page_at, HW_ORDER_PATIENCE_MS).ns)
		fail_page(s, now);
}

bool hw_schedule_next(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out)
{
	if (!s->up)
		return false;
	lose_patience(s, now);
	if (is_clock_known(s) && !hw_schedule_clock_held(s, now)) {
		turn(s, now);
		if (order_claim(s, now, out))
			return true;
	}
	return order_page(s, now, out);
}

static struct hw_mono wheel_due(const struct hw_schedule *s, struct hw_mono now)
{
	struct hw_tick next;
	if (!is_clock_known(s) || !hw_wheel_next(&s->wheel, &next))
		return HW_MONO_NEVER;
	int64_t ahead_ns = hw_tick_start(next).ns - since_base(s, hw_schedule_redis_ms(s, now)).ns;
	return hw_mono_add(now, ahead_ns > 0 ? ahead_ns : 0);
}

static struct hw_mono claim_due(const struct hw_schedule *s, struct hw_mono now)
{
	if (!s->ready.length || (s->claims[0].serial && s->claims[1].serial))
		return HW_MONO_NEVER;
	return allowed(s) ? now : hw_mono_add(now, HW_NS_PER_S / 50);
}

/* Returns when the next page may be read. HORIZON waits until answers to OVERDUE show that the clock is known and
 * not held. */
static struct hw_mono page_due(const struct hw_schedule *s, struct hw_mono now)
{
	const struct walk *overdue = &s->walks[OVERDUE], *horizon = &s->walks[HORIZON];
	if (overdue->going || horizon->going)
		return now;
	bool waits = !is_clock_known(s) || hw_schedule_clock_held(s, now);
	return waits ? overdue->next : hw_mono_sooner(overdue->next, horizon->next);
}

struct hw_mono hw_schedule_due(const struct hw_schedule *s, struct hw_mono now)
{
	struct hw_mono due = after_ms(now, IDLE_MS);
	if (!s->up)
		return due;
	if (!hw_schedule_clock_held(s, now))
		due = hw_mono_sooner(due, hw_mono_sooner(wheel_due(s, now), claim_due(s, now)));
	if (!s->page_serial)
		due = hw_mono_sooner(due, page_due(s, now));
	for (unsigned k = 0; k < HW_CLAIMS_OUT; k++)
		if (s->claims[k].serial)
			due = hw_mono_sooner(due, after_ms(s->claims[k].at, HW_ORDER_PATIENCE_MS));
	if (s->page_serial)
		due = hw_mono_sooner(due, after_ms(s->page_at, HW_ORDER_PATIENCE_MS));
	return hw_mono_later(due, now);
}

void hw_schedule_stats(const struct hw_schedule *s, struct hw_schedule_stats *out)
{
	*out = s->stats;
	out->clock_holds = s->clock.holds;
	out->known = s->table.n;
	out->waiting = s->ready.length;
	out->bytes = hw_task_table_bytes(&s->table);
}
