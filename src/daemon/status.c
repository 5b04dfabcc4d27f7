/* SPDX-License-Identifier: MIT */
/*
 * See status.h. Invariant: a device with HW_FLAG_OWED_STATUS is in the line, in flight, waiting for Redis (the fan-out
 * releases it), or refused; the sweep, once a minute while anything was refused, and after each reconnect, finds those
 * of the last kind.
 */
#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_QUIET   64   /* the sweep adds to the line only while it is shorter than this */
#define SWEEP_BURST_S 0.05 /* credit never grows beyond so many seconds' worth */
#define SWEEP_LOOKS   4096 /* records looked at in one go */

void hw_status_init(struct hw_status_sink *s)
{
	memset(s, 0, sizeof *s);
}

void hw_status_fini(struct hw_status_sink *s)
{
	free(s->fresh.entries);
}

/* --- the line ---------------------------------------------------------------- */

static int line_push(struct hw_status_line *l, struct hw_status_entry e)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 1024;
		struct hw_status_entry *grown = malloc(cap * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		for (size_t k = 0; k < l->n; k++)
			grown[k] = l->entries[(l->head + k) % l->cap];
		free(l->entries);
		*l = (struct hw_status_line){.entries = grown, .n = l->n, .cap = cap};
	}
	l->entries[(l->head + l->n++) % l->cap] = e;
	return 0;
}

static struct hw_status_entry line_pop(struct hw_status_line *l)
{
	struct hw_status_entry e = l->entries[l->head];
	l->head = (l->head + 1) % l->cap;
	l->n--;
	return e;
}

static int queue(struct hw_status_sink *s, struct hw_device *d, struct hw_status_entry e)
{
	if (d->flags & HW_FLAG_QUEUED_STATUS)
		return 0;
	int rc = line_push(&s->fresh, e);
	if (!rc)
		d->flags |= HW_FLAG_QUEUED_STATUS;
	return rc;
}

void hw_status_owe(struct hw_status_sink *s, uint32_t index)
{
	struct hw_device *d = hw_registry_at(hw_monitor_registry(s->m), index);
	if (!d || d->flags & HW_FLAG_OWED_STATUS || !hw_monitor_group_of(s->m, d)->status.filter)
		return;
	d->flags |= HW_FLAG_OWED_STATUS;
	s->owed++;
}

int hw_status_release(struct hw_status_sink *s, struct hw_ref device, int64_t now_ms)
{
	struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), device);
	if (!d || !(d->flags & HW_FLAG_OWED_STATUS))
		return 0;
	return queue(s, d, (struct hw_status_entry){device, now_ms});
}

/* --- answers ----------------------------------------------------------------- */

/* Ends a flight; NULL if the token is not one's own. */
static struct hw_status_flight *land(struct hw_status_sink *s, uint64_t token)
{
	struct hw_status_flight *f = &s->flight[token % HW_STATUS_WINDOW];
	if (!f->used || f->token != token)
		return NULL;
	f->used = false;
	s->in_flight--;
	return f;
}

void hw_status_acked(struct hw_status_sink *s, uint64_t token)
{
	struct hw_status_flight *f = land(s, token);
	if (!f)
		return;
	s->published++;
	struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), f->entry.device);
	if (!d)
		return;
	bool current = d->seq == f->seq;
	if (current && !(d->flags & HW_FLAG_QUEUED_STATUS)) {
		d->flags &= (uint16_t)~HW_FLAG_OWED_STATUS;
		s->owed--;
	}
	if (current)
		s->on_published(s->arg, f->entry.device, f->seq, hw_device_state(d) == HW_STATE_FORGOTTEN);
	/* Changed since: its newer state waits for Redis, or is in the line already. */
}

void hw_status_refused(struct hw_status_sink *s, uint64_t token, int64_t now_ms)
{
	struct hw_status_flight *f = land(s, token);
	if (!f)
		return;
	s->refused++;
	if (!s->refused_since_ms)
		s->refused_since_ms = now_ms;
}

