/* SPDX-License-Identifier: MIT */
/*
 * See probes.h.
 *
 * Invariant: at most WAITING devices wait until a concurrent request is free, in the order of their probes.
 */
#include "probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/loop/turn.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "http/ask.h"

#define WAITING    1024
#define TIMEOUT_MS 5000
#define TEXT_MAX   (6 * HW_ID_MAX + 16) /* an escaped id */
#define URL_MAX    (2048 + 3 * HW_ID_MAX * 4)

struct hw_app_probes {
	struct hw_ask *ask; /* owned; NULL: no URL was requested yet */
	struct hw_ref waiting[WAITING];
	unsigned first, n;
	uint64_t sent, dropped;
	char answers[128]; /* the topic of the answers */
};

int hw_app_probes_new(struct hw_app *a)
{
	struct hw_app_probes *p = a->probes = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	snprintf(p->answers, sizeof(p->answers), "nodes/%s/ack", a->start->node_id);
	return 0;
}

const char *hw_app_probe_answers(const struct hw_app *a)
{
	return a->probes->answers;
}

void hw_app_probes_free(struct hw_app *a)
{
	if (a->probes)
		hw_ask_free(a->probes->ask);
	free(a->probes);
}

/* Returns the name that the device uses for itself: its id without the prefix of the group. */
static struct hw_id name_of(const struct hw_group *g, const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	size_t n = g->id_prefix_len;
	if (n > 0 && id.len > n && memcmp(id.text, g->id_prefix, n) == 0)
		return (struct hw_id){id.text + n, id.len - n};
	return id;
}

static void drop(struct hw_app *a, const char *why)
{
	a->probes->dropped++;
	hw_log_limited(a->log, HW_LIMIT_PROBE, HW_LOG_WARNING, "a probe could not be sent: %s", why);
}

/* --- over MQTT ----------------------------------------------------------------- */

static bool publish(struct hw_app *a, struct hw_now now, struct hw_ref ref, int64_t left_ns)
{
	char topic[HW_ID_MAX + 16], payload[3 * TEXT_MAX], msg_id[HW_PROBE_ID_SIZE];
	const struct hw_device *d = hw_app_device(a, ref);
	const struct hw_group *g = hw_monitor_group_of(a->monitor, d);
	struct hw_id id = name_of(g, d);
	hw_probe_id(a->monitor, ref, msg_id);
	snprintf(topic, sizeof(topic), "nodes/%.*s/pending", (int)id.len, id.text);
	struct hw_json j;
	hw_json_begin_text(&j, payload, sizeof(payload));
	hw_json_open(&j, '{');
	hw_json_text(&j, "sender", a->start->node_id);
	hw_json_bytes(&j, "receiver", id.text, id.len);
	hw_json_text(&j, "msg_id", msg_id);
	hw_json_text(&j, "action", g->probe);
	hw_json_seconds(&j, "time", now.wall_ms);
	hw_json_seconds(&j, "exp", now.wall_ms + left_ns / HW_NS_PER_MS);
	hw_json_null(&j, "payload");
	hw_json_close(&j, '}');
	int len = hw_json_end_text(&j);
	const struct hw_publication what = {.topic = topic,
	                                    .payload = payload,
	                                    .len = (size_t)len,
	                                    .expiry_s = (uint32_t)(left_ns / HW_NS_PER_S + 1),
	                                    .publish_id = HW_PROBE_PUBLISH_ID};
	return hw_app_publisher(a) && !a->life.stopping && hw_publisher_publish(hw_app_publisher(a), &what);
}

/* --- by URL -------------------------------------------------------------------- */

static size_t append(char *to, size_t cap, size_t at, const char *text, size_t len)
{
	if (at + len >= cap)
		return cap;
	memcpy(to + at, text, len);
	to[at + len] = '\0';
	return at + len;
}

