/* SPDX-License-Identifier: MIT */
/*
 * Answers. Each request is answered exactly once, by one of these functions, at once or in a later turn of the loop.
 * Errors are {"error":"why"}. No answer may be cached.
 */
#ifndef HW_HTTP_REPLY_H
#define HW_HTTP_REPLY_H

#include <stdbool.h>

/* The Content-Security-Policy of each answer that is no page. */
#define HW_REPLY_POLICY "default-src 'none'; frame-ancestors 'none'"

struct evbuffer;
struct evhttp_request;
struct hw_json;

/* Sets headers that every answer has: a browser must not guess another content type, or show the answer as a page. */
void hw_reply_guard(struct evhttp_request *req);
/* Replaces the Content-Security-Policy of the answer. */
void hw_reply_policy(struct evhttp_request *req, const char *policy);
/* Answers with a JSON body and frees it. NULL: no body. */
void hw_reply(struct evhttp_request *req, int code, struct evbuffer *body);
/* Like hw_reply(), with another content type. */
void hw_reply_as(struct evhttp_request *req, int code, const char *content_type, struct evbuffer *body);
/* Whether the request is HEAD. The answer must then have no body. evhttp would send a body, and the client would
 * take it for the next answer. */
bool hw_is_head(struct evhttp_request *req);
/* Answers "ok", a line of text. */
void hw_reply_ok(struct evhttp_request *req);
/* Answers "ok" as long as the loop runs, whichever connection is down. `arg` is not used. */
void hw_serve_alive(void *arg, struct evhttp_request *req, const char *rest);
/* Answers {"error":"why"}. */
void hw_reply_error(struct evhttp_request *req, int code, const char *why);

/* Begins an answer with a JSON object and returns its body, or answers 503 and returns NULL if there is no memory.
 * hw_answer_end() closes the object and sends the answer. */
struct evbuffer *hw_answer_begin(struct evhttp_request *req, struct hw_json *j);
void hw_answer_end(struct evhttp_request *req, struct hw_json *j, struct evbuffer *body);
void hw_answer_end_as(struct evhttp_request *req, int code, struct hw_json *j, struct evbuffer *body);

#endif
