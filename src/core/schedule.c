/* SPDX-License-Identifier: MIT */
/*
 * See schedule.h.
 *
 * A task that is known is in exactly one place: in the wheel, on the queue of those that are due (`ready`), or in one
 * of the claims that are out. A claim's answer puts it back into the wheel, or it is not known any more.
 *
 * Redis' clock is guessed as `now` plus an offset. An answer was on its way, so that each shows an offset that is too
 * small; the greatest of the last few is nearest. A guess that is too small makes late by so much, one that is too
 * great is put right by the claim's answer: nothing is early.
 */
#include "heartwheel/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "core/tasktable.h"
#include "heartwheel/fnv.h"
#include "heartwheel/wheel.h"

#define SAMPLES      8    /* of the offset */
#define TURN_BUDGET  4096 /* moves in the wheel a call */
#define READY_ENOUGH 4096 /* the look reads no further page while so many are due */
#define RETRY_MS     1000 /* what failed is tried again */
#define IDLE_MS      60000
#define LATEST_MS    INT64_C(253402300800000) /* the year 10000 */

struct claim {
	uint64_t serial; /* 0: not out */
	struct hw_mono at;
	uint32_t entries[HW_CLAIM_MAX];
	size_t n;
};

/* A walk through what is due, page by page. */
struct walk {
	bool going;
	int64_t from_ms, until_ms;
	size_t skip;
	struct hw_mono next; /* when the next one begins */
};

enum walk_kind { LOOK, HORIZON, WALKS };

struct hw_schedule {
	struct hw_schedule_conf conf;
	bool up;
	struct hw_tasktable table;
	struct hw_wheel wheel;
	struct hw_queue ready;
	int64_t base_ms; /* Redis' clock at tick 0; 0: no answer yet */
	uint64_t serials;
	struct claim claims[HW_CLAIMS_OUT];

	struct walk walks[WALKS];
	uint64_t page_serial; /* of the page that is out; 0: none */
	enum walk_kind page_of;
	size_t page_count;
	struct hw_mono page_at;
	int64_t read_until_ms; /* the end of what was read */

	int64_t offsets[SAMPLES], offset_ms;
	unsigned n_offsets, next_offset;
	int64_t believed_ms;                /* the offset before the step, while the clock is held */
	struct hw_mono hold_until, told_at; /* told_at: Redis said last what time it has */
	bool held;

	double tokens;
	struct hw_mono tokens_at;

	uint32_t instances[HW_INSTANCES_MAX];
	size_t n_instances;
	uint32_t self;
	struct hw_schedule_stats stats;
};

static int64_t ms_of(struct hw_mono t)
{
	return t.ns / HW_NS_PER_MS;
}

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
	hw_tasktable_init(&s->table, seed);
	hw_wheel_init(&s->wheel, NULL, sizeof(struct hw_task_entry), (struct hw_tick){0});
	hw_queue_init(&s->ready);
	return s;
}

void hw_schedule_free(struct hw_schedule *s)
{
	if (!s)
		return;
	hw_tasktable_fini(&s->table);
	free(s);
}

void hw_schedule_set_rate(struct hw_schedule *s, unsigned rate)
{
	s->conf.rate = rate;
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

int64_t hw_schedule_redis_ms(const struct hw_schedule *s, struct hw_mono now)
{
	return s->n_offsets ? ms_of(now) + s->offset_ms : 0;
}

/* Before the base there are no ticks: what is due then is due at tick 0. */
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

/* The wheel turns forward only. When Redis' clock went back, what is in it is put into one that stands there. */
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

static void forget_offsets(struct hw_schedule *s)
{
	s->n_offsets = s->next_offset = 0;
}

/* A hold ends with an answer that comes behind it, never by itself, and counts anew where none came for long: a process
 * that stood still could not see the clock go back, which may have been set ahead again since. */
static void hold_clock(struct hw_schedule *s, struct hw_mono now, int64_t offset)
{
	if (!s->held && s->n_offsets && offset - s->offset_ms > HW_CLOCK_STEP_MS) {
		s->stats.clock_holds++;
		s->believed_ms = s->offset_ms;
		s->hold_until = after_ms(now, s->conf.clock_hold_ms);
		s->held = s->conf.clock_hold_ms > 0;
		forget_offsets(s);
	} else if (s->held && offset - s->believed_ms <= HW_CLOCK_STEP_MS) {
		s->held = false;
		forget_offsets(s);
	} else if (s->held && now.ns > after_ms(s->told_at, HW_ORDER_PATIENCE_MS).ns) {
		s->hold_until = after_ms(now, s->conf.clock_hold_ms);
	}
	if (s->held && now.ns >= s->hold_until.ns)
		s->held = false;
	s->told_at = now;
}

static void take_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms)
{
	int64_t offset = redis_ms - ms_of(now);
	if (redis_ms <= 0)
		return;
	hold_clock(s, now, offset);
	s->offsets[s->next_offset++ % SAMPLES] = offset;
	if (s->n_offsets < SAMPLES)
		s->n_offsets++;
	s->offset_ms = s->offsets[0];
	for (unsigned k = 1; k < s->n_offsets; k++)
		if (s->offsets[k] > s->offset_ms)
			s->offset_ms = s->offsets[k];
	if (!s->base_ms)
		s->base_ms = hw_schedule_redis_ms(s, now);
	else if (!s->held && present(s, now).n + HW_TICKS_PER_S < s->wheel.cursor)
		rebuild(s, now);
}

