/* SPDX-License-Identifier: MIT */
/*
 * The engine of incidents against a naive twin. The twin keeps the whole history, and derives each class, weight and
 * silence from the beginning, by the rules of the tables. It has no timers, links, lists or counts. There are two kinds
 * of rounds:
 *
 *   without a receiver  nothing was sent, so a down device whose parents go away becomes unreachable; with silences
 *   with a receiver     each opening is sent at once, so a down device stays down until it returns
 *
 * The seed is printed; HW_SEED sets it.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "incident/incidents.h"

#define DEVICES  12
#define STEPS    400
#define ROUNDS   60
#define STEP_MS  1000
#define BEGIN_MS INT64_C(1790000000000)
#define HALF_MS  600000
#define SILENCES 4
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("step %d, device %d: not true: %s", step, at, #truth);                            \
	} while (0)

struct twin_device {
	char id[16], parents_text[32];
	int n_parents, parents[2];
	int64_t timeout_ms;
	uint64_t seq;
	/* At each step: */
	bool away[STEPS];
	int64_t since[STEPS]; /* of its last transition */
	/* Of its last transition: */
	int64_t wait_ms, heard_at, heard_settle_ms; /* heard_at -1: not heard */
	int64_t transitions[STEPS];
	int n_transitions;
	bool was_down; /* and sent, since its last transition */
};

static struct twin_device twin[DEVICES];
static struct hw_incidents *engine;
static bool with_receiver;
static int step, at; /* at: the device that is checked */
static struct {
	char match[16], id[HW_INCIDENT_ID + 1];
	int digits; /* of the id that are compared */
	int64_t until_ms;
} silences[SILENCES];
static bool believed_open[DEVICES]; /* by the receiver */

static int64_t now_ms(void)
{
	return (int64_t)step * STEP_MS;
}

static struct hw_now now(void)
{
	return (struct hw_now){{(now_ms() + 1000) * HW_NS_PER_MS}, BEGIN_MS + now_ms()};
}

/* --- the twin -------------------------------------------------------------------------------------------------------
 */

static bool all_away(const struct twin_device *d, int when)
{
	for (int p = 0; p < d->n_parents; p++)
		if (!twin[d->parents[p]].away[when])
			return false;
	return d->n_parents > 0;
}

static int64_t settle(const struct twin_device *d)
{
	int64_t longest = 0;
	for (int p = 0; p < d->n_parents; p++)
		if (twin[d->parents[p]].timeout_ms > longest)
			longest = twin[d->parents[p]].timeout_ms;
	int64_t ms = d->timeout_ms + longest + 10000;
	return ms > 60000 ? ms : 60000;
}

/* The class of a device that is away, at the present step, if no receiver was sent anything. */
static enum hw_incident_class plain_class(const struct twin_device *d)
{
	int64_t since = d->since[step];
	if (d->n_parents == 0)
		return HW_CLASS_DOWN;
	if (all_away(d, step))
		return HW_CLASS_UNREACHABLE;
	for (int k = step - 1; k >= 0 && (int64_t)k * STEP_MS >= since; k--)
		if (all_away(d, k)) /* they were until the next step */
			return now_ms() < (int64_t)(k + 1) * STEP_MS + settle(d) ? HW_CLASS_UNREACHABLE : HW_CLASS_DOWN;
	if (d->wait_ms < 0)
		return HW_CLASS_DOWN;
	if (d->heard_at >= 0)
		return now_ms() < d->heard_at + d->heard_settle_ms ? HW_CLASS_UNREACHABLE : HW_CLASS_DOWN;
	return now_ms() < since + d->wait_ms + 10000 ? HW_CLASS_PENDING : HW_CLASS_DOWN;
}

static enum hw_incident_class twin_class(struct twin_device *d)
{
	if (!d->away[step])
		return HW_CLASS_NONE;
	enum hw_incident_class class = plain_class(d);
	if (with_receiver && d->was_down)
		return HW_CLASS_DOWN;
	d->was_down = class == HW_CLASS_DOWN;
	return class;
}

static double twin_weight(const struct twin_device *d)
{
	double sum = 0;
	for (int k = 0; k < d->n_transitions; k++)
		sum += exp2(-(double)(now_ms() - d->transitions[k]) / HALF_MS);
	return sum;
}

