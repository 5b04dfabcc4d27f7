/* SPDX-License-Identifier: MIT */
/*
 * See retained_sink.h. Invariant: if a device's message is pending, the device is waiting in the line, held, in flight,
 * waiting for its release (pending.h), or refused. Refused messages are found by a sweep after each reconnect, and once
 * a minute while there are any. Exception: another node owns the device by now. The message is then given up when its
 * turn in the line comes, or by the sweep that began when the partition was lost.
 */
#include "retained_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_QUIET  64   /* the sweep adds messages only while the line is shorter than this */
#define BURST_S      0.05 /* the credit is at most the messages of so many seconds */
#define SWEEP_CHECKS 4096 /* records checked per call */

void hw_retained_init(struct hw_retained_sink *s, const struct hw_retained_kind *kind)
{
	memset(s, 0, sizeof(*s));
	s->kind = kind;
}

void hw_retained_fini(struct hw_retained_sink *s)
{
	free(s->fresh.entries);
	free(s->held.entries);
}

/* --- the line ---------------------------------------------------------------- */

static int line_push(struct hw_retained_line *l, struct hw_retained_entry e)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 1024;
		struct hw_retained_entry *grown = malloc(cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		for (size_t k = 0; k < l->n; k++)
			grown[k] = l->entries[(l->head + k) % l->cap];
		free(l->entries);
		*l = (struct hw_retained_line){.entries = grown, .n = l->n, .cap = cap};
	}
	l->entries[(l->head + l->n++) % l->cap] = e;
	return 0;
}

static struct hw_retained_entry line_pop(struct hw_retained_line *l)
{
	struct hw_retained_entry e = l->entries[l->head];
	l->head = (l->head + 1) % l->cap;
	l->n--;
	return e;
}

static bool wanted(const struct hw_retained_sink *s, const struct hw_device *d)
{
	return s->kind->wanted(s, hw_monitor_group_of(s->m, d));
}

static void set_pending(struct hw_retained_sink *s, struct hw_device *d, bool pending)
{
	if (hw_device_noted(d, s->kind->pending) == pending)
		return;
	hw_device_note(d, s->kind->pending, pending);
	s->pending += pending ? 1 : UINT64_MAX;
	if (s->pending == 0)
		s->refused_since_ms = 0;
	if (!pending && s->on_settled)
		s->on_settled(s->arg, d);
	if (s->pending_of)
		s->pending_of[hw_device_partition(d)] += pending ? 1 : UINT32_MAX;
}

void hw_retained_add(struct hw_retained_sink *s, uint32_t index)
{
	struct hw_device *d = hw_registry_at(hw_monitor_registry(s->m), index);
	if (!d || hw_device_noted(d, s->kind->pending) || !wanted(s, d) || !hw_monitor_owns(s->m, d))
		return;
	set_pending(s, d, true);
}

int hw_retained_release(struct hw_retained_sink *s, struct hw_ref device, int64_t now_ms)
{
	struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), device);
	if (!d || !hw_device_noted(d, s->kind->pending) || hw_device_noted(d, s->kind->queued))
		return 0;
	int rc = line_push(&s->fresh, (struct hw_retained_entry){device, now_ms});
	if (!rc)
		hw_device_note(d, s->kind->queued, true);
	return rc;
}

/* --- answers ----------------------------------------------------------------- */

/* Ends a flight. NULL: the publish id is not in flight. */
static struct hw_retained_flight *land(struct hw_retained_sink *s, uint64_t publish_id)
{
	struct hw_retained_flight *f = &s->flight[publish_id % HW_RETAINED_WINDOW];
	if (!f->used || f->publish_id != publish_id)
		return NULL;
	f->used = false;
	s->in_flight--;
	return f;
}

/* The device's message is no longer pending. */
static void settle(struct hw_retained_sink *s, struct hw_ref ref, struct hw_device *d)
{
	set_pending(s, d, false);
	s->on_published(s->arg, ref, hw_device_state(d) == HW_STATE_FORGOTTEN);
}

