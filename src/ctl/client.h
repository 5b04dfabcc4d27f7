/* SPDX-License-Identifier: MIT */
/* The control API's client: one connection to the daemon's unix socket, kept from request to request. */
#ifndef HW_CTL_CLIENT_H
#define HW_CTL_CLIENT_H

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text under construction: of a path, or an answer. Lack of memory is remembered and leaves `text` NULL. */
struct hw_path {
	char *text; /* owned */
	size_t len, cap;
};
/* Appends `text` as it is, or percent-encoded. */
void hw_path_add(struct hw_path *p, const char *text);
void hw_path_add_encoded(struct hw_path *p, const char *text);
void hw_path_fini(struct hw_path *p);

struct hw_client; /* opaque */

/* `socket` is borrowed. NULL without memory. */
struct hw_client *hw_client_new(const char *socket);
void hw_client_free(struct hw_client *c);
/* Who answers there, and whose section of monitor.conf that is, for what is said: without it heartwheeld, "http".
 * Borrowed. */
void hw_client_ask_of(struct hw_client *c, const char *program, const char *section);
/* Which kind of answer is wanted from now on; NULL: JSON. Borrowed. */
void hw_client_want(struct hw_client *c, const char *type);
bool hw_client_wants_text(const struct hw_client *c);
const char *hw_client_program(const struct hw_client *c);

struct hw_answer {
	long code;        /* HTTP status */
	cJSON *json;      /* NULL if the answer has no body or is no JSON */
	const char *text; /* the body; the client's, until the next request. NULL: none */
	char next[64];    /* where the next page of it begins; "": nowhere */
	int64_t as_of_ms; /* of a report of heartwheel-history that is old: it is as of then; 0: it is of now */
};

/*
 * Reads a stream of lines until it ends: `line` is called with each, without its line feed; false from it ends the
 * stream too. `last`: NULL, or what Last-Event-ID says. Returns 0 if it was read and ended; -1 if no connection was
 * had, or it was lost; 1 if the answer is another status than 200, which `*code` has, and hw_client_why() what it says.
 */
typedef bool hw_line(void *arg, const char *line);
int hw_client_stream(struct hw_client *c, const char *path, const char *last, hw_line *line, void *arg, long *code);

/*
 * For who asks by himself: readies a handle of libcurl's for a request of `path` to that socket, which is copied. 0,
 * -ENAMETOOLONG or -ENOMEM.
 */
int hw_client_prepare(CURL *curl, const char *socket, const char *path);
/* Keeps what has come of an answer. False: it is too much, or there is no memory. */
bool hw_client_keep(struct hw_path *body, const char *bytes, size_t n);
/* Hands out the whole lines in `body`, which keeps the rest; false as soon as one of the calls says so. */
bool hw_client_lines(struct hw_path *body, hw_line *line, void *arg);

/* Asks. 0, or -1 if no whole answer came: hw_client_why() tells. The answer is released with hw_answer_fini(). */
int hw_client_ask(struct hw_client *c, const char *method, const char *path, struct hw_answer *a);
/* Asks for `path`, and waits no longer than that. */
int hw_client_get(struct hw_client *c, const char *path, long timeout_s, struct hw_answer *a);
/* The same with a body to be taken, which may be waited for so long. */
int hw_client_post(struct hw_client *c, const char *path, const char *body, long timeout_s, struct hw_answer *a);
void hw_answer_fini(struct hw_answer *a);
const char *hw_client_why(const struct hw_client *c);
/* Whether what was asked last may have been read by the other side, although no whole answer came. */
bool hw_client_may_have_asked(const struct hw_client *c);

#endif
