/* SPDX-License-Identifier: MIT */
/* The control API's client: one connection to the daemon's unix socket, kept from request to request. */
#ifndef HW_CTL_CLIENT_H
#define HW_CTL_CLIENT_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct hw_client; /* opaque */

/* `socket` is borrowed. NULL without memory. */
struct hw_client *hw_client_new(const char *socket);
void hw_client_free(struct hw_client *c);

struct hw_answer {
	long code;   /* HTTP status */
	cJSON *json; /* NULL if the answer has no body or is no JSON */
};

/* Asks. 0, or -1 if no whole answer came: hw_client_why() tells. The answer is released with hw_answer_fini(). */
int hw_client_ask(struct hw_client *c, const char *method, const char *path, struct hw_answer *a);
void hw_answer_fini(struct hw_answer *a);
const char *hw_client_why(const struct hw_client *c);

/* A text under construction, for paths. Lack of memory is remembered and leaves `text` NULL. */
struct hw_path {
	char *text; /* owned */
	size_t len, cap;
};
/* Appends `text` as it is, or percent-encoded. */
void hw_path_add(struct hw_path *p, const char *text);
void hw_path_add_encoded(struct hw_path *p, const char *text);
void hw_path_fini(struct hw_path *p);

#endif
