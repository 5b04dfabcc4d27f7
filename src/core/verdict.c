/* SPDX-License-Identifier: MIT */
/*
 * The evidence rule for a single device: see verdict.h, and monitor.h for the whole rule. Cost: a few comparisons.
 */
#include "verdict.h"

static struct hw_verdict act(enum hw_act a)
{
	return (struct hw_verdict){.act = a, .delay_ns = -1};
}

static struct hw_verdict online(void)
{
	return (struct hw_verdict){HW_ACT_ONLINE, HW_REASON_HEARTBEAT, -1};
}

static struct hw_verdict offline(enum hw_reason reason, int64_t delay_ns)
{
	return (struct hw_verdict){HW_ACT_OFFLINE, reason, delay_ns};
}

static struct hw_verdict forgotten(enum hw_reason reason)
{
	return (struct hw_verdict){HW_ACT_FORGOTTEN, reason, -1};
}

static bool has_goodbye(const struct hw_device *d)
{
	return d->flags & HW_FLAG_GOODBYE;
}

/* Decides about a device when loading is over and the store has no record of the device. If this run has received both
 * a heartbeat and a goodbye of the device, the device is online: no barrier has proven the goodbye. Just after the
 * start, a will may also be the result of a standstill of the broker. */
static struct hw_verdict on_settled(const struct hw_device *d, const struct hw_evidence *e)
{
	if (hw_device_state(d) != HW_STATE_PROVISIONAL)
		return act(HW_ACT_NONE);
	bool is_all = has_goodbye(d) && !e->heard;
	return is_all ? offline(HW_REASON_WILL, -1) : online();
}

/* Decides about a heartbeat or a key of a device. A heartbeat cancels a goodbye that came over MQTT. An existing key
 * does not cancel it. */
static struct hw_verdict on_life(const struct hw_device *d, const struct hw_evidence *e)
{
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		return act(has_goodbye(d) && !e->by_key ? HW_ACT_VOID : HW_ACT_NONE);
	case HW_STATE_PROVISIONAL:
		return e->loading ? act(HW_ACT_NONE) : online();
	case HW_STATE_OFFLINE:
		return e->too_few ? act(HW_ACT_COUNT) : online();
	default:
		return online();
	}
}

/* Decides about a goodbye of an online device. If the device sent one before, the repeated goodbye must not delay
 * the judgement. */
static struct hw_verdict on_goodbye_online(const struct hw_device *d, const struct hw_evidence *e)
{
	if (e->blind)
		return act(HW_ACT_VOID);
	if (has_goodbye(d))
		return act(HW_ACT_NONE);
	return act(e->delay ? HW_ACT_HOLD : HW_ACT_SUSPECT);
}

static struct hw_verdict on_goodbye(const struct hw_device *d, const struct hw_evidence *e)
{
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		return on_goodbye_online(d, e);
	case HW_STATE_OFFLINE:
		return act(HW_ACT_PUBLISH_STATUS);
	case HW_STATE_FORGOTTEN:
		return offline(HW_REASON_WILL, -1);
	default:
		return e->loading ? act(HW_ACT_NONE) : on_settled(d, e);
	}
}

static struct hw_verdict on_due(const struct hw_device *d, const struct hw_evidence *e)
{
	if (hw_device_state(d) == HW_STATE_OFFLINE)
		return e->expected ? act(HW_ACT_REARM) : forgotten(HW_REASON_FORGET_AFTER);
	if (e->orphaned)
		return offline(HW_REASON_PARENT, -1);
	if (e->by_key && !has_goodbye(d))
		return act(HW_ACT_ASK_KEY);
	if (e->deaf)
		return act(HW_ACT_REST);
	if (has_goodbye(d))
		return act(HW_ACT_SUSPECT);
	return act(e->late_ns >= 0 ? HW_ACT_SUSPECT : HW_ACT_REARM);
}

/*
 * Decides when the pair of barriers is back. The device stays online if it was heard since it became a suspect, or if
 * the monitor was blind after its goodbye; otherwise it becomes offline.
 *
 * If messages arrive late, the deadline may have moved, and may have passed again before the pair came back. The pair
 * proves nothing about messages that were sent after its first barrier, so another pair is needed.
 */
static struct hw_verdict on_proven(const struct hw_device *d, const struct hw_evidence *e)
{
	if (e->deaf)
		return act(HW_ACT_REST);
	if (has_goodbye(d) && (e->touched || e->key_lives))
		return act(HW_ACT_VOID);
	if (has_goodbye(d))
		return e->unheard ? act(HW_ACT_WAIT) : offline(HW_REASON_WILL, -1);
	if (e->late_ns < 0)
		return act(HW_ACT_REARM);
	if (e->outrun)
		return act(HW_ACT_SUSPECT);
	if (e->key_lives)
		return act(HW_ACT_KEY_LIVES);
	if (e->unheard)
		return act(HW_ACT_WAIT);
	return e->by_key ? offline(HW_REASON_KEYSPACE, -1) : offline(HW_REASON_TIMEOUT, e->late_ns);
}

/* Decides when the key of an online device is missing. The device stays online by its heartbeats if it sends any,
 * and also if no key of another program was known. A device that has sent heartbeats and is overdue is judged by the
 * rule for heartbeats. */
static struct hw_verdict on_key_gone(const struct hw_evidence *e)
{
	if (!e->by_key || (e->beats && !e->overdue))
		return act(HW_ACT_REFRESH);
	if (e->suspect)
		return act(HW_ACT_NONE);
	if (e->excused)
		return act(HW_ACT_EXCUSE);
	if (e->beats)
		return act(HW_ACT_SUSPECT);
	return offline(HW_REASON_KEYSPACE, e->late_ns >= 0 ? e->late_ns : -1);
}

struct hw_verdict hw_verdict(const struct hw_device *d, const struct hw_evidence *e)
{
	enum hw_state state = hw_device_state(d);
	switch (e->event) {
	case HW_EVENT_LIFE:
		return on_life(d, e);
	case HW_EVENT_GOODBYE:
		return on_goodbye(d, e);
	case HW_EVENT_DUE:
		return on_due(d, e);
	case HW_EVENT_PROVEN:
		return on_proven(d, e);
	case HW_EVENT_KEY_GONE:
		return on_key_gone(e);
	case HW_EVENT_STORED:
		return state == HW_STATE_OFFLINE && e->heard && !e->too_few ? online() : act(HW_ACT_NONE);
	case HW_EVENT_SETTLED:
		return on_settled(d, e);
	case HW_EVENT_ORPHANED:
		return state == HW_STATE_ONLINE ? offline(HW_REASON_PARENT, -1) : act(HW_ACT_NONE);
	default:
		return state == HW_STATE_ONLINE || state == HW_STATE_OFFLINE ? forgotten(HW_REASON_OPERATOR)
		                                                             : act(HW_ACT_NONE);
	}
}
