/* SPDX-License-Identifier: MIT */
/*
 * The evidence rule, as far as it is about one device: see verdict.h, and monitor.h for the rule as a whole. Cost: a
 * few comparisons.
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

static bool said_goodbye(const struct hw_device *d)
{
	return d->flags & HW_FLAG_GOODBYE;
}

/* After a heartbeat a goodbye is void: no barrier has proven it, and at the start every will may be the broker's. */
static struct hw_verdict on_settled(const struct hw_device *d, const struct hw_evidence *e)
{
	if (hw_device_state(d) != HW_STATE_PROVISIONAL)
		return act(HW_ACT_NONE);
	bool is_all = said_goodbye(d) && !e->heard;
	return is_all ? offline(HW_REASON_WILL, -1) : online();
}

/* A key that is there does not void a goodbye, which was said over MQTT. */
static struct hw_verdict on_life(const struct hw_device *d, const struct hw_evidence *e)
{
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		return act(said_goodbye(d) && !e->by_key ? HW_ACT_VOID : HW_ACT_NONE);
	case HW_STATE_PROVISIONAL:
		return e->loading ? act(HW_ACT_NONE) : online();
	default:
		return online();
	}
}

/* Of a device that is online: the first goodbye is on its way to be judged, and repeating it must not put that off. */
static struct hw_verdict on_goodbye_online(const struct hw_device *d, const struct hw_evidence *e)
{
	if (e->blind)
		return act(HW_ACT_VOID);
	if (said_goodbye(d))
		return act(HW_ACT_NONE);
	return act(e->delay ? HW_ACT_HOLD : HW_ACT_CANDIDATE);
}

static struct hw_verdict on_goodbye(const struct hw_device *d, const struct hw_evidence *e)
{
	switch (hw_device_state(d)) {
	case HW_STATE_ONLINE:
		return on_goodbye_online(d, e);
	case HW_STATE_OFFLINE:
		return act(HW_ACT_OWE_STATUS);
	case HW_STATE_FORGOTTEN:
		return offline(HW_REASON_WILL, -1);
	default:
		return e->loading ? act(HW_ACT_NONE) : on_settled(d, e);
	}
}

static struct hw_verdict on_due(const struct hw_device *d, const struct hw_evidence *e)
{
	if (hw_device_state(d) == HW_STATE_OFFLINE)
		return forgotten(HW_REASON_FORGET_AFTER);
	if (e->by_key && !said_goodbye(d))
		return act(HW_ACT_ASK_KEY);
	if (e->deaf)
		return act(HW_ACT_REST);
	if (said_goodbye(d))
		return act(HW_ACT_CANDIDATE);
	return act(e->late_ns >= 0 ? HW_ACT_CANDIDATE : HW_ACT_REARM);
}

/*
 * Heard since, or touched by blindness: it goes on living. Otherwise it is offline.
 *
 * Behind a backlog the deadline may have moved on and passed again before the pair came back: then that pair says
 * nothing of what was sent since it set out, and another must go.
 */
static struct hw_verdict on_proven(const struct hw_device *d, const struct hw_evidence *e)
{
	if (e->deaf)
		return act(HW_ACT_REST);
	if (said_goodbye(d) && (e->touched || e->key_lives))
		return act(HW_ACT_VOID);
	if (said_goodbye(d))
		return e->unheard ? act(HW_ACT_WAIT) : offline(HW_REASON_WILL, -1);
	if (e->late_ns < 0)
		return act(HW_ACT_REARM);
	if (e->outrun)
		return act(HW_ACT_CANDIDATE);
	if (e->key_lives)
		return act(HW_ACT_KEY_LIVES);
	if (e->unheard)
		return act(HW_ACT_WAIT);
	return e->by_key ? offline(HW_REASON_KEYSPACE, -1) : offline(HW_REASON_TIMEOUT, e->late_ns);
}

/* Of a device that is online. While it beats over MQTT, or if no key is known of it, it is online for its heartbeats.
 * One that beat, and is overdue, is judged by the rule for heartbeats. */
static struct hw_verdict on_key_gone(const struct hw_evidence *e)
{
	if (!e->by_key || (e->beats && !e->overdue))
		return act(HW_ACT_REFRESH);
	if (e->candidate)
		return act(HW_ACT_NONE);
	if (e->spared)
		return act(HW_ACT_SPARE);
	if (e->beats)
		return act(HW_ACT_CANDIDATE);
	return offline(HW_REASON_KEYSPACE, e->late_ns >= 0 ? e->late_ns : -1);
}

struct hw_verdict hw_verdict(const struct hw_device *d, const struct hw_evidence *e)
{
	enum hw_state state = hw_device_state(d);
	switch (e->said) {
	case HW_SAID_LIFE:
		return on_life(d, e);
	case HW_SAID_GOODBYE:
		return on_goodbye(d, e);
	case HW_SAID_DUE:
		return on_due(d, e);
	case HW_SAID_PROVEN:
		return on_proven(d, e);
	case HW_SAID_KEY_GONE:
		return on_key_gone(e);
	case HW_SAID_STORED:
		return state == HW_STATE_OFFLINE && e->heard ? online() : act(HW_ACT_NONE);
	case HW_SAID_SETTLED:
		return on_settled(d, e);
	default:
		return state == HW_STATE_ONLINE || state == HW_STATE_OFFLINE ? forgotten(HW_REASON_OPERATOR)
		                                                             : act(HW_ACT_NONE);
	}
}