void hw_retained_acked(struct hw_retained_sink *s, uint64_t publish_id)
{
	struct hw_retained_flight *f = land(s, publish_id);
	if (!f)
		return;
	s->published++;
	struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), f->entry.device);
	/* The device has changed since the message was sent. Its new message waits to be released, or is already in the
	 * line. */
	if (!d || s->kind->version(d) != f->version)
		return;
	if (hw_device_noted(d, s->kind->queued))
		s->on_published(s->arg, f->entry.device, hw_device_state(d) == HW_STATE_FORGOTTEN);
	else
		settle(s, f->entry.device, d);
}

void hw_retained_refused(struct hw_retained_sink *s, uint64_t publish_id, int64_t now_ms)
{
	struct hw_retained_flight *f = land(s, publish_id);
	if (!f)
		return;
	s->refused++;
	struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), f->entry.device);
	if (d && s->kind->lenient && hw_device_state(d) == HW_STATE_FORGOTTEN) {
		settle(s, f->entry.device, d);
		return;
	}
	if (!s->refused_since_ms)
		s->refused_since_ms = now_ms;
	if (d && s->on_refused && s->kind->version(d) == f->version)
		s->on_refused(s->arg, d);
}

const struct hw_group *hw_retained_group(const struct hw_retained_sink *s, uint64_t publish_id)
{
	const struct hw_retained_flight *f = &s->flight[publish_id % HW_RETAINED_WINDOW];
	if (!f->used || f->publish_id != publish_id)
		return NULL;
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), f->entry.device);
	return d ? hw_monitor_group_of(s->m, d) : NULL;
}

void hw_retained_down(struct hw_retained_sink *s)
{
	for (size_t k = 0; k < HW_RETAINED_WINDOW; k++) {
		struct hw_retained_flight *f = &s->flight[k];
		if (!f->used)
			continue;
		f->used = false;
		/* If memory cannot be allocated, the sweep after the next connect finds the device. */
		(void)hw_retained_release(s, f->entry.device, f->entry.since_ms);
	}
	s->in_flight = 0;
}

/* --- pump -------------------------------------------------------------------- */

static void refill(struct hw_retained_pace *p, struct hw_now now)
{
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	double most = (double)p->rate * BURST_S + 1;
	p->credit += (double)(now_ms - p->ms) * (double)p->rate / 1000;
	p->credit = p->credit < most ? p->credit : most;
	p->ms = now_ms;
}

enum outcome { SENT, NO_ROOM, NONE };

/* Hands one message to the publisher. NO_ROOM: there is no room, and nothing has changed. */
static enum outcome publish(struct hw_retained_sink *s, struct hw_now now, struct hw_retained_entry e,
                            const struct hw_device *d)
{
	struct hw_retained_flight *f = &s->flight[s->next_publish_id % HW_RETAINED_WINDOW];
	if (f->used)
		return NO_ROOM;
	char payload[HW_RETAINED_PAYLOAD_MAX], topic[HW_TOPIC_MAX + 1];
	if (!wanted(s, d) || s->kind->topic(s, d, topic, sizeof(topic)) <= 0)
		return NONE;
	int len = s->kind->payload(s, now, d, payload, sizeof(payload));
	if (len < 0)
		return NONE;
	uint64_t publish_id = s->kind->publish_id | s->next_publish_id;
	const struct hw_publication what = {.topic = topic,
	                                    .payload = payload,
	                                    .len = (size_t)len,
	                                    .retain = true,
	                                    .qos = 1,
	                                    .publish_id = publish_id,
	                                    .subject = s->kind->publish_id | ((uint64_t)e.device.index + 1)};
	if (!hw_publisher_publish(s->publisher, &what))
		return NO_ROOM;
	*f = (struct hw_retained_flight){
		.used = true, .entry = e, .publish_id = publish_id, .version = s->kind->version(d)};
	s->next_publish_id++;
	s->in_flight++;
	return SENT;
}

static bool may_pump(const struct hw_retained_sink *s)
{
	return (s->fresh.n > 0 || s->retry > 0) && hw_publisher_room(s->publisher) > 0 &&
	       (s->line.rate == 0 || s->line.credit >= 1);
}

