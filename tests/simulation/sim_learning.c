/* SPDX-License-Identifier: MIT */
/*
 * The oracle's own learned timeouts: the estimator of the core, which gets those gaps that may be learned in the
 * oracle's own judgement. So the timeout in force is known without the core, and a death that comes before or after it
 * is a breach. It also counts mistakes: devices that work and are called offline.
 */
#include <string.h>

#include "sim.h"

#define DIFFER_NS (2 * HW_NS_PER_MS)

int64_t sim_learning_timeout_ms(const struct sim *s, uint32_t i)
{
	const struct sim_watched *w = &s->oracle.watched[i];
	int64_t learned_ms = s->plan.learns ? hw_learned_ms(&w->gaps, &s->oracle.rules) : 0;
	return learned_ms ? learned_ms : s->plan.timeout_ns[s->fleet.device[i].group] / HW_NS_PER_MS;
}

void sim_learning_begin(struct sim *s)
{
	if (!s->plan.learns)
		return;
	hw_learn_rules_init(&s->oracle.rules, SIM_TIMEOUT_MIN_MS, SIM_TIMEOUT_MAX_MS, SIM_MISTAKES_A_DAY,
	                    SIM_DAY_NS / HW_NS_PER_MS, 1);
	hw_learn_rules_first(&s->oracle.rules, s->plan.timeout_ns[0] / HW_NS_PER_MS);
}

void sim_learning_read(struct sim *s, uint32_t i)
{
	struct sim_oracle *o = &s->oracle;
	struct sim_watched *w = &o->watched[i];
	int64_t now = sim_oracle_mono(s), gap_ns = now - w->read_at;
	int64_t seen_ns = sim_oracle_seen(o, now) - sim_oracle_seen(o, w->read_at);
	bool timed = w->timed && w->read && !w->announced && !o->blind_open;
	if (!s->plan.learns)
		return;
	w->timed = !s->host.load_wanted && !o->blind_open;
	w->announced = false;
	if (timed && gap_ns - seen_ns <= DIFFER_NS)
		hw_learn_gap(&w->gaps, &o->rules, sim_host_now(s).wall_ms, gap_ns / HW_NS_PER_MS);
}

void sim_learning_loaded(struct sim *s, uint32_t i, const struct sim_record *r)
{
	struct hw_gaps *gaps = &s->oracle.watched[i].gaps, stored;
	int64_t unit_ms;
	if (s->plan.learns && !hw_learned_ms(gaps, &s->oracle.rules) &&
	    hw_learn_parse(&stored, &unit_ms, r->gaps, strlen(r->gaps)) && unit_ms == s->oracle.rules.unit_ms)
		*gaps = stored;
}

void sim_learning_forgotten(struct sim *s, uint32_t i)
{
	s->oracle.watched[i].gaps = (struct hw_gaps){{0}};
	s->oracle.watched[i].timed = false;
}

void sim_learning_offline(struct sim *s, uint32_t i)
{
	if (s->oracle.watched[i].alive && s->now > s->plan.trouble_ns / 4)
		s->oracle.watched[i].mistakes++;
}
