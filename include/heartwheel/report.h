/* SPDX-License-Identifier: MIT */
/*
 * What a device reports of itself. The fields are listed once, in hw_report_fields[]: payloads, the store and the
 * status go through that list.
 */
#ifndef HEARTWHEEL_REPORT_H
#define HEARTWHEEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_REPORT_TEXT_MAX 128  /* bytes of `ip` and `version` */
#define HW_REPORT_DATA_MAX 4096 /* bytes of `data`, as compact JSON */

/* Which fields a report has: bit k is field k of hw_report_fields[]. */
enum {
	HW_HAS_BATTERY = 1 << 0,
	HW_HAS_RSSI = 1 << 1,
	HW_HAS_IP = 1 << 2,
	HW_HAS_VERSION = 1 << 3,
	HW_HAS_UPTIME = 1 << 4,
	HW_HAS_DATA = 1 << 5
};

/* A string is there exactly if its bit is; it belongs to whoever holds the report (hw_report_fini). */
struct hw_report {
	unsigned has;
	double battery; /* % */
	double rssi;    /* dBm */
	double uptime;  /* s */
	char *ip, *version;
	char *data; /* compact JSON text */
};

enum hw_report_kind { HW_REPORT_NUMBER, HW_REPORT_TEXT, HW_REPORT_JSON };

struct hw_report_field {
	const char *name; /* in payloads, statuses and the store */
	enum hw_report_kind kind;
	size_t at; /* of its member in struct hw_report: double, char * and char * */
};

#define HW_REPORT_FIELDS 6

/* In the order in which they are told. */
extern const struct hw_report_field hw_report_fields[HW_REPORT_FIELDS];

/* The member of field k: of a number; and of what is a string. */
double *hw_report_number(struct hw_report *r, int k);
char **hw_report_string(struct hw_report *r, int k);

void hw_report_fini(struct hw_report *r);
/* Takes these fields out (HW_HAS_*). */
void hw_report_drop(struct hw_report *r, unsigned has);

/*
 * A report as it is kept of a device, in as few bytes as it takes: what it has, a number in 4 bytes where these say the
 * same as 8 would, texts with their NUL. HW_REPORT_PACKED_MIN zeroes are an empty one; it needs no alignment.
 */
#define HW_REPORT_PACKED_MIN 2
size_t hw_report_packed_size(const struct hw_report *r);
/* `to` has room for the size, and does not hold what the report's strings point to. */
void hw_report_pack(const struct hw_report *r, uint8_t *to);
/* What was packed, in place: strings belong to `packed`, so that the report must not be given to hw_report_fini(). */
struct hw_report hw_report_view(const uint8_t *packed);
/* Puts the fields that `said` has over what was packed, where each is there already and as long as before. Otherwise
 * false, and the others may have been put: it has to be packed anew. */
bool hw_report_renew(uint8_t *packed, const struct hw_report *said);
/* `below` with the fields that `above` has in their place: strings stay with whom they are of. */
struct hw_report hw_report_over(const struct hw_report *below, const struct hw_report *above);

/*
 * Appends the report's fields to a JSON object under construction, as `,"battery":87,...` in the order of the list,
 * without a NUL if cap is reached. Returns the bytes that a large enough buffer would take, as snprintf does.
 */
size_t hw_report_json(const struct hw_report *r, char *buf, size_t cap);

/* Writes a double with as many of 15 to 17 digits as it takes to read back the same ("87", "-60.5"), "null" if it is
 * not finite. Returns its length; cap >= 32. */
int hw_number_text(double v, char *buf, size_t cap);

/* Writes `text` (`len` bytes, meant to be UTF-8) as a JSON string with its quotes; a byte that is no part of a valid
 * character becomes U+FFFD. Returns the length needed and ends what it wrote with a NUL, as snprintf does. */
size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap);

#endif
