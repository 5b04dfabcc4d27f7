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

#include "heartwheel/report.h"

/* A reported field that stands at a path of its own in a payload. */
struct hw_field {
	unsigned has; /* which: HW_HAS_BATTERY and so on */
	char *path;   /* owned: names of members, parted by dots: "Wifi.RSSI" */
};

/* From "NAME PATH", parted by spaces. Returns 0, or -EINVAL with `*why` (a static sentence) or -ENOMEM. */
int hw_field_compile(struct hw_field *f, const char *text, const char **why);
void hw_field_fini(struct hw_field *f);

/* Where a payload says what. NULL is the usual: all of it in members of their own names. */
struct hw_reading {
	const struct hw_field *fields; /* of several for one field the first that is there counts, null being absent;
	                                  a field that is here is found nowhere else */
	size_t n;
	bool plain; /* nothing but these fields counts, and whether it is a monitor's: other members are somebody else's
	               words */
};

enum hw_payload_kind {
	HW_PAYLOAD_PLAIN,  /* says nothing but "alive" */
	HW_PAYLOAD_FIELDS, /* a JSON object was read into the fields below */
	HW_PAYLOAD_MONITOR /* carries `by` and `seq`: a monitor's own status, never a heartbeat */
};

struct hw_payload {
	enum hw_payload_kind kind;
	bool no_memory;    /* to find out what it says: `malformed` too, but it may well have been JSON */
	bool malformed;    /* looks like JSON and is not, or a field (but `timeout`) has the wrong type or length */
	const char *fault; /* of a malformed one: the name of such a field; "$state"; NULL: it is no JSON */
	bool goodbye;      /* "online": false */
	bool birth;        /* "online": true */
	bool has_time;
	bool has_timeout;
	bool timeout_refused; /* `timeout` was there and is not a finite number >= 0 */
	double time_s;        /* Unix seconds */
	double timeout_s;     /* seconds, 0: back to the group's */
	struct hw_report report;

	/* Only for HW_PAYLOAD_MONITOR: a retained status read back by a monitor without a store. */
	bool online;
	bool canary; /* published for the monitor itself to hear it */
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

/* The same with fields where `how` (may be NULL) says. A plain payload that is no JSON is not malformed. */
void hw_payload_read(struct hw_payload *p, const void *bytes, size_t len, const struct hw_reading *how);

/*
 * The same for what a Homie device says of itself on its $state topic (Homie convention 4.0, "Device Lifecycle"): init,
 * ready and alert are a heartbeat and bring the group's timeout back; sleeping is one too, and asks for the longest
 * timeout that the group allows, because the convention has no word for how long; disconnected and lost are a goodbye.
 * Anything else is plain and malformed.
 */
void hw_payload_homie(struct hw_payload *p, const void *bytes, size_t len);

/*
 * An element of a batch: a JSON string, which is an id; or an object with the string `id`, and what
 * hw_payload_read() reads. `text` is valid JSON. Writes the id with a NUL, as far as `cap` goes. Returns the id's
 * length (it may be more than fits); -EINVAL if the element is neither, or its id holds a \u0000; or -ENOMEM. Release
 * with hw_payload_fini() in any case.
 */
int hw_payload_element(struct hw_payload *p, const char *text, size_t len, const struct hw_reading *how, char *id,
                       size_t cap);
void hw_payload_fini(struct hw_payload *p);

/*
 * Whether the bytes are a JSON object in which the member at `path` (names parted by dots: "status.state") has the
 * value that `value` is written as: a string of these bytes, true, false, null, or a number that is the same. 1, 0, or
 * -ENOMEM.
 */
int hw_payload_member_is(const void *bytes, size_t len, const char *path, const char *value);

/* The text of the member at `path` of a JSON object, with a NUL, as far as `cap` goes. Returns its length (it may be
 * more than fits); -EINVAL: there is no such text; or -ENOMEM. */
int hw_payload_text(const void *bytes, size_t len, const char *path, char *text, size_t cap);

#endif