/*
 * Of an order it is known when it was asked. An answer that lay here for long, because this process stood still, says
 * what time it was: were that the first one, or were there enough of them, then the next answer would look like a step
 * ahead.
 */
static void take_order_clock(struct hw_schedule *s, struct hw_mono now, struct hw_mono asked, int64_t redis_ms)
{
	if (now.ns <= after_ms(asked, HW_ORDER_PATIENCE_MS).ns)
		take_clock(s, now, redis_ms);
}

/* Of others it is not known: if one is far behind, then it is old, or the clock went back, which an order's will say.
 */
void hw_schedule_clock(struct hw_schedule *s, struct hw_mono now, int64_t redis_ms)
{
	if (s->n_offsets && redis_ms - ms_of(now) >= s->offset_ms - HW_ORDER_PATIENCE_MS)
		take_clock(s, now, redis_ms);
}

bool hw_schedule_clock_held(const struct hw_schedule *s, struct hw_mono now)
{
	(void)now;
	return s->held;
}

int64_t hw_schedule_latest_ms(const struct hw_schedule *s, struct hw_mono now)
{
	if (!s->n_offsets || s->conf.clock_hold_ms == 0)
		return LATEST_MS;
	return hw_schedule_clock_held(s, now) ? 0 : hw_schedule_redis_ms(s, now) + HW_CLOCK_STEP_MS;
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

uint32_t hw_schedule_receiver(const char *name, size_t len)
{
	return hw_fnv32(name, len);
}

/* Spreads the bits of two hashes: they are not chosen by anybody who could gain by it. */
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
	hw_tasktable_del(&s->table, i);
	hw_wheel_rebase(&s->wheel, s->table.entries);
}

static int64_t known_until_ms(const struct hw_schedule *s)
{
	const struct walk *w = &s->walks[HORIZON];
	return w->going && w->until_ms > s->read_until_ms ? w->until_ms : s->read_until_ms;
}

/* Whether it was not known before. */
static bool put(struct hw_schedule *s, struct hw_task_id task, uint32_t receiver, int64_t due_ms, uint8_t flags)
{
	uint32_t i = hw_tasktable_find(&s->table, &task);
	bool is_new = i == HW_NIL;
	if (is_new) {
		i = hw_tasktable_add(&s->table, &task);
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
	uint32_t i = hw_tasktable_find(&s->table, &task);
	if (i != HW_NIL && (is_in_wheel(s, i) || is_ready(s, i)))
		forget(s, i);
}

/* Puts what came due on the queue. Ranks may have grown since it was armed: then it is armed anew. */
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
	s->tokens += elapsed_s * s->conf.rate;
	if (s->tokens > burst_of(s))
		s->tokens = burst_of(s);
}

/* How many may be claimed now. A few are not worth a call: at a rate they wait until some have gathered. */
static size_t allowed(const struct hw_schedule *s)
{
	size_t n = s->ready.length < HW_CLAIM_MAX ? s->ready.length : HW_CLAIM_MAX;
	if (!s->conf.rate)
		return n;
	size_t some = (size_t)(burst_of(s) / 4) < n ? (size_t)(burst_of(s) / 4) : n;
	if (s->tokens < 1 || s->tokens < (double)some)
		return 0;
	return s->tokens < (double)n ? (size_t)s->tokens : n;
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
	s->tokens -= s->conf.rate ? (double)n : 0;
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

/* A claimed task goes back: due then, or when it was moved to meanwhile. */
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
	s->tokens += s->conf.rate ? (double)c->n : 0;
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
		uint32_t i = hw_tasktable_find(&s->table, &tasks[k].task);
		uint32_t *slot = i != HW_NIL ? slot_of(c, i) : NULL;
		if (!slot)
			continue;
		*slot = HW_NIL;
		sent += tasks[k].sent;
		/* What it gets next is everybody's again, by rank. */
		at(s, i)->node.user &= (uint8_t)~HW_ENTRY_OWN;
		if (tasks[k].due_ms > 0)
			put_back(s, i, tasks[k].due_ms);
		else
			forget(s, i);
	}
	s->stats.sent += sent;
	s->tokens += s->conf.rate && c->n > sent ? (double)(c->n - sent) : 0;
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