void hw_status_down(struct hw_status_sink *s)
{
	for (size_t k = 0; k < HW_STATUS_WINDOW; k++) {
		struct hw_status_flight *f = &s->flight[k];
		if (!f->used)
			continue;
		f->used = false;
		struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), f->entry.device);
		if (d && d->flags & HW_FLAG_OWED_STATUS)
			queue(s, d, f->entry); /* without memory it is found by the sweep after the reconnect */
	}
	s->in_flight = 0;
}

/* --- payload ----------------------------------------------------------------- */

int hw_status_payload(const struct hw_monitor *m, const char *node_id, struct hw_now now, const struct hw_device *d,
                      char *buf, size_t cap)
{
	if (!hw_monitor_group_of(m, d)->status.filter)
		return -1;
	buf[0] = '\0';
	if (hw_device_state(d) == HW_STATE_FORGOTTEN)
		return 0;
	char by[6 * 256 + 3];
	if (hw_json_quote(node_id, strlen(node_id), by, sizeof by) >= sizeof by)
		return -1;
	/* Of an online device it is what it was at the transition: told again, a status has the same content. */
	bool online = hw_device_state(d) == HW_STATE_ONLINE;
	int64_t last_seen_ms = online ? d->since_ms : hw_device_last_seen_ms(d, now);
	int n = snprintf(buf, cap,
	                 "{\"time\":%lld,\"online\":%s,\"reason\":\"%s\",\"last_seen\":%lld,\"by\":%s,\"seq\":%llu",
	                 (long long)d->since_ms / 1000, online ? "true" : "false", hw_reason_name(hw_device_reason(d)),
	                 (long long)last_seen_ms / 1000, by, (unsigned long long)d->seq);
	if (n < 0 || (size_t)n + 2 > cap)
		return -1;
	size_t len = (size_t)n;
	if (d->extra)
		len += hw_report_json(&d->extra->report, buf + len, cap - len);
	if (len + 2 > cap)
		return -1;
	buf[len++] = '}';
	buf[len] = '\0';
	return (int)len;
}

/* --- pump -------------------------------------------------------------------- */

/* Hands one status over. False: no room, and nothing happened. */
static bool publish(struct hw_status_sink *s, struct hw_now now, struct hw_status_entry e, const struct hw_device *d)
{
	struct hw_status_flight *f = &s->flight[s->next_token % HW_STATUS_WINDOW];
	if (f->used)
		return false;
	char payload[HW_STATUS_PAYLOAD_MAX], topic[HW_TOPIC_MAX + 1];
	struct hw_id id = hw_device_id(d);
	int topic_len = hw_group_status_topic(hw_monitor_group_of(s->m, d), id.text, id.len, topic, sizeof topic);
	int len = hw_status_payload(s->m, s->node_id, now, d, payload, sizeof payload);
	uint64_t token = HW_STATUS_TOKEN | s->next_token;
	if (topic_len <= 0 || len < 0)
		return true; /* its group publishes none since a reload */
	if (!hw_publisher_send(s->publisher, topic, payload, (size_t)len, token))
		return false;
	*f = (struct hw_status_flight){.used = true, .entry = e, .token = token, .seq = d->seq};
	s->next_token++;
	s->in_flight++;
	return true;
}

/* What is owed no more because its group lost its status topic, or the device its life, leaves the books here. */
static void forgive(struct hw_status_sink *s, struct hw_status_entry e, struct hw_device *d)
{
	if (!(d->flags & HW_FLAG_OWED_STATUS) || hw_monitor_group_of(s->m, d)->status.filter)
		return;
	d->flags &= (uint16_t)~HW_FLAG_OWED_STATUS;
	s->owed--;
	s->on_published(s->arg, e.device, d->seq, hw_device_state(d) == HW_STATE_FORGOTTEN);
}

