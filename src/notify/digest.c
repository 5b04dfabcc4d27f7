/* SPDX-License-Identifier: MIT */
/* See digest.h. Ids and names are written with hw_utf8_show(). */
#include "notify/digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "notify/words.h"

#define ALL HW_STATES /* index into `seen`: any state */

int hw_digest_init(struct hw_digest *d, const struct hw_monitor *m)
{
	*d = (struct hw_digest){.m = m};
	return hw_lines_init(&d->list);
}

void hw_digest_fini(struct hw_digest *d)
{
	hw_lines_fini(&d->list);
	for (int k = 0; k <= ALL; k++)
		free(d->seen[k]);
	*d = (struct hw_digest){.m = d->m};
}

/* --- words -------------------------------------------------------------------- */

/* Writes the text after "NAME is ". */
static void write_state(enum hw_state state, enum hw_reason reason, int64_t silent_ms, char *out, size_t cap)
{
	char silent[48];
	if (state == HW_STATE_OFFLINE && reason == HW_REASON_TIMEOUT && silent_ms >= 0)
		snprintf(out, cap, "offline: silent for %s", hw_words_span(silent_ms, silent));
	else if (state == HW_STATE_OFFLINE && reason == HW_REASON_WILL)
		snprintf(out, cap, "offline: said goodbye");
	else if (state == HW_STATE_OFFLINE && reason == HW_REASON_KEYSPACE)
		snprintf(out, cap, "offline: its key expired");
	else if (state == HW_STATE_FORGOTTEN)
		snprintf(out, cap, "forgotten%s", reason == HW_REASON_OPERATOR ? ": an operator forgot it" : "");
	else
		snprintf(out, cap, "%s", hw_state_name(state));
}

static const char *cause_text(enum hw_cause cause)
{
	static const char *const texts[HW_CAUSES] = {
		[HW_CAUSE_LINK] = "broker connection lost",
		[HW_CAUSE_STALL] = "the monitor stood still",
		[HW_CAUSE_STANDSTILL] = "nothing arrives from the broker",
		[HW_CAUSE_SUSPEND] = "the machine was asleep",
		[HW_CAUSE_LOSS] = "the broker drops messages for this monitor",
		[HW_CAUSE_BARRIER] = "the monitor's own messages do not come back from the broker",
		[HW_CAUSE_DEAF] = "no message arrives on a group's topics",
		[HW_CAUSE_UPSTREAM] = "the bridge or gateway of a group is away",
	};
	return texts[cause];
}

static void write_blind(bool begun, enum hw_cause cause, int64_t length_ms, char *out, size_t cap)
{
	char length[48];
	bool group = cause == HW_CAUSE_DEAF || cause == HW_CAUSE_UPSTREAM;
	const char *whom = group ? "a group's devices" : "devices";
	if (begun)
		snprintf(out, cap, "cannot hear %s: %s; no device %sis judged", whom, cause_text(cause),
		         group ? "of it " : "");
	else
		snprintf(out, cap, "hears %s again, after %s", whom, hw_words_span(length_ms, length));
}

/* --- gathering ---------------------------------------------------------------- */

/* Adds a device to a set of those that are counted. Returns whether it was not in the set before. Without memory
 * returns true, and a device may then be counted twice. */
static bool is_new(struct hw_digest *d, unsigned which, uint32_t index)
{
	size_t need = (size_t)index / 8 + 1;
	if (need > d->seen_bytes) {
		size_t bytes = need < 1024 ? 1024 : need + need / 2;
		for (int k = 0; k <= ALL; k++) {
			uint8_t *grown = realloc(d->seen[k], bytes);
			if (!grown)
				return true;
			d->seen[k] = grown;
			memset(grown + d->seen_bytes, 0, bytes - d->seen_bytes);
		}
		d->seen_bytes = bytes;
	}
	uint8_t bit = (uint8_t)(1u << index % 8), *byte = &d->seen[which][index / 8];
	bool was = *byte & bit;
	*byte |= bit;
	return !was;
}

/* A group's name, made printable. */
static const char *group_name(const struct hw_digest *d, size_t group, char out[160])
{
	const struct hw_groups *all = hw_monitor_groups(d->m);
	const char *name = group < all->n ? all->all[group]->name : "";
	hw_utf8_show(name, strlen(name), out, 160);
	return out;
}

