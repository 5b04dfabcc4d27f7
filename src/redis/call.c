/* SPDX-License-Identifier: MIT */
/* A call of a script, or a write of plain refreshes, from its creation until it is answered or its answer is lost. The
 * items of a call whose answer is lost are sent again. */
#include "heartwheel/print.h"
#include "redis/inner.h"

struct hw_call *hw_call_new(struct hw_redis *r, enum hw_call_kind kind)
{
	struct hw_call *c = r->sink.calls;
	while (c->kind != HW_CALL_FREE)
		c++; /* a slot is free, because there are more slots than calls that may be in flight */
	c->r = r;
	c->kind = kind;
	c->n = 0;
	return c;
}

static void set_in_flight(struct hw_redis *r, const struct hw_call *c, bool on)
{
	struct hw_sink *s = &r->sink;
	for (unsigned i = 0; i < c->n; i++) {
		uint32_t index = c->items[i].ref.index;
		if (c->items[i].stateless)
			continue;
		if (on)
			s->noted[index] |= HW_NOTED_IN_FLIGHT;
		else
			s->noted[index] &= (uint8_t)~HW_NOTED_IN_FLIGHT;
	}
}

/* Whether the device was removed since the call was built, or has made a newer transition. Then the stream gets no
 * entry for the item's transition. */
static bool is_past(const struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(r->m), c->items[i].ref);
	return !d || d->seq != c->items[i].seq;
}

bool hw_call_in_full(struct hw_redis *r, uint32_t index)
{
	r->sink.noted[index] &= (uint8_t)~HW_NOTED_FULL;
	r->sink.gathered = true;
	return hw_dues_add(r, &r->sink.refresh, index);
}

void hw_call_put_back(struct hw_redis *r, const struct hw_call *c, unsigned i)
{
	struct hw_sink *s = &r->sink;
	uint32_t index = c->items[i].ref.index;
	if (c->kind != HW_CALL_SNAPSHOT) {
		hw_call_in_full(r, index);
		return;
	}
	s->noted[index] &= (uint8_t)~HW_NOTED_FULL;
	bool waits = hw_dues_add(r, &s->snapshot, index);
	if (!c->items[i].as_transition)
		return;
	if (waits && !is_past(r, c, i))
		s->noted[index] |= HW_NOTED_AS_TRANSITION;
	else
		r->stats->transitions_dropped++;
}

void hw_call_undo(struct hw_redis *r, struct hw_call *c)
{
	struct hw_sink *s = &r->sink;
	s->in_flight[c->kind]--;
	if (c->kind == HW_CALL_TRANSITIONS)
		set_in_flight(r, c, false);
	else
		for (unsigned i = 0; i < c->n; i++)
			hw_call_put_back(r, c, i);
	c->kind = HW_CALL_FREE;
}

bool hw_call_send(struct hw_redis *r, struct hw_call *c, enum hw_script script, redisCallbackFn *fn)
{
	struct hw_sink *s = &r->sink;
	enum hw_call_kind kind = c->kind;
	hw_call_owner_end(r);
	s->in_flight[kind]++;
	if (kind == HW_CALL_TRANSITIONS)
		set_in_flight(r, c, true);
	c->sent_ns = hw_clock_now().mono.ns;
	if (hw_scripts_call(&r->scripts, script, &s->eval, fn, c) == 0) {
		r->stats->scripts++;
		return true;
	}
	hw_call_undo(r, c);
	hw_plan_retry(r, HW_HOLD(kind));
	return false;
}

/* --- plain refreshes --------------------------------------------------------------------------------------------- */

struct hw_plain_call *hw_plain_call_new(struct hw_redis *r)
{
	struct hw_plain_call *p = r->sink.plain;
	while (p->n > 0)
		p++; /* a slot is free, because each is one of the calls in flight */
	*p = (struct hw_plain_call){.r = r};
	return p;
}

bool hw_plain_call_send(struct hw_plain_call *p, const struct hw_device *d, uint32_t index)
{
	struct hw_redis *r = p->r;
	struct hw_id id = hw_device_id(d);
	char ttl[24];
	const char *argv[] = {"PEXPIRE", r->sink.key, ttl};
	const size_t len[] = {7, hw_keys_device(&r->keys, HW_KEY_CONNECTED, id.text, id.len, r->sink.key),
	                      hw_print(ttl, sizeof(ttl), "%lld", (long long)hw_item_ttl_ms(r, d))};
	if (hw_redis_link_command(&r->link, hw_call_on_plain, p, 3, argv, len) != 0) {
		hw_call_in_full(r, index);
		hw_plan_retry(r, HW_HOLD(HW_CALL_REFRESH));
		return false;
	}
	r->sink.in_flight[HW_CALL_REFRESH] += p->n == 0;
	p->index[p->n++] = index;
	return true;
}

void hw_plain_call_undo(struct hw_plain_call *p)
{
	p->r->sink.in_flight[HW_CALL_REFRESH]--;
	for (unsigned i = p->answered; i < p->n; i++)
		hw_call_in_full(p->r, p->index[i]);
	p->n = 0;
}
