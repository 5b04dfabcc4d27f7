/* SPDX-License-Identifier: MIT */
/*
 * Evidence that is not a message: the state of the connections, barriers and canaries that come back, pauses of the
 * loop and of the reader threads, and an operator's request to forget a device. See monitor.h. Messages come in through
 * intake.c, keys through key_intake.c.
 */
#include "canary.h"
#include "door.h"
#include "out.h"

/* Reports the values that have become unknown. A retired group is not reported, as in hw_monitor_note_upstream(). */
static void report_unknown(struct hw_monitor *m)
{
	for (size_t k = 0; k < m->upstream.n; k++) {
		const struct hw_upstream_value *v = &m->upstream.value[k];
		if (v->is_old && !m->groups.all[v->group]->retired)
			hw_monitor_emit(m, &(struct hw_out){.kind = HW_OUT_WHILE_UNKNOWN,
			                                    .upstream = {.group = v->group, .index = v->index}});
	}
}

void hw_monitor_barrier(struct hw_monitor *m, struct hw_now now, unsigned source, uint64_t number)
{
	if (!hw_sight_has(&m->sight, source))
		return;
	hw_sight_barrier(&m->sight, now.mono, source, number);
	if (source == HW_UPSTREAM_SOURCE && number <= m->sight.sent &&
	    hw_upstream_barrier(&m->upstream, &m->groups, number)) {
		report_unknown(m);
		hw_monitor_note_upstream(m, now);
	}
}

void hw_monitor_upstreams_asked(struct hw_monitor *m)
{
	hw_upstream_ask(&m->upstream);
}

/* The answer to a renewal may still be in the ring when another request begins. That answer is then skipped. */
void hw_monitor_upstreams_granted(struct hw_monitor *m, bool renewal)
{
	if (renewal == m->upstream.renewing)
		hw_upstream_granted(&m->upstream, m->sight.sent);
}

bool hw_monitor_renew_upstreams(struct hw_monitor *m, bool is_time)
{
	return (is_time || m->upstream.in_doubt) && hw_upstream_renew(&m->upstream);
}

void hw_monitor_arrived(struct hw_monitor *m, struct hw_now now, unsigned source)
{
	if (hw_sight_has(&m->sight, source))
		hw_sight_arrived(&m->sight, now.mono, source);
}

/* Follows a change of the connections. After a lost connection, canaries that were sent may never come back. When
 * all connections are up again, every filter must be proven again. */
static void follow_links(struct hw_monitor *m, struct hw_now now, bool again)
{
	if (again)
		hw_hearing_subscribed(&m->hearing, &m->sight, now.mono);
	else
		hw_hearing_interrupted(&m->hearing);
}

void hw_monitor_link(struct hw_monitor *m, struct hw_now now, unsigned source, bool up)
{
	if (!up && source == HW_UPSTREAM_SOURCE)
		hw_monitor_end_adoption(m);
	if (hw_sight_has(&m->sight, source))
		follow_links(m, now, hw_sight_link(&m->sight, now.mono, source, up));
}

int hw_monitor_add_source(struct hw_monitor *m, struct hw_now now)
{
	return hw_sight_add(&m->sight, now.mono);
}

void hw_monitor_remove_source(struct hw_monitor *m, struct hw_now now, unsigned source)
{
	if (hw_sight_has(&m->sight, source))
		follow_links(m, now, hw_sight_remove(&m->sight, now.mono, source));
}

void hw_monitor_canaries(const struct hw_monitor *m, struct hw_canaries *had)
{
	hw_canary_had(&m->hearing, had);
}

void hw_monitor_recall_canaries(struct hw_monitor *m, const struct hw_canaries *had)
{
	hw_canary_recall(&m->hearing, had);
}

void hw_monitor_publisher(struct hw_monitor *m, struct hw_now now, bool up)
{
	(void)now;
	hw_sight_publisher(&m->sight, up);
	hw_hearing_interrupted(&m->hearing);
}

void hw_monitor_barrier_taken(struct hw_monitor *m, struct hw_mono at)
{
	hw_sight_answered(&m->sight, at);
}

void hw_monitor_barriers_refused(struct hw_monitor *m, bool refused)
{
	hw_sight_refused(&m->sight, refused);
}

bool hw_monitor_barriers_silent(const struct hw_monitor *m, struct hw_now now)
{
	return hw_sight_is_silent(&m->sight, now.mono);
}

void hw_monitor_canary_answer(struct hw_monitor *m, uint16_t group, uint16_t filter, enum hw_canary_answer answer)
{
	hw_canary_answered(&m->hearing, group, filter, answer);
}

void hw_monitor_stall(struct hw_monitor *m, struct hw_now now, struct hw_mono planned)
{
	hw_sight_stall(&m->sight, planned, now.mono);
}

void hw_monitor_drained(struct hw_monitor *m, struct hw_now now)
{
	hw_sight_drained(&m->sight, now.mono);
}

void hw_monitor_suspended(struct hw_monitor *m, struct hw_now now, struct hw_mono since)
{
	hw_sight_suspended(&m->sight, since, now.mono);
	hw_monitor_key_loss(m, now); /* the keys' writers may have been suspended too */
}

void hw_monitor_loss(struct hw_monitor *m, struct hw_now now, unsigned source)
{
	if (hw_sight_has(&m->sight, source))
		hw_sight_loss(&m->sight, now.mono, source);
}

bool hw_monitor_forget(struct hw_monitor *m, struct hw_now now, const char *id, size_t len)
{
	uint32_t i = hw_registry_find(m->registry, id, len);
	if (i == HW_NIL)
		return false;
	return hw_monitor_rule(m, now, i, &(struct hw_evidence){.event = HW_EVENT_FORGET});
}
