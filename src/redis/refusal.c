/* SPDX-License-Identifier: MIT */
/*
 * Reports the errors of Redis, and tracks whether Redis accepts writes. A refusal begins when Redis refuses all writes
 * of a call. It ends when each kind of write that was refused has succeeded.
 */
#include <stdio.h>

#include "redis/inner.h"

bool hw_refusal_log(struct hw_redis *r, int64_t *reported_ms, const char *text)
{
	bool due = hw_trouble_due_again(reported_ms, hw_clock_now().mono.ns / HW_NS_PER_MS);
	if (due)
		r->ops->on_trouble(r->arg, text);
	return due;
}

enum hw_trouble hw_refusal_trouble(struct hw_redis *r, const char *reply)
{
	enum hw_trouble kind = hw_trouble_of(reply);
	char text[HW_TROUBLE_TEXT];
	hw_trouble_text(reply, text);
	if (kind != HW_TROUBLE_NOSCRIPT)
		hw_refusal_log(r, &r->troubles.reported_ms[kind], text);
	return kind;
}

enum hw_trouble hw_refusal_begin(struct hw_redis *r, unsigned write, const char *reply)
{
	struct hw_refusal *f = &r->refusal;
	enum hw_trouble kind = hw_trouble_of(reply);
	char text[HW_TROUBLE_TEXT];
	if (kind == HW_TROUBLE_NOSCRIPT)
		return kind;
	bool of_inventory = (f->writes | write) == HW_REFUSED_INVENTORY;
	bool known = f->writes && f->kind == kind && f->of_inventory == of_inventory;
	if (!f->writes) {
		f->since = hw_clock_now().mono;
		f->reported = false;
	}
	f->writes |= write;
	f->kind = kind;
	f->of_inventory = of_inventory;
	if (known)
		return kind;
	hw_trouble_text(reply, text);
	snprintf(f->text, sizeof(f->text), "%s: %s",
	         of_inventory ? "the inventory cannot be read or written" : "no write is accepted", text);
	f->reported |= hw_refusal_log(r, of_inventory ? &f->of_inventory_ms : &r->troubles.reported_ms[kind], f->text);
	return kind;
}

/* Returns the kinds of calls that are pending or in flight, as bits. */
static unsigned pending_calls(const struct hw_redis *r)
{
	const struct hw_sink *s = &r->sink;
	unsigned pending = 0;
	if (s->pending_writes.head != s->pending_writes.tail || s->in_flight[HW_CALL_TRANSITIONS])
		pending |= HW_HOLD(HW_CALL_TRANSITIONS);
	if (s->refresh.len || s->in_flight[HW_CALL_REFRESH])
		pending |= HW_HOLD(HW_CALL_REFRESH);
	if (s->snapshot.len || s->in_flight[HW_CALL_SNAPSHOT])
		pending |= HW_HOLD(HW_CALL_SNAPSHOT);
	if (hw_inventory_is_refused(r))
		pending |= HW_REFUSED_INVENTORY;
	return pending;
}

/* Called when a kind of write has succeeded. Other kinds that Redis has refused also count as successful if no call
 * of the kind is pending. (The call may have been dropped with its device, and there may never be another one.) The
 * sight record is always pending. */
void hw_refusal_end(struct hw_redis *r, unsigned write)
{
	struct hw_refusal *f = &r->refusal;
	if (!f->writes)
		return;
	f->writes &= ~write & (pending_calls(r) | HW_REFUSED_SIGHT_RECORD);
	if (!f->writes && f->reported && r->ops->on_writable)
		r->ops->on_writable(r->arg, (hw_clock_now().mono.ns - f->since.ns) / HW_NS_PER_MS);
}

const char *hw_redis_refusal(const struct hw_redis *r)
{
	return r->refusal.writes ? r->refusal.text : NULL;
}

const char *hw_redis_refusal_name(const struct hw_redis *r)
{
	if (!r->refusal.writes)
		return NULL;
	const char *name = hw_trouble_name(r->refusal.kind);
	return name ? name : hw_trouble_name(HW_TROUBLE_OTHER);
}

const char *hw_redis_refusal_names(unsigned i)
{
	for (int k = 0; k < HW_TROUBLE_KINDS; k++)
		if (hw_trouble_name((enum hw_trouble)k) && i-- == 0)
			return hw_trouble_name((enum hw_trouble)k);
	return NULL;
}
