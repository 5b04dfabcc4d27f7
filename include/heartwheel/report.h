/* SPDX-License-Identifier: MIT */
/* The fields that a device reports. They are listed once, in hw_report_fields[], and payloads, the store and the status
 * use that list. */
#ifndef HEARTWHEEL_REPORT_H
#define HEARTWHEEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_REPORT_TEXT_MAX 128  /* bytes of `ip` and `version` */
#define HW_REPORT_DATA_MAX 4096 /* bytes of `data`, as compact JSON */

/* The fields in a report: bit k is field k of hw_report_fields[]. */
enum {
	HW_HAS_BATTERY = 1 << 0,
	HW_HAS_RSSI = 1 << 1,
	HW_HAS_IP = 1 << 2,
	HW_HAS_VERSION = 1 << 3,
	HW_HAS_UPTIME = 1 << 4,
	HW_HAS_DATA = 1 << 5
};

/* A string is not NULL exactly if its bit is set. The owner of the report owns its strings (hw_report_fini). */
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
	const char *name; /* name in payloads, statuses and the store */
	enum hw_report_kind kind;
	size_t at; /* offset of its member in struct hw_report: a double or a char * */
};

#define HW_REPORT_FIELDS 6

/* In the order in which they are written. */
extern const struct hw_report_field hw_report_fields[HW_REPORT_FIELDS];

/* Both return the address of the member for field k: hw_report_number() of a number, hw_report_string() of a string
 * or JSON. */
double *hw_report_number(struct hw_report *r, int k);
char **hw_report_string(struct hw_report *r, int k);

void hw_report_fini(struct hw_report *r);
/* Removes the fields `has` (HW_HAS_*). */
void hw_report_drop(struct hw_report *r, unsigned has);

/* A device's report packed into as few bytes as possible: its fields, a number in 4 bytes if that loses nothing (else
 * 8), texts with their NUL. HW_REPORT_PACKED_MIN zero bytes are an empty report. No alignment is needed. */
#define HW_REPORT_PACKED_MIN 2
size_t hw_report_packed_size(const struct hw_report *r);
/* Packs a report into `to`, which has room for hw_report_packed_size() and does not overlap the report's strings. */
void hw_report_pack(const struct hw_report *r, uint8_t *to);
/* Returns a view of a packed report. `packed` owns the strings, so do not call hw_report_fini() on the result. */
struct hw_report hw_report_view(const uint8_t *packed);
/* Overwrites fields of a packed report in place with those that `reported` has, if each exists already with the same
 * size. Returns false otherwise; some fields may then be overwritten, and the report must be packed again. */
bool hw_report_renew(uint8_t *packed, const struct hw_report *reported);
/* Returns the fields of `above`, and those fields of `below` that `above` lacks. The strings keep their owners. */
struct hw_report hw_report_over(const struct hw_report *below, const struct hw_report *above);

/* Writes a double with the fewest of 15 to 17 digits that read back equal ("87", "-60.5"), or "null" if it is not
 * finite. Returns the length; cap >= 32. */
int hw_number_text(double v, char *buf, size_t cap);

#endif