/* Whether another node owns the device now, and so publishes the message. */
static bool is_given_up(const struct hw_retained_sink *s, const struct hw_device *d)
{
	return hw_device_noted(d, s->kind->pending) && !hw_monitor_owns(s->m, d);
}

static void give_up(struct hw_retained_sink *s, struct hw_ref ref, struct hw_device *d)
{
	set_pending(s, d, false);
	s->on_dropped(s->arg, ref);
}

static bool is_pending(const struct hw_retained_sink *s, const struct hw_device *d)
{
	return d && hw_device_noted(d, s->kind->pending) && hw_monitor_owns(s->m, d);
}

static struct hw_retained_entry take(struct hw_retained_sink *s, struct hw_retained_line *line)
{
	if (line == &s->held)
		s->retry--;
	return line_pop(line);
}

/*
 * Appends an entry to the held ones. If memory cannot be allocated, the device stays pending until the next
 * hw_retained_republish().
 */
static void hold(struct hw_retained_sink *s, struct hw_retained_line *line, struct hw_device *d)
{
	if (line_push(&s->held, take(s, line)))
		hw_device_note(d, s->kind->queued, false);
}

static void end_turn(struct hw_retained_sink *s, struct hw_ref ref, struct hw_device *d, enum outcome outcome)
{
	hw_device_note(d, s->kind->queued, false);
	if (outcome == NONE) /* its group has no topic since a reload */
		settle(s, ref, d);
	else if (is_given_up(s, d))
		give_up(s, ref, d);
}

static void pump_line(struct hw_retained_sink *s, struct hw_now now, unsigned *budget)
{
	for (; *budget > 0 && may_pump(s); (*budget)--) {
		struct hw_retained_line *line = s->retry > 0 ? &s->held : &s->fresh;
		struct hw_retained_entry e = line->entries[line->head];
		struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), e.device);
		bool pending = is_pending(s, d);
		if (pending && s->may_go && !s->may_go(s->arg, d)) {
			hold(s, line, d);
			continue;
		}
		enum outcome outcome = pending ? publish(s, now, e, d) : SENT;
		if (outcome == NO_ROOM)
			return;
		take(s, line);
		s->line.credit -= 1;
		if (d)
			end_turn(s, e.device, d, outcome);
	}
}

static bool is_swept(const struct hw_retained_sink *s, const struct hw_device *d)
{
	return hw_monitor_owns(s->m, d) && (s->all || hw_partitions_has(&s->swept, hw_device_partition(d))) &&
	       (s->sweep.rate > 0 || hw_device_noted(d, s->kind->pending));
}

/* Ends a sweep, and begins the next one if one waits. */
static bool next_sweep(struct hw_retained_sink *s)
{
	s->sweeping = s->again;
	s->all = s->again = false;
	s->swept = s->waiting;
	s->waiting = (struct hw_partitions){{0}};
	s->sweep_at = 0;
	return s->sweeping;
}

/* Continues the sweep, as far as its rate allows and while the line is short. */
static void pump_sweep(struct hw_retained_sink *s, struct hw_now now)
{
	const struct hw_registry *r = hw_monitor_registry(s->m);
	uint32_t bound = hw_registry_bound(r);
	refill(&s->sweep, now);
	for (int n_checked = 0;
	     n_checked < SWEEP_CHECKS && (s->sweep.rate == 0 || s->sweep.credit >= 1) && s->fresh.n < SWEEP_QUIET;
	     n_checked++) {
		if (s->sweep_at >= bound && !next_sweep(s))
			return;
		uint32_t i = s->sweep_at++;
		struct hw_device *d = hw_registry_at(r, i);
		/* A device in the line is given up when its turn comes. */
		if (d && is_given_up(s, d) && !hw_device_noted(d, s->kind->queued)) {
			give_up(s, hw_registry_ref(r, i), d);
			continue;
		}
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL || !is_swept(s, d) ||
		    hw_device_noted(d, s->kind->queued))
			continue;
		/*
		 * The status is pending again if Redis has not confirmed the state yet: it may have been published
		 * while Redis was late, to a broker that has lost it since. store.c releases the status later.
		 */
		if (hw_device_noted(d, HW_PENDING_STORE)) {
			if (s->kind->pending == HW_PENDING_STATUS)
				hw_retained_add(s, i);
			continue;
		}
		hw_retained_add(s, i);
		if (hw_retained_release(s, hw_registry_ref(r, i), now.mono.ns / HW_NS_PER_MS))
			return;
		s->sweep.credit -= 1;
	}
}

