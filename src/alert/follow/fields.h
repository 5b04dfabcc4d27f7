/* SPDX-License-Identifier: MIT */
/*
 * Parses and checks fields of entries and hashes in Redis, because another program may have written them. The texts
 * borrow the reply. Pure.
 */
#ifndef HW_ALERT_FIELDS_H
#define HW_ALERT_FIELDS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "incident/incidents.h"
#include "stream/id.h"

#define HW_ALERT_PARENTS_TEXT (HW_INCIDENT_PARENTS * 256) /* bytes of the ids of all parents */
#define HW_ALERT_NAME_MAX     128                         /* bytes of the name of a device */
#define HW_ALERT_LABELS_TEXT  6144                        /* bytes of all labels of a device */
/* Times that heartwheel-alert itself has written may be this far in the future, because its clock or Redis' clock may
 * have been wrong. The engine replaces such a time by the present time. */
#define HW_ALERT_OWN_AHEAD_MS INT64_C(315360000000)
#define HW_ALERT_WAIT_MAX_MS  INT64_C(172800000) /* two days: no parent is waited for longer */

/* Returns the value of a field; `fields` has names and values, alternating. NULL: there is no such field, or its
 * value contains a NUL. */
const char *hw_field_text(const redisReply *fields, const char *name);
/* Like hw_field_text(), but NULL unless the value has at most `max` bytes and is valid UTF-8 without control
 * characters other than a line feed. */
const char *hw_field_words(const redisReply *fields, const char *name, size_t max);
/* Returns a decimal number from `min` to `max`. If the field is anything else, returns `otherwise`. */
int64_t hw_field_number(const redisReply *fields, const char *name, int64_t min, int64_t max, int64_t otherwise);
int64_t hw_number_of(const char *text, int64_t min, int64_t max, int64_t otherwise);
/* Whether the text is the id of an incident or of a silence. */
bool hw_incident_id_is_valid(const char *id);

/* Reads an entry of device:events. `now_ms`: of hw_alert_bound_ms(). Returns false if it is unusable. */
bool hw_alert_entry_read(const redisReply *entry, int64_t now_ms, struct hw_incident_entry *out);
/* Reads the hash device:state:ID (fields and values) of a device in device:offline. Returns false if the hash is
 * unusable, or if its state is not "offline". `wait_ms` is the device's timeout if it has parents. */
bool hw_alert_state_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_incident_entry *out);

#define HW_ALERT_GROUP_MAX 64

/* What an entry of the inventory says about a device. "": nothing. Labels as in incident/match.h. */
struct hw_alert_expected {
	char group[HW_ALERT_GROUP_MAX + 1], name[HW_ALERT_NAME_MAX + 1], labels[HW_ALERT_LABELS_TEXT + 1];
};

void hw_alert_expected_read(const char *json, size_t len, struct hw_alert_expected *out);

/* An entry of device:parent_heard. */
struct hw_parent_heard {
	const char *id;
	uint64_t seq;
	int64_t settle_ms;
};
bool hw_parent_heard_read(const redisReply *entry, int64_t now_ms, struct hw_parent_heard *out);

/* An entry of task:events: a watched task of a device failed or expired. `text` is its sentence: "task 'set' from anna
 * to pump-7: no device accepted it within 1 d". */
struct hw_task_notice {
	const char *device;
	char text[HW_INCIDENT_TEXT];
};
/* Reads an entry of task:events. Returns false for an entry about anything else, such as the answer to a task that
 * had ended before. */
bool hw_task_notice_read(const redisReply *entry, struct hw_task_notice *out);

/* Reads the hash device:incident:ID, whose key contains `id`. Returns false if the hash is unusable. */
bool hw_alert_incident_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_incident_view *out);
/* The field `to:RECEIVER`: "LAST COUNT AT_MS", followed by "a" (acknowledged), "f" (flapping) or "af". */
struct hw_alert_sent {
	enum hw_news last;
	bool acknowledged, flapping;
	uint32_t count;
	int64_t at_ms;
};
bool hw_alert_sent_read(const char *value, int64_t now_ms, struct hw_alert_sent *out);
/* A member: "CLASS SINCE_MS SEQ". */
bool hw_alert_member_read(const char *value, int64_t now_ms, enum hw_incident_class *class, int64_t *since_ms,
                          uint64_t *seq);
/* The hash device:silence:ID. */
bool hw_alert_silence_read(const char *id, const redisReply *hash, int64_t now_ms, struct hw_silence_view *out);

#endif
