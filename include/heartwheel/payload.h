/* SPDX-License-Identifier: MIT */
/* Reads a heartbeat's payload. Any payload is a heartbeat. Only a payload that starts like a JSON object is given to
 * cJSON. */
#ifndef HEARTWHEEL_PAYLOAD_H
#define HEARTWHEEL_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/report.h"

/* A reported field with a configured path in the payload. */
struct hw_field {
	unsigned has; /* the field: HW_HAS_BATTERY and so on */
	char *path;   /* owned: names of members, separated by dots: "Wifi.RSSI" */
};

/* Compiles "NAME PATH", separated by spaces. Returns 0, -ENOMEM, or -EINVAL with `*why` (a static sentence). */
int hw_field_compile(struct hw_field *f, const char *text, const char **why);
void hw_field_fini(struct hw_field *f);

/* Where the values are in a payload. NULL: all fields are in members of their own names. */
struct hw_reading {
	const struct hw_field *fields; /* a field with paths is read only there: the first path that exists and is not
	                                  null counts */
	size_t n;
	bool plain; /* read only these fields, because other members are not about the device; a monitor's message is
	             * read as usual */
};

enum hw_payload_kind {
	HW_PAYLOAD_PLAIN,  /* no fields: a plain heartbeat */
	HW_PAYLOAD_FIELDS, /* a JSON object, read into the fields below */
	HW_PAYLOAD_MONITOR /* a message that only heartwheeld sends, never a heartbeat: it has the string `by` and the
	                      number `seq`, and the bool `online`, "canary":true or the string `cluster` */
};

struct hw_payload {
	enum hw_payload_kind kind;
	bool no_memory; /* an allocation failed; `malformed` is set too, although the payload may be valid JSON */
	bool malformed; /* starts like JSON but is invalid, or a field (except `timeout`) has a wrong type or length */
	const char *fault; /* if malformed: the name of that field; "$state"; NULL: invalid JSON */
	bool goodbye;      /* "online": false */
	bool birth;        /* "online": true */
	bool has_time;
	bool has_timeout;
	bool timeout_refused; /* `timeout` exists and is not a finite number >= 0 */
	double time_s;        /* Unix seconds */
	double timeout_s; /* in seconds; 0: the group's timeout is in force again. In a monitor's message: the value as
	                     it was published */
	struct hw_report report;

	/* Only for HW_PAYLOAD_MONITOR: a retained status that a monitor without a store reads back. */
	bool online;
	bool canary; /* a canary of a monitor */
	char by[65]; /* at most 64 bytes; `by` and `reason` are empty if too long */
	char reason[16];
	int64_t seq; /* 0: unusable */
	double last_seen_s;
};

/*
 * Reads `len` arbitrary bytes. Never fails: a payload that cannot be read is plain. It is also `malformed` if its first
 * byte after JSON white space is '{'. This covers an object with text after it, invalid UTF-8, a raw control character
 * in a string, and a failed allocation. It also covers a \u0000, which C strings cannot hold.
 *
 * Fields of a wrong type or length are ignored, and the others are used. Of several fields with one name the first
 * counts. A number beyond a double (1e999) has a wrong type. A monitor's payload is never malformed and never a
 * goodbye. Release with hw_payload_fini().
 */
void hw_payload_decode(struct hw_payload *p, const void *bytes, size_t len);

/* Like hw_payload_decode(), with the paths of `how` (may be NULL). A plain payload that is not JSON is not
 * malformed. */
void hw_payload_read(struct hw_payload *p, const void *bytes, size_t len, const struct hw_reading *how);

/*
 * Reads the payload of a Homie device's $state topic (Homie convention 4.0, "Device Lifecycle"). init, ready and alert
 * are a heartbeat and restore the group's timeout. sleeping is a heartbeat and requests the longest timeout that the
 * group allows, because the convention has no duration. disconnected and lost are a goodbye. Any other value is plain
 * and malformed.
 */
void hw_payload_homie(struct hw_payload *p, const void *bytes, size_t len);

/*
 * Reads an element of a batch: a JSON string, which is an id; or an object with the string `id` and the fields of
 * hw_payload_read(). `text` is valid JSON. Writes the id with a NUL, cut to `cap`. Returns the id's full length;
 * -EINVAL if the element is neither, or its id has a \u0000; or -ENOMEM. Always release with hw_payload_fini().
 */
int hw_payload_element(struct hw_payload *p, const char *text, size_t len, const struct hw_reading *how, char *id,
                       size_t cap);
void hw_payload_fini(struct hw_payload *p);

/*
 * Whether the bytes are a JSON object whose member at `path` (names separated by dots: "status.state") has the given
 * value. `value` is the text of a string, true, false, null, or a number that must be equal. Returns 1, 0, or -ENOMEM.
 */
int hw_payload_member_is(const void *bytes, size_t len, const char *path, const char *value);

/* Copies the string member at `path` of a JSON object, with a NUL, cut to `cap`. Returns its full length; -EINVAL:
 * there is no such string; or -ENOMEM. */
int hw_payload_text(const void *bytes, size_t len, const char *path, char *text, size_t cap);

#endif
