/* SPDX-License-Identifier: MIT */
/* The client of the control API: one connection to the daemon's unix socket, reused for all requests. */
#ifndef HW_CTL_CLIENT_H
#define HW_CTL_CLIENT_H

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A path or an answer that is being built. If there is no memory, `text` becomes NULL and stays so. */
struct hw_path {
	char *text; /* owned */
	size_t len, cap;
};
/* Append `text` unchanged, or percent-encoded. */
void hw_path_add(struct hw_path *p, const char *text);
void hw_path_add_encoded(struct hw_path *p, const char *text);
void hw_path_fini(struct hw_path *p);

struct hw_client; /* opaque */

/* `socket` is borrowed. NULL if there is no memory. */
struct hw_client *hw_client_new(const char *socket);
void hw_client_free(struct hw_client *c);
/* Sets the name of the program at the socket, and its section of monitor.conf, for error messages. The default is
 * heartwheeld and "http". Borrowed. */
void hw_client_ask_of(struct hw_client *c, const char *program, const char *section);
/* Sets the content type that later requests want; NULL: JSON. Borrowed. */
void hw_client_want(struct hw_client *c, const char *type);
bool hw_client_wants_text(const struct hw_client *c);
int64_t hw_client_as_of_ms(const struct hw_client *c); /* of the last answer or stream; 0: it is up to date */
const char *hw_client_program(const struct hw_client *c);

struct hw_answer {
	long code;        /* HTTP status */
	cJSON *json;      /* NULL if there is no body or it is not JSON */
	const char *text; /* the body, valid until the next request; NULL: none */
	char next[64];    /* position of the next page; "": last page */
	int64_t as_of_ms; /* if a report of heartwheel-history is not up to date: the time up to which it is
	                   * complete; otherwise 0 */
};

/*
 * Reads a stream of lines until it ends. Calls `line` for each, without its line feed. If `line` returns false, reading
 * ends. `last`: the value for Last-Event-ID, or NULL. Returns 0 at the end; -1 if there was no connection or it was
 * lost; 1 if the status in *code is not 200 (hw_client_why() then has the text).
 */
typedef bool hw_line(void *arg, const char *line);
/* A second stream, with a client of its own, which is read while hw_client_stream() reads the first. If the second
 * stream ends or is refused, it is opened again 3 s later. `last` points to the value for Last-Event-ID. */
struct hw_client_also {
	struct hw_client *client;
	const char *path, *last;
	hw_line *line;
	void *arg;
};
/* Sets a second stream for the later calls of hw_client_stream(). `also` is borrowed; NULL: one stream. */
void hw_client_read_also(struct hw_client *c, const struct hw_client_also *also);
int hw_client_stream(struct hw_client *c, const char *path, const char *last, hw_line *line, void *arg, long *code);

/*
 * Prepares a libcurl handle for `path` at `socket`, for a caller that itself performs the request. Both texts are
 * copied. Returns 0, -ENAMETOOLONG or -ENOMEM.
 */
int hw_client_prepare(CURL *curl, const char *socket, const char *path);
/* Appends received bytes. Returns false if there would be too many, or if there is no memory. */
bool hw_client_keep(struct hw_path *body, const char *bytes, size_t n);
/* Calls `line` for each complete line of `body`, and keeps an incomplete line. Returns false as soon as `line` returns
 * false. */
bool hw_client_lines(struct hw_path *body, hw_line *line, void *arg);

/* Sends a request. Returns 0, or -1 if no complete answer arrived: see hw_client_why(). The caller frees the answer
 * with hw_answer_fini(). */
int hw_client_ask(struct hw_client *c, const char *method, const char *path, struct hw_answer *a);
/* Requests `path` with a timeout. */
int hw_client_get(struct hw_client *c, const char *path, long timeout_s, struct hw_answer *a);
/* Sends a request with a body of this content type. */
struct hw_client_body {
	const char *type, *bytes; /* borrowed */
	size_t len;
};
int hw_client_send(struct hw_client *c, const char *method, const char *path, const struct hw_client_body *body,
                   long timeout_s, struct hw_answer *a);
/* Posts `body` with a timeout. */
int hw_client_post(struct hw_client *c, const char *path, const char *body, long timeout_s, struct hw_answer *a);
void hw_answer_fini(struct hw_answer *a);
const char *hw_client_why(const struct hw_client *c);
/* Whether the daemon may have carried out the last request although no complete answer arrived. */
bool hw_client_may_have_asked(const struct hw_client *c);

#endif
