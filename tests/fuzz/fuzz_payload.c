/* SPDX-License-Identifier: MIT */
/*
 * Heartbeat payloads and batches of them: any bytes. What is read must be within its bounds, and what is written of it
 * must read the same again: a report goes through Redis and the retained status. What is read where it stands says the
 * same by cJSON.
 */
#include <math.h>
#include <string.h>

#include "../twin_object.h"
#include "core/batch.h"
#include "fuzz.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/payload.h"

static void check_text(const struct hw_report *r, unsigned bit, const char *text, size_t max)
{
	MUST(!(r->has & bit) == !text);
	MUST(!text || strlen(text) <= max);
}

static void check_report(const struct hw_report *r)
{
	check_text(r, HW_HAS_IP, r->ip, HW_REPORT_TEXT_MAX);
	check_text(r, HW_HAS_VERSION, r->version, HW_REPORT_TEXT_MAX);
	check_text(r, HW_HAS_DATA, r->data, HW_REPORT_DATA_MAX);
	MUST(!(r->has & HW_HAS_BATTERY) || isfinite(r->battery));
	MUST(!(r->has & HW_HAS_RSSI) || isfinite(r->rssi));
	MUST(!(r->has & HW_HAS_UPTIME) || isfinite(r->uptime));
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same(const struct hw_report *a, const struct hw_report *b)
{
	return a->has == b->has && (!(a->has & HW_HAS_BATTERY) || a->battery == b->battery) &&
	       (!(a->has & HW_HAS_RSSI) || a->rssi == b->rssi) &&
	       (!(a->has & HW_HAS_UPTIME) || a->uptime == b->uptime) && same_text(a->ip, b->ip) &&
	       same_text(a->version, b->version) && same_text(a->data, b->data);
}

/* As in a status: behind a field that is always there. */
static void check_round_trip(const struct hw_report *r)
{
	struct hw_json j;
	char cut[16];
	size_t len;
	hw_json_begin_alloc(&j);
	hw_json_open(&j, '{');
	hw_json_int(&j, "time", 1);
	hw_json_report(&j, r);
	hw_json_close(&j, '}');
	char *json = hw_json_end_alloc(&j, &len);
	MUST(json);
	hw_json_begin_text(&j, cut, sizeof(cut));
	hw_json_report(&j, r);
	MUST(hw_json_end_text(&j) == (j.lost ? -1 : (int)j.n) && strlen(cut) == j.n);
	struct hw_payload p;
	hw_payload_decode(&p, json, len);
	MUST(p.kind == HW_PAYLOAD_FIELDS && !p.malformed && !p.goodbye);
	MUST(same(r, &p.report));
	hw_payload_fini(&p);
	free(json);
}

static void check_kept(const struct hw_report *r)
{
	static char old[] = "old";
	struct hw_report below = {.has = HW_HAS_IP | HW_HAS_RSSI, .rssi = -1, .ip = old},
			 over = hw_report_over(&below, r);
	uint8_t *packed = malloc(hw_report_packed_size(&over));
	MUST(packed);
	hw_report_pack(&over, packed);
	struct hw_report kept = hw_report_view(packed);
	MUST(kept.has == (r->has | HW_HAS_IP | HW_HAS_RSSI));
	MUST(same(&over, &kept));
	check_report(&kept);
	free(packed);
}

static void check_quote(const uint8_t *data, size_t size)
{
	char small[8];
	size_t len = hw_json_quote((const char *)data, size, small, sizeof(small));
	char *all = malloc(len + 1);
	MUST(all);
	MUST(hw_json_quote((const char *)data, size, all, len + 1) == len && strlen(all) == len);
	MUST(len >= 2 && all[0] == '"' && all[len - 1] == '"');
	free(all);
}

static void check_ways(const char *text, size_t size)
{
	bool plain;
	if (size == 0 || (*text != '{' && *text != '"'))
		return;
	const char *differs = object_differs(text, size, &plain);
	if (differs)
		fprintf(stderr, "%s\n", differs);
	MUST(!differs);
}

/* Elements lie within the array, in its order, and the length of an id is that of its string. */
static void check_batch(const char *text, size_t size)
{
	struct hw_element e;
	const char *last = text;
	size_t at = 0;
	if (!hw_batch_valid(text, size))
		return;
	MUST(size >= 2);
	while (hw_batch_next(text, size, &at, &e)) {
		char id[16];
		struct hw_payload p;
		MUST(e.len > 0 && e.text > last && e.text + e.len < text + size && at <= size);
		last = e.text;
		check_ways(e.text, e.len);
		int n = hw_payload_element(&p, e.text, e.len, NULL, id, sizeof(id));
		MUST(n < 0 || strlen(id) == ((size_t)n < sizeof(id) ? (size_t)n : sizeof(id) - 1));
		check_report(&p.report);
		hw_payload_fini(&p);
	}
}

/* With fields at other paths: nothing else is read from a plain payload, and a member at a path has the value that
 * was read. */
static void check_reading(const uint8_t *data, size_t size)
{
	static char path[] = "a.b", other[] = "rssi";
	static const struct hw_field fields[] = {{HW_HAS_RSSI, path}, {HW_HAS_RSSI, other}, {HW_HAS_DATA, path}};
	struct hw_payload p;
	for (int plain = 0; plain < 2; plain++) {
		const struct hw_reading how = {fields, sizeof(fields) / sizeof(fields[0]), plain};
		hw_payload_read(&p, data, size, &how);
		check_report(&p.report);
		if (plain && p.kind != HW_PAYLOAD_MONITOR)
			MUST(!p.goodbye && !p.has_time && !p.has_timeout &&
			     !(p.report.has & ~(unsigned)(HW_HAS_RSSI | HW_HAS_DATA)));
		hw_payload_fini(&p);
	}
	int is = hw_payload_member_is(data, size, "a.b", "false");
	MUST(is == 0 || is == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hw_payload p;
	hw_payload_decode(&p, data, size);
	MUST(p.kind == HW_PAYLOAD_PLAIN || p.kind == HW_PAYLOAD_FIELDS || p.kind == HW_PAYLOAD_MONITOR);
	check_report(&p.report);
	MUST(!p.has_time || isfinite(p.time_s));
	MUST(!p.has_timeout || (isfinite(p.timeout_s) && p.timeout_s >= 0));
	if (p.kind == HW_PAYLOAD_PLAIN)
		MUST(!p.goodbye && !p.has_time && !p.has_timeout && p.report.has == 0);
	if (p.kind == HW_PAYLOAD_MONITOR)
		MUST(!p.malformed && !p.goodbye && p.seq >= 0);
	else
		check_round_trip(&p.report);
	check_kept(&p.report);
	hw_payload_fini(&p);
	check_reading(data, size);
	check_ways((const char *)data, size);
	check_quote(data, size);
	check_batch((const char *)data, size);
	hw_payload_homie(&p, data, size);
	MUST(!p.malformed || (p.kind == HW_PAYLOAD_PLAIN && !p.goodbye && !p.has_timeout));
	return 0;
}