void hw_digest_transition(struct hw_digest *d, struct hw_now now, const struct hw_device *device,
                          const struct hw_transition *t)
{
	struct hw_id id = hw_device_id(device);
	int64_t silent_ms = t->last_seen_ms > 0 && t->time_ms > t->last_seen_ms ? t->time_ms - t->last_seen_ms : -1;
	bool late = t->state == HW_STATE_OFFLINE && t->reason == HW_REASON_TIMEOUT;
	if (d->changes == 0) {
		hw_utf8_show(id.text, id.len, d->device, sizeof(d->device));
		d->group = device->group;
		d->from_ms = now.wall_ms;
		d->silent_ms = -1;
	}
	d->groups |= device->group != d->group;
	d->to_ms = now.wall_ms;
	d->state = t->state;
	d->reason = t->reason;
	d->changes++;
	d->devices += is_new(d, ALL, t->device.index);
	d->count[t->state] += is_new(d, t->state, t->device.index);
	if (late && silent_ms > d->silent_ms)
		d->silent_ms = silent_ms;
	if (d->list.left_out) {
		d->list.left_out++;
		return;
	}
	char name[HW_DIGEST_NAME], group[160], state[128], line[HW_DIGEST_NAME + 320];
	hw_utf8_show(id.text, id.len, name, sizeof(name));
	write_state(t->state, t->reason, silent_ms, state, sizeof(state));
	snprintf(line, sizeof(line), "%s of %s is %s", name, group_name(d, device->group, group), state);
	hw_lines_add(&d->list, now.wall_ms, line);
}

void hw_digest_blind(struct hw_digest *d, struct hw_now now, const struct hw_out *out)
{
	char line[256];
	d->blind++;
	d->blind_begun = out->blind.begun;
	d->blind_cause = out->blind.cause;
	d->blind_ms = out->blind.length_ns / HW_NS_PER_MS;
	write_blind(d->blind_begun, d->blind_cause, d->blind_ms, line, sizeof(line));
	hw_lines_add(&d->list, now.wall_ms, line);
}

/* --- the fields --------------------------------------------------------------- */

/* Writes "2,000 offline, 3 online": how many devices changed to each state. Returns the length. */
static size_t write_counts(const struct hw_digest *d, char *out, size_t cap)
{
	static const enum hw_state order[] = {HW_STATE_OFFLINE, HW_STATE_ONLINE, HW_STATE_FORGOTTEN};
	size_t n = 0;
	char count[32];
	out[0] = '\0';
	for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
		if (d->count[order[k]])
			n += hw_print(out + n, cap - n, "%s%s %s", n ? ", " : "",
			              hw_words_number(d->count[order[k]], count), hw_state_name(order[k]));
	return n;
}

static unsigned states_of(const struct hw_digest *d)
{
	unsigned n = 0;
	for (int k = 0; k < HW_STATES; k++)
		n += d->count[k] > 0;
	return n;
}

static void write_devices(const struct hw_digest *d, char *out, size_t cap)
{
	char group[160], state[128], count[32], length[48];
	const char *of = d->groups ? "several groups" : group_name(d, d->group, group);
	int64_t within_ms = (d->to_ms - d->from_ms + 999) / 1000 * 1000;
	hw_words_span(within_ms > 1000 ? within_ms : 1000, length);
	write_state(d->state, d->reason, d->silent_ms, state, sizeof(state));
	if (d->devices == 1 && d->changes == 1)
		snprintf(out, cap, "%s of %s is %s", d->device, of, state);
	else if (d->devices == 1)
		snprintf(out, cap, "%s of %s changed %s times within %s and is now %s", d->device, of,
		         hw_words_number(d->changes, count), length, state);
	else if (states_of(d) == 1)
		snprintf(out, cap, "%s devices of %s %s within %s", hw_words_number(d->devices, count), of,
		         hw_state_name(d->state), length);
	else {
		char counts[160];
		write_counts(d, counts, sizeof(counts));
		snprintf(out, cap, "%s devices of %s changed within %s: %s", hw_words_number(d->devices, count), of,
		         length, counts);
	}
}