/* Escapes all characters except those that RFC 3986 calls unreserved. */
static size_t append_escaped(char *to, size_t cap, size_t at, struct hw_id id)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	for (size_t k = 0; k < id.len; k++) {
		char code[4] = {id.text[k]};
		if (!strchr(plain, id.text[k]))
			snprintf(code, sizeof(code), "%%%02X", (unsigned char)id.text[k]);
		at = append(to, cap, at, code, strlen(code));
	}
	return at;
}

/* Writes the group's URL, with the id in place of each {id}. Returns false if it is longer than any server accepts. */
static bool url_of(const struct hw_group *g, const struct hw_device *d, char *url, size_t cap)
{
	static const char place[] = "{id}";
	const char *text = g->probe, *next;
	size_t at = 0;
	url[0] = '\0';
	for (; (next = strstr(text, place)); text = next + strlen(place)) {
		at = append(url, cap, at, text, (size_t)(next - text));
		at = append_escaped(url, cap, at, name_of(g, d));
	}
	return append(url, cap, at, text, strlen(text)) < cap;
}

static uint64_t token_of(struct hw_ref ref)
{
	return (uint64_t)ref.index << 16 | ref.gen;
}

static void ask(struct hw_app *a, struct hw_ref ref)
{
	char url[URL_MAX];
	const struct hw_device *d = hw_app_device(a, ref);
	bool fits = url_of(hw_monitor_group_of(a->monitor, d), d, url, sizeof(url));
	int rc = fits ? hw_ask_get(a->probes->ask, url, token_of(ref)) : -EMSGSIZE;
	if (rc)
		drop(a, strerror(-rc));
	else
		a->probes->sent++;
}

/* Sends the probes that wait. If a device has sent a heartbeat meanwhile, it needs no probe. If its deadline has
 * passed, its probe is dropped. */
static void ask_waiting(struct hw_app *a, struct hw_now now)
{
	struct hw_app_probes *p = a->probes;
	int64_t left_ns;
	while (p->n > 0 && hw_ask_room(p->ask) > 0) {
		struct hw_ref ref = p->waiting[p->first];
		const struct hw_device *d = hw_app_device(a, ref);
		p->first = (p->first + 1) % WAITING;
		p->n--;
		if (hw_probe_is_wanted(a->monitor, now, ref, &left_ns))
			ask(a, ref);
		else if (d && hw_device_is_probed(d))
			drop(a, "the deadline came first");
	}
}

static void on_answer(void *arg, uint64_t request_id, long status)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	if (status >= 200 && status <= 299)
		hw_monitor_answered(a->monitor, now,
		                    (struct hw_ref){(uint32_t)(request_id >> 16), (uint16_t)request_id});
	ask_waiting(a, now);
	hw_app_schedule_turn(a);
}

static void by_url(struct hw_app *a, struct hw_now now, struct hw_ref ref)
{
	struct hw_app_probes *p = a->probes;
	if (!p->ask)
		p->ask = hw_ask_new(a->loop.base, TIMEOUT_MS, on_answer, a);
	if (!p->ask || p->n == WAITING) {
		drop(a, p->ask ? "too many probes wait for their servers" : strerror(ENOMEM));
		return;
	}
	p->waiting[(p->first + p->n++) % WAITING] = ref;
	ask_waiting(a, now);
}

/* --- both ---------------------------------------------------------------------- */

void hw_app_probe(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	const struct hw_device *d = hw_app_device(a, out->probe.device);
	if (!d)
		return;
	if (hw_settings_is_url(hw_monitor_group_of(a->monitor, d)->probe))
		by_url(a, now, out->probe.device);
	else if (publish(a, now, out->probe.device, out->probe.left_ns))
		a->probes->sent++;
	else
		drop(a, "the publisher's queue is full, or it has no connection");
}

void hw_app_probe_refused(struct hw_app *a, const char *why)
{
	a->probes->sent--;
	drop(a, why);
}

struct hw_probe_counts hw_app_probe_counts(const struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	return (struct hw_probe_counts){.sent = a->probes->sent,
	                                .answered = s->probes_answered,
	                                .dropped = s->probes_dropped + a->probes->dropped};
}