static void pump_line(struct hw_status_sink *s, struct hw_now now, unsigned *budget)
{
	while (*budget > 0 && s->fresh.n > 0 && hw_publisher_room(s->publisher) > 0) {
		struct hw_status_entry e = s->fresh.entries[s->fresh.head];
		struct hw_device *d = hw_registry_get(hw_monitor_registry(s->m), e.device);
		if (d && d->flags & HW_FLAG_OWED_STATUS && !publish(s, now, e, d))
			return;
		line_pop(&s->fresh);
		(*budget)--;
		if (!d)
			continue;
		d->flags &= (uint16_t)~HW_FLAG_QUEUED_STATUS;
		forgive(s, e, d);
	}
}

/* Moves the sweep on by what its rate allows, while the line is short. */
static void pump_sweep(struct hw_status_sink *s, struct hw_now now)
{
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	double most = (double)s->rate * SWEEP_BURST_S + 1;
	s->sweep_credit += (double)(now_ms - s->sweep_ms) * (double)s->rate / 1000;
	s->sweep_credit = s->sweep_credit < most ? s->sweep_credit : most;
	s->sweep_ms = now_ms;
	const struct hw_registry *r = hw_monitor_registry(s->m);
	uint32_t bound = hw_registry_bound(r);
	for (int looks = 0; looks < SWEEP_LOOKS && s->sweep_credit >= 1 && s->fresh.n < SWEEP_QUIET; looks++) {
		if (s->sweep_at >= bound) {
			s->sweeping = false;
			return;
		}
		uint32_t i = s->sweep_at++;
		const struct hw_device *d = hw_registry_at(r, i);
		/* One that Redis has not confirmed yet is released by the fan-out. */
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL ||
		    d->flags & (HW_FLAG_QUEUED_STATUS | HW_FLAG_OWED_STORE))
			continue;
		hw_status_owe(s, i);
		if (hw_status_release(s, hw_registry_ref(r, i), now_ms))
			return;
		s->sweep_credit -= 1;
	}
}

void hw_status_republish(struct hw_status_sink *s, int64_t now_ms)
{
	s->refused_since_ms = 0;
	if (s->rate <= 0)
		return;
	s->sweeping = true;
	s->sweep_at = 0;
	s->sweep_ms = now_ms;
	s->sweep_credit = 0;
}

bool hw_status_pump(struct hw_status_sink *s, struct hw_now now, unsigned budget)
{
	if (!s->publisher)
		return false;
	pump_line(s, now, &budget);
	if (s->sweeping && hw_publisher_room(s->publisher) > 0) {
		pump_sweep(s, now);
		pump_line(s, now, &budget);
	}
	return s->fresh.n > 0 && hw_publisher_room(s->publisher) > 0;
}

int64_t hw_status_wait_ms(const struct hw_status_sink *s)
{
	if (!s->sweeping || !s->publisher || hw_publisher_room(s->publisher) == 0)
		return -1;
	int64_t wait = 1000 / s->rate;
	return wait > 10
	               ? wait
	               : 10; /* ten milliseconds' worth at a time: a wake-up a status would cost more than the status */
}

int64_t hw_status_oldest_ms(const struct hw_status_sink *s, int64_t now_ms)
{
	int64_t oldest = s->refused_since_ms ? s->refused_since_ms : now_ms;
	if (s->fresh.n && s->fresh.entries[s->fresh.head].since_ms < oldest)
		oldest = s->fresh.entries[s->fresh.head].since_ms;
	for (size_t k = 0; s->in_flight && k < HW_STATUS_WINDOW; k++)
		if (s->flight[k].used && s->flight[k].entry.since_ms < oldest)
			oldest = s->flight[k].entry.since_ms;
	return now_ms - oldest;
}

bool hw_status_idle(const struct hw_status_sink *s)
{
	return s->fresh.n == 0 && s->in_flight == 0;
}
