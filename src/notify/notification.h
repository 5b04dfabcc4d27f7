/* SPDX-License-Identifier: MIT */
/* The content of a message, which its source makes: JSON for programs, and fields for people. */
#ifndef HW_NOTIFY_NOTIFICATION_H
#define HW_NOTIFY_NOTIFICATION_H

#include <stdbool.h>

#include "notify/template.h"

struct evbuffer;

/* The values of a message's fields, by enum hw_notify_field; owned. */
struct hw_fields {
	char *of[HW_NOTIFY_FIELDS];
	bool bad; /* urgent: devices are offline or blind, or commands failed */
};

/* Both members are owned. */
struct hw_notification {
	struct evbuffer *json;
	struct hw_fields fields;
};

/* Returns 0, or -ENOMEM if a field is missing. */
int hw_fields_are_whole(const struct hw_fields *f);
void hw_fields_fini(struct hw_fields *f);

/* `rc`: the result of filling the fields. Returns 0 if it is 0 and the JSON exists. Otherwise frees the content and
 * returns -ENOMEM. */
int hw_notification_finish(struct hw_notification *m, int rc);
void hw_notification_fini(struct hw_notification *m);

#endif