/* The horizon is read when Redis' clock is known; the look tells it. */
static void begin_walks(struct hw_schedule *s, struct hw_mono now)
{
	struct walk *look = &s->walks[LOOK], *horizon = &s->walks[HORIZON];
	if (!look->going && now.ns >= look->next.ns) {
		begin_walk(look, 0, INT64_MAX);
		look->next = after_ms(now, HW_LOOK_EVERY_MS);
	}
	if (!horizon->going && now.ns >= horizon->next.ns && s->n_offsets && !hw_schedule_clock_held(s, now)) {
		begin_walk(horizon, s->read_until_ms, hw_schedule_redis_ms(s, now) + s->conf.horizon_ms);
		horizon->next = after_ms(now, s->conf.horizon_ms / 2);
	}
}

static bool order_page(struct hw_schedule *s, struct hw_mono now, struct hw_schedule_order *out)
{
	begin_walks(s, now);
	if (s->page_serial || !(s->walks[LOOK].going || s->walks[HORIZON].going))
		return false;
	s->page_of = s->walks[LOOK].going ? LOOK : HORIZON;
	const struct walk *w = &s->walks[s->page_of];
	/* While the clock is held it is only asked. */
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

/* Goes on behind the page, or ends. Those of one moment are told apart by their number alone: what comes or goes among
 * them meanwhile may hide one, which the look finds. */
static void walk_on(struct hw_schedule *s, struct walk *w, const struct hw_schedule_found *tasks, size_t n)
{
	bool is_last = n < s->page_count;
	if (w == &s->walks[LOOK])
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
	if (s->page_count == 1 || !s->n_offsets || hw_schedule_clock_held(s, now)) {
		w->going = false;
		w->next = after_ms(now, RETRY_MS);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		bool is_new = !tasks[k].is_none && put(s, tasks[k].task, tasks[k].receiver, tasks[k].due_ms, 0);
		s->stats.found += is_new;
		s->stats.overdue += is_new && w == &s->walks[LOOK];
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
	if (s->held) /* nobody could see it go back meanwhile */
		s->hold_until = after_ms(now, s->conf.clock_hold_ms);
	for (enum walk_kind k = LOOK; k < WALKS; k++)
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
	if (s->n_offsets && !hw_schedule_clock_held(s, now)) {
		turn(s, now);
		if (order_claim(s, now, out))
			return true;
	}
	return order_page(s, now, out);
}

/* When the wheel has work next. */
static struct hw_mono wheel_due(const struct hw_schedule *s, struct hw_mono now)
{
	struct hw_tick next;
	if (!s->n_offsets || !hw_wheel_next(&s->wheel, &next))
		return HW_MONO_NEVER;
	int64_t ahead_ns = hw_tick_start(next).ns - since_base(s, hw_schedule_redis_ms(s, now)).ns;
	return hw_mono_add(now, ahead_ns > 0 ? ahead_ns : 0);
}

/* When a claim may go out: at once, or when tokens have gathered. */
static struct hw_mono claim_due(const struct hw_schedule *s, struct hw_mono now)
{
	if (!s->ready.length || (s->claims[0].serial && s->claims[1].serial))
		return HW_MONO_NEVER;
	return allowed(s) ? now : hw_mono_add(now, HW_NS_PER_S / 50);
}

/* When a page may go out: the horizon's only once the clock is known and believed, which the look's tell. */
static struct hw_mono page_due(const struct hw_schedule *s, struct hw_mono now)
{
	const struct walk *look = &s->walks[LOOK], *horizon = &s->walks[HORIZON];
	if (look->going || horizon->going)
		return now;
	bool waits = !s->n_offsets || hw_schedule_clock_held(s, now);
	return waits ? look->next : hw_mono_sooner(look->next, horizon->next);
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
	out->known = s->table.n;
	out->waiting = s->ready.length;
	out->bytes = hw_tasktable_bytes(&s->table);
}