static void write_summary(const struct hw_digest *d, char out[HW_DIGEST_SUMMARY])
{
	size_t n = 0;
	out[0] = '\0';
	if (d->changes) {
		write_devices(d, out, HW_DIGEST_SUMMARY);
		n = strlen(out);
	}
	if (d->blind) {
		n += hw_print(out + n, HW_DIGEST_SUMMARY - n, "%smonitor ", n ? "; " : "");
		write_blind(d->blind_begun, d->blind_cause, d->blind_ms, out + n, HW_DIGEST_SUMMARY - n);
	}
}

static char *text_of_now(const struct hw_digest *d)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(d->m);
	struct hw_blindness is = hw_monitor_blindness(d->m);
	char text[320], online[32], offline[32];
	size_t n = hw_print(text, sizeof(text), "Now %s online, %s offline",
	                    hw_words_number(s->count[HW_STATE_ONLINE], online),
	                    hw_words_number(s->count[HW_STATE_OFFLINE], offline));
	if (is.blind) {
		n += hw_print(text + n, sizeof(text) - n, "; monitor ");
		write_blind(true, is.cause, 0, text + n, sizeof(text) - n);
	}
	return strdup(text);
}

/* Sets the fields about the device: its name, or a text that stands for several devices or for none. */
static void write_device(const struct hw_digest *d, struct hw_fields *f)
{
	char text[160], count[32], group[160];
	snprintf(text, sizeof(text), "%s devices", hw_words_number(d->devices, count));
	f->of[HW_NOTIFY_DEVICE] = strdup(d->devices == 1 ? d->device : text);
	f->of[HW_NOTIFY_COUNT] = strdup(count);
	f->of[HW_NOTIFY_GROUP] = strdup(!d->changes ? "no group"
	                                : d->groups ? "several groups"
	                                            : group_name(d, d->group, group));
	write_counts(d, text, sizeof(text));
	const char *of_blind = d->blind_begun ? "blind" : "seeing";
	const char *status = !d->changes                            ? of_blind
	                     : d->devices == 1 || states_of(d) == 1 ? hw_state_name(d->state)
	                                                            : text;
	f->of[HW_NOTIFY_STATUS] = strdup(status);
	f->of[HW_NOTIFY_SILENT] = strdup(d->changes && d->silent_ms >= 0 ? hw_words_span(d->silent_ms, text) : "0 s");
}

int hw_digest_seal(struct hw_digest *d, const char *node, int64_t from_ms, struct hw_fields *out)
{
	char summary[HW_DIGEST_SUMMARY];
	*out = (struct hw_fields){.bad = d->count[HW_STATE_OFFLINE] > 0 || (d->blind && d->blind_begun)};
	write_summary(d, summary);
	write_device(d, out);
	out->of[HW_NOTIFY_SUMMARY] = strdup(summary);
	out->of[HW_NOTIFY_LIST] = hw_lines_take(&d->list);
	out->of[HW_NOTIFY_NOW] = text_of_now(d);
	out->of[HW_NOTIFY_NODE] = hw_words_shown(node);
	out->of[HW_NOTIFY_TIME] = hw_words_time(from_ms);
	struct hw_digest fresh = {.m = d->m, .list = d->list};
	for (int k = 0; k <= ALL; k++)
		free(d->seen[k]);
	*d = fresh;
	return hw_fields_are_whole(out);
}

int hw_digest_test(const struct hw_digest *d, const char *node, int64_t now_ms, struct hw_fields *out)
{
	static const char *const of[HW_NOTIFY_FIELDS] = {
		[HW_NOTIFY_SUMMARY] = "test: this is how heartwheel's notifications arrive",
		[HW_NOTIFY_LIST] = "Nothing happened: this is a test that an operator asked for.",
		[HW_NOTIFY_COUNT] = "0",
		[HW_NOTIFY_DEVICE] = "no device",
		[HW_NOTIFY_GROUP] = "no group",
		[HW_NOTIFY_STATUS] = "test",
		[HW_NOTIFY_SILENT] = "0 s",
	};
	*out = (struct hw_fields){.bad = false};
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		out->of[k] = of[k] ? strdup(of[k]) : NULL;
	out->of[HW_NOTIFY_NOW] = text_of_now(d);
	out->of[HW_NOTIFY_NODE] = hw_words_shown(node);
	out->of[HW_NOTIFY_TIME] = hw_words_time(now_ms);
	return hw_fields_are_whole(out);
}
