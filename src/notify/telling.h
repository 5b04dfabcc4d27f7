/* SPDX-License-Identifier: MIT */
/* What a message says, made by whoever has gathered it: for programs as JSON, for people as fields. */
#ifndef HW_NOTIFY_TELLING_H
#define HW_NOTIFY_TELLING_H

#include <stdbool.h>

#include "notify/template.h"

struct evbuffer;

/* The values of a message's fields, by enum hw_notify_field; owned. */
struct hw_fields {
	char *of[HW_NOTIFY_FIELDS];
	bool bad; /* it is urgent: devices went offline or cannot be heard, or commands came to nothing */
};

/* Both owned. */
struct hw_telling {
	struct evbuffer *json;
	struct hw_fields fields;
};

/* 0, or -ENOMEM: one is missing. */
int hw_fields_are_whole(const struct hw_fields *f);
void hw_fields_fini(struct hw_fields *f);

/* `rc` is what filling its fields has come to. 0; or -ENOMEM with nothing in it. */
int hw_telling_finish(struct hw_telling *m, int rc);
void hw_telling_fini(struct hw_telling *m);

#endif
