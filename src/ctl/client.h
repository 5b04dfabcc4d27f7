/* SPDX-License-Identifier: MIT */
/* The control API's client: one connection to the daemon's unix socket, kept from request to request. */
#ifndef HW_CTL_CLIENT_H
#define HW_CTL_CLIENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct hw_client; /* opaque */

/* `socket` is borrowed. NULL without memory. */
struct hw_client *hw_client_new(const char *socket);
void hw_client_free(struct hw_client *c);

struct hw_answer {
	long code;   /* HTTP status */
	cJSON *json; /* NULL if the answer has no body or is no JSON */
};

/*
 * Reads a stream of lines until it ends: `line` is called with each, without its line feed; false from it ends the
 * stream too. `last`: NULL, or what Last-Event-ID says. Returns 0 if it was read and ended; -1 if no connection was
 * had, or it was lost; 1 if the answer is another status than 200, which `*code` has, and hw_client_why() what it says.
 */
typedef bool hw_line(void *arg, const char *line);
int hw_client_stream(struct hw_client *c, const char *path, const char *last, hw_line *line, void *arg, long *code);

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