static bool twin_silenced(const struct twin_device *d)
{
	for (int k = 0; k < SILENCES; k++)
		if (silences[k].until_ms > now_ms() &&
		    strncmp(d->id, silences[k].match + 3, (size_t)silences[k].digits) == 0)
			return true;
	for (int p = 0; p < d->n_parents; p++)
		if (!d->away[step] || !twin_silenced(&twin[d->parents[p]]))
			return false;
	return d->n_parents > 0;
}

static const struct twin_device *latest_parent(const struct twin_device *d)
{
	const struct twin_device *latest = &twin[d->parents[0]];
	for (int p = 1; p < d->n_parents; p++)
		if (twin[d->parents[p]].since[step] > latest->since[step])
			latest = &twin[d->parents[p]];
	return latest;
}

/* --- random operations ----------------------------------------------------------------------------------------------
 */

static void make_devices(void)
{
	memset(twin, 0, sizeof(twin));
	for (int k = 0; k < DEVICES; k++) {
		struct twin_device *d = &twin[k];
		snprintf(d->id, sizeof(d->id), "d%d", k);
		d->timeout_ms = 1000 * (int64_t)(5 + random_below(80));
		d->n_parents = k == 0 ? 0 : (int)random_below(k == 1 ? 2 : 3);
		for (int p = 0; p < d->n_parents; p++)
			d->parents[p] = (int)random_below((uint32_t)k);
		if (d->n_parents == 2 && d->parents[0] == d->parents[1])
			d->n_parents = 1;
		if (d->n_parents > 0)
			snprintf(d->parents_text, sizeof(d->parents_text), "d%d", d->parents[0]);
		if (d->n_parents > 1)
			snprintf(d->parents_text, sizeof(d->parents_text), "d%d\nd%d", d->parents[0], d->parents[1]);
	}
}

static void turn(struct twin_device *d)
{
	d->away[step] = !d->away[step];
	d->since[step] = now_ms();
	d->wait_ms = random_below(3) == 0 ? -1 : 1000 * (int64_t)random_below(60);
	d->heard_at = -1;
	d->was_down = false;
	d->transitions[d->n_transitions++] = now_ms();
	struct hw_incident_entry entry = {.id = d->id,
	                                  .group = "all",
	                                  .parents = d->parents_text,
	                                  .fact = d->away[step] ? HW_FACT_OFFLINE : HW_FACT_ONLINE,
	                                  .time_ms = BEGIN_MS + now_ms(),
	                                  .timeout_ms = d->timeout_ms,
	                                  .wait_ms = d->wait_ms,
	                                  .seq = ++d->seq};
	ck_assert_int_eq(hw_incidents_entry(engine, now(), &entry), 0);
}

static void hear(struct twin_device *d)
{
	int64_t ms = random_below(2) ? 1000 * (int64_t)(1 + random_below(90)) : 0;
	const char *id;
	if (hw_incidents_class(engine, d->id, &id) == HW_CLASS_PENDING) { /* else it means nothing, to both */
		d->heard_at = now_ms();
		d->heard_settle_ms = ms;
	}
	hw_incidents_parent_heard(engine, now(), d->id, d->seq, ms);
}

static void silence(void)
{
	int k = (int)random_below(SILENCES);
	if (silences[k].until_ms > now_ms()) {
		ck_assert_int_eq(hw_incidents_unsilence(engine, now(), silences[k].id), 0);
		silences[k].until_ms = 0;
		return;
	}
	int64_t ms = 1000 * (int64_t)(5 + random_below(200));
	struct hw_silence_view s = {.match = silences[k].match, .until_ms = BEGIN_MS + now_ms() + ms};
	snprintf(silences[k].match, sizeof(silences[k].match), "id:d%u*", random_below(10));
	silences[k].digits = 2;
	silences[k].until_ms = now_ms() + ms;
	ck_assert_int_eq(hw_incidents_silence(engine, now(), &s), 0);
	memcpy(silences[k].id, s.id, sizeof(s.id));
}

