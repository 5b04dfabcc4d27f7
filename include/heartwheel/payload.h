/* SPDX-License-Identifier: MIT */
/*
 * What a heartbeat's payload says. Any payload is a heartbeat; only one that starts like a JSON object is given to
 * cJSON.
 */
#ifndef HEARTWHEEL_PAYLOAD_H
#define HEARTWHEEL_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_REPORT_TEXT_MAX 128  /* bytes of `ip` and `version` */
#define HW_REPORT_DATA_MAX 4096 /* bytes of `data`, as compact JSON */

/* Which fields a report has. */
enum {
	HW_HAS_BATTERY = 1 << 0,
	HW_HAS_RSSI = 1 << 1,
	HW_HAS_UPTIME = 1 << 2,
	HW_HAS_IP = 1 << 3,
	HW_HAS_VERSION = 1 << 4,
	HW_HAS_DATA = 1 << 5
};

/* What a device reports of itself. A string is there exactly if its bit is; it belongs to whoever holds the report
 * (hw_report_fini). */
struct hw_report {
	unsigned has;
	double battery; /* % */
	double rssi;    /* dBm */
	double uptime;  /* s */
	char *ip, *version;
	char *data; /* compact JSON text */
};

enum hw_payload_kind {
	HW_PAYLOAD_PLAIN,  /* says nothing but "alive" */
	HW_PAYLOAD_FIELDS, /* a JSON object was read into the fields below */
	HW_PAYLOAD_MONITOR /* carries `by` and `seq`: a monitor's own status, never a heartbeat */
};

struct hw_payload {
	enum hw_payload_kind kind;
	bool no_memory; /* to find out what it says: `malformed` too, but it may well have been JSON */
	bool malformed; /* looks like JSON and is not, or a field (but `timeout`) has the wrong type or length */
	bool goodbye;   /* "online": false */
	bool has_time;
	bool has_timeout;
	bool timeout_refused; /* `timeout` was there and is not a finite number >= 0 */
	double time_s;        /* Unix seconds */
	double timeout_s;     /* seconds, 0: back to the group's */
	struct hw_report report;

	/* Only for HW_PAYLOAD_MONITOR: a retained status read back by a monitor without a store. */
	bool online;
	char by[65]; /* of 64 bytes; this and reason are empty if too long */
	char reason[16];
	int64_t seq; /* 0: unusable */
	double last_seen_s;
};

/*
 * Reads `len` bytes (any bytes). Never fails: what cannot be understood is a plain payload, with `malformed` set if it
 * began like a JSON object (first byte after JSON white space is '{'). That includes an object with text after it,
 * invalid UTF-8, a raw control character in a string, a \u0000 (C has no place for it), and a failed allocation. Fields
 * of a wrong type or length are left out and the others used; of several with one name the first counts. A number that
 * no double holds (1e999) is of a wrong type. A monitor's payload is never malformed, and never a goodbye.
 * Release with hw_payload_fini().
 */
void hw_payload_decode(struct hw_payload *p, const void *bytes, size_t len);

/*
 * The same for what a Homie device says of itself on its $state topic (Homie convention 4.0, "Device Lifecycle"): init,
 * ready and alert are a heartbeat and bring the group's timeout back; sleeping is one too, and asks for the longest
 * timeout that the group allows, because the convention has no word for how long; disconnected and lost are a goodbye.
 * Anything else is plain and malformed.
 */
void hw_payload_homie(struct hw_payload *p, const void *bytes, size_t len);

/*
 * An element of a batch: a JSON string, which is an id; or an object with the string `id`, and what
 * hw_payload_decode() reads. `text` is valid JSON. Writes the id with a NUL, as far as `cap` goes. Returns the id's
 * length (it may be more than fits); -EINVAL if the element is neither, or its id holds a \u0000; or -ENOMEM. Release
 * with hw_payload_fini() in any case.
 */
int hw_payload_element(struct hw_payload *p, const char *text, size_t len, char *id, size_t cap);
void hw_payload_fini(struct hw_payload *p);

/* Moves the fields that `from` has over those of `to`; the others of `to` stay; `from` is left empty. */
void hw_report_merge(struct hw_report *to, struct hw_report *from);
void hw_report_fini(struct hw_report *r);

/*
 * Appends the report's fields to a JSON object under construction, as `,"battery":87,...` in the order battery rssi ip
 * version uptime data, without a NUL if cap is reached. Returns the bytes that a large enough buffer would take, as
 * snprintf does.
 */
size_t hw_report_json(const struct hw_report *r, char *buf, size_t cap);

/* Writes a double with as many of 15 to 17 digits as it takes to read back the same ("87", "-60.5"), "null" if it is
 * not finite. Returns its length; cap >= 32. */
int hw_number_text(double v, char *buf, size_t cap);

/* Writes `text` (`len` bytes, meant to be UTF-8) as a JSON string with its quotes; a byte that is no part of a valid
 * character becomes U+FFFD. Returns the length needed and ends what it wrote with a NUL, as snprintf does. */
size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap);

#endif
