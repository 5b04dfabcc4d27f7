/* SPDX-License-Identifier: MIT */
/* The fields that devices report, and their JSON. See report.h. */
#include "heartwheel/report.h"
#include "heartwheel/print.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/utf8.h"

const struct hw_report_field hw_report_fields[HW_REPORT_FIELDS] = {
	{"battery", HW_REPORT_NUMBER, offsetof(struct hw_report, battery)},
	{"rssi", HW_REPORT_NUMBER, offsetof(struct hw_report, rssi)},
	{"ip", HW_REPORT_TEXT, offsetof(struct hw_report, ip)},
	{"version", HW_REPORT_TEXT, offsetof(struct hw_report, version)},
	{"uptime", HW_REPORT_NUMBER, offsetof(struct hw_report, uptime)},
	{"data", HW_REPORT_JSON, offsetof(struct hw_report, data)},
};

double *hw_report_number(struct hw_report *r, int k)
{
	return (double *)(void *)((char *)r + hw_report_fields[k].at);
}

char **hw_report_string(struct hw_report *r, int k)
{
	return (char **)(void *)((char *)r + hw_report_fields[k].at);
}

void hw_report_fini(struct hw_report *r)
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++)
		if (hw_report_fields[k].kind != HW_REPORT_NUMBER)
			free(*hw_report_string(r, k));
	memset(r, 0, sizeof(*r));
}

void hw_report_drop(struct hw_report *r, unsigned has)
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!(r->has & has & 1U << k) || hw_report_fields[k].kind == HW_REPORT_NUMBER)
			continue;
		free(*hw_report_string(r, k));
		*hw_report_string(r, k) = NULL;
	}
	r->has &= ~has;
}

struct hw_report hw_report_over(const struct hw_report *below, const struct hw_report *above)
{
	struct hw_report both = *below, over = *above;
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!(over.has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			*hw_report_number(&both, k) = *hw_report_number(&over, k);
		else
			*hw_report_string(&both, k) = *hw_report_string(&over, k);
	}
	both.has |= over.has;
	return both;
}

/* --- packed ------------------------------------------------------------------------------------------------------- */

/* Whether a number takes 4 bytes in a packed report. A packed report has one byte of HW_HAS_*, one byte with a bit
 * for each number that takes 4 bytes, then the fields in order. */

static bool is_short(double v)
{
	return fabs(v) <= FLT_MAX && (double)(float)v == v;
}

static size_t number_size(double v)
{
	return is_short(v) ? sizeof(float) : sizeof(double);
}

size_t hw_report_packed_size(const struct hw_report *report)
{
	struct hw_report r = *report;
	size_t size = HW_REPORT_PACKED_MIN;
	for (int k = 0; k < HW_REPORT_FIELDS; k++)
		if (!(r.has & 1U << k))
			continue;
		else if (hw_report_fields[k].kind == HW_REPORT_NUMBER)
			size += number_size(*hw_report_number(&r, k));
		else
			size += strlen(*hw_report_string(&r, k)) + 1;
	return size;
}

static size_t pack_number(double v, uint8_t *to)
{
	float brief = 0;
	if (!is_short(v)) {
		memcpy(to, &v, sizeof(v));
		return sizeof(v);
	}
	brief = (float)v;
	memcpy(to, &brief, sizeof(brief));
	return sizeof(brief);
}

void hw_report_pack(const struct hw_report *report, uint8_t *to)
{
	struct hw_report r = *report;
	uint8_t *at = to + HW_REPORT_PACKED_MIN;
	to[0] = (uint8_t)r.has;
	to[1] = 0;
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		size_t n;
		if (!(r.has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER) {
			n = pack_number(*hw_report_number(&r, k), at);
			to[1] |= (uint8_t)((n == sizeof(float)) << k);
		} else {
			n = strlen(*hw_report_string(&r, k)) + 1;
			memcpy(at, *hw_report_string(&r, k), n);
		}
		at += n;
	}
}

static size_t view_number(const uint8_t *at, bool brief, double *v)
{
	float f;
	if (!brief) {
		memcpy(v, at, sizeof(*v));
		return sizeof(*v);
	}
	memcpy(&f, at, sizeof(f));
	*v = (double)f;
	return sizeof(f);
}

struct hw_report hw_report_view(const uint8_t *packed)
{
	struct hw_report r = {.has = packed[0]};
	const uint8_t *at = packed + HW_REPORT_PACKED_MIN;
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!(r.has & 1U << k))
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_NUMBER) {
			at += view_number(at, packed[1] >> k & 1, hw_report_number(&r, k));
		} else {
			*hw_report_string(&r, k) = (char *)(uintptr_t)at; /* only read */
			at += strlen((const char *)at) + 1;
		}
	}
	return r;
}

bool hw_report_renew(uint8_t *packed, const struct hw_report *reported)
{
	struct hw_report r = *reported; /* only read */
	uint8_t *at = packed + HW_REPORT_PACKED_MIN;
	if (r.has & ~(unsigned)packed[0])
		return false;
	for (int k = 0; packed[0] >> k; k++) {
		bool news = r.has & 1U << k, brief = packed[1] >> k & 1;
		if (!(packed[0] >> k & 1))
			continue;
		size_t n = brief ? sizeof(float) : sizeof(double);
		if (hw_report_fields[k].kind != HW_REPORT_NUMBER) {
			n = strlen((const char *)at) + 1;
			if (news && strlen(*hw_report_string(&r, k)) + 1 != n)
				return false;
			if (news)
				memcpy(at, *hw_report_string(&r, k), n);
		} else if (news) {
			if (number_size(*hw_report_number(&r, k)) != n)
				return false;
			pack_number(*hw_report_number(&r, k), at);
		}
		at += n;
	}
	return true;
}

int hw_number_text(double v, char *buf, size_t cap)
{
	int n = 0;
	if (!isfinite(v))
		return (int)hw_print(buf, cap, "null"); /* JSON has no infinity or NaN */
	for (int digits = 15; digits <= 17; digits++) {
		n = (int)hw_print(buf, cap, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	/* If the program has called setlocale(), the decimal point may be a comma. */
	char *comma = strchr(buf, ',');
	if (comma)
		*comma = '.';
	return n;
}