static void take_messages(void)
{
	struct hw_incident_message m;
	struct hw_change c;
	while (hw_incidents_step(engine, now()))
		;
	while (hw_incidents_message(engine, now(), &m)) {
		for (size_t k = 0; k < m.n; k++)
			believed_open[atoi(m.news[k].incident.device + 1)] = m.news[k].what != HW_NEWS_CLOSED;
		hw_incidents_done(engine, now(), m.name, m.number);
		while (hw_incidents_step(engine, now()))
			;
	}
	while (hw_incidents_change(engine, &c))
		;
}

/* --- what is compared -----------------------------------------------------------------------------------------------
 */

static void check_device(struct twin_device *d)
{
	const char *id, *parents_id;
	enum hw_incident_class class = hw_incidents_class(engine, d->id, &id), mine = twin_class(d);
	struct hw_incident_view v;
	MUST(class == mine);
	MUST((id != NULL) == (class == HW_CLASS_DOWN) || class == HW_CLASS_UNREACHABLE);
	if (class == HW_CLASS_DOWN) {
		MUST(hw_incidents_find(engine, id, &v) && v.state == HW_INCIDENT_OPEN);
		MUST(strcmp(v.device, d->id) == 0 && v.down == 1);
	}
	if (class == HW_CLASS_UNREACHABLE && all_away(d, step)) {
		hw_incidents_class(engine, latest_parent(d)->id, &parents_id);
		MUST((id == NULL) == (parents_id == NULL) && (!id || strcmp(id, parents_id) == 0));
	}
	if (with_receiver)
		MUST(believed_open[at] == (class == HW_CLASS_DOWN));
	else if (d->away[step])
		MUST(hw_incidents_is_silenced(engine, d->id) == twin_silenced(d));
	MUST(fabs(hw_incidents_weight(engine, d->id) - twin_weight(d)) < 0.07); /* 1/16 may be forgotten */
}

struct tally {
	unsigned open, members;
};

static bool count(void *arg, const struct hw_incident_view *v)
{
	struct tally *t = arg;
	t->open += v->state == HW_INCIDENT_OPEN;
	t->members += v->down + v->unreachable;
	return true;
}

static void check_all(void)
{
	struct tally t = {0, 0};
	unsigned down = 0, members = 0;
	const char *id;
	for (at = 0; at < DEVICES; at++) {
		check_device(&twin[at]);
		down += hw_incidents_class(engine, twin[at].id, &id) == HW_CLASS_DOWN;
		members += id != NULL;
	}
	hw_incidents_list(engine, count, &t);
	MUST(t.open == down);
	MUST(t.members == members);
	MUST(hw_incidents_count(engine).open == down);
}

static void play(void)
{
	for (step = 0; step < STEPS; step++) {
		for (int k = 0; k < DEVICES && step > 0; k++) {
			twin[k].away[step] = twin[k].away[step - 1];
			twin[k].since[step] = twin[k].since[step - 1];
		}
		if (random_below(3) == 0) /* one transition a step, because the twin sees each step's end only */
			turn(&twin[random_below(DEVICES)]);
		while (hw_incidents_step(engine, now()))
			;
		if (random_below(5) == 0)
			hear(&twin[random_below(DEVICES)]);
		if (!with_receiver && random_below(10) == 0)
			silence();
		take_messages();
		check_all();
	}
}

START_TEST(test_engine_and_twin_agree)
{
	struct hw_receiver_conf receiver = {.name = "ops", .kinds = 0x1f};
	for (int round = 0; round < ROUNDS; round++) {
		with_receiver = round % 2 == 1;
		struct hw_incidents_conf conf = {.flap_start = 10000, /* never reached, but weights are kept */
		                                 .flap_end = 2,
		                                 .flap_half_ms = HALF_MS,
		                                 .max_incidents = 1000,
		                                 .seed = random64(),
		                                 .receivers = &receiver,
		                                 .n_receivers = with_receiver};
		make_devices();
		memset(silences, 0, sizeof(silences));
		memset(believed_open, 0, sizeof(believed_open));
		step = 0;
		engine = hw_incidents_new(&conf, now());
		ck_assert_ptr_nonnull(engine);
		play();
		hw_incidents_free(engine);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("incidents");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 60);
	random_begin(random_seed_of_now());
	tcase_add_test(tc, test_engine_and_twin_agree);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