struct hw_partitions hw_retained_unswept(const struct hw_retained_sink *s)
{
	struct hw_partitions set = s->cut;
	for (unsigned k = 0; k < HW_PARTITIONS / 64 && s->sweep.rate > 0; k++) {
		if (s->sweeping)
			set.bits[k] |= s->all ? UINT64_MAX : s->swept.bits[k];
		if (s->again)
			set.bits[k] |= s->waiting.bits[k];
	}
	return set;
}

void hw_retained_end_sweeps(struct hw_retained_sink *s)
{
	s->cut = hw_retained_unswept(s);
	s->sweeping = s->again = false;
}

/* Begins a new sweep at the first record. A sweep that is running ends. */
static void begin_sweep(struct hw_retained_sink *s, bool all, int64_t now_ms)
{
	s->sweeping = true;
	s->all = all;
	s->again = false;
	s->swept = s->waiting = (struct hw_partitions){{0}};
	s->sweep_at = 0;
	s->sweep.ms = now_ms;
	s->sweep.credit = 0;
}

void hw_retained_republish(struct hw_retained_sink *s, int64_t now_ms)
{
	s->refused_since_ms = 0;
	begin_sweep(s, true, now_ms);
}

/* Republishes the messages of some partitions. A sweep that is running is not restarted: if partitions are won one
 * by one, it would never end. */
void hw_retained_republish_of(struct hw_retained_sink *s, const struct hw_partitions *set, int64_t now_ms)
{
	hw_retained_retry(s);
	s->again = s->sweeping;
	if (!s->sweeping)
		begin_sweep(s, false, now_ms);
	struct hw_partitions *to = s->again ? &s->waiting : &s->swept;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (hw_partitions_has(set, p))
			hw_partitions_add(to, p);
}

void hw_retained_retry(struct hw_retained_sink *s)
{
	s->retry = s->held.n;
}

bool hw_retained_pump(struct hw_retained_sink *s, struct hw_now now, unsigned *budget)
{
	if (!s->publisher)
		return false;
	refill(&s->line, now);
	pump_line(s, now, budget);
	if (s->sweeping && hw_publisher_room(s->publisher) > 0) {
		pump_sweep(s, now);
		pump_line(s, now, budget);
	}
	return may_pump(s);
}

int64_t hw_retained_wait_ms(const struct hw_retained_sink *s)
{
	if (!s->publisher || hw_publisher_room(s->publisher) == 0)
		return -1;
	bool paced = (s->fresh.n > 0 || s->retry > 0) && s->line.rate > 0;
	if (!s->sweeping && !paced)
		return -1;
	int64_t rate = paced ? s->line.rate : s->sweep.rate, wait = rate > 0 ? 1000 / rate : 0;
	/* At least 10 ms: a wake-up for a single message would cost more than the message. */
	return wait > 10 ? wait : 10;
}

int64_t hw_retained_oldest_ms(const struct hw_retained_sink *s, int64_t now_ms)
{
	int64_t oldest = s->refused_since_ms ? s->refused_since_ms : now_ms;
	if (s->fresh.n && s->fresh.entries[s->fresh.head].since_ms < oldest)
		oldest = s->fresh.entries[s->fresh.head].since_ms;
	if (s->held.n && s->held.entries[s->held.head].since_ms < oldest)
		oldest = s->held.entries[s->held.head].since_ms;
	for (size_t k = 0; s->in_flight && k < HW_RETAINED_WINDOW; k++)
		if (s->flight[k].used && s->flight[k].entry.since_ms < oldest)
			oldest = s->flight[k].entry.since_ms;
	return now_ms - oldest;
}

bool hw_retained_idle(const struct hw_retained_sink *s)
{
	return s->fresh.n == 0 && s->retry == 0 && s->in_flight == 0;
}
