/* SPDX-License-Identifier: MIT */
/*
 * The JSON of a message as a struct. Any text in it may come from another program that writes to Redis. Only this is
 * certain: a text is valid UTF-8, and not longer than the message. Internal to src/alert/send.
 */
#ifndef HW_ALERT_SEND_MESSAGE_H
#define HW_ALERT_SEND_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/json_tree.h"
#include "incident/incidents.h"

/* The object of an incident. A missing text is "". `name` is also "" if it equals the device's id. */
struct hw_send_incident {
	char id[HW_INCIDENT_ID + 1];
	const char *state, *group, *device, *name, *by, *note, *sentence;
	enum hw_incident_kind kind;
	const cJSON *labels, *devices; /* an object of texts, an array of texts; NULL: none */
	int64_t since_ms, opened_ms, closed_ms;
	uint64_t down, unreachable;
};

struct hw_send_news {
	enum hw_news what; /* HW_NEWS_NONE: of a test message */
	struct hw_send_incident incident;
};

struct hw_send_message {
	cJSON *tree;            /* owned; all texts are in it */
	const char *key, *node; /* key: RECEIVER-NUMBER; "": it is missing, or has other characters than printable
	                         * ASCII */
	const char *summary;    /* "" if it is missing */
	int64_t time_ms;
	uint64_t more; /* news that were left out */
	size_t n;
	struct hw_send_news *news; /* owned */
};

/* Returns 0, -EINVAL or -ENOMEM. The caller calls hw_send_message_fini() only after 0. */
int hw_send_message_parse(struct hw_send_message *m, const char *json, size_t len);
void hw_send_message_fini(struct hw_send_message *m);
/* Parses the object of an incident. Returns 0 or -EINVAL. */
int hw_send_incident_parse(struct hw_send_incident *i, const cJSON *object);

#endif
