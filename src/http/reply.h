/* SPDX-License-Identifier: MIT */
/*
 * Answers. Each request is answered exactly once, by one of these, now or on a later turn of the loop. Errors are
 * {"error":"why"}; nothing is cached.
 */
#ifndef HW_HTTP_REPLY_H
#define HW_HTTP_REPLY_H

#include <stdbool.h>

/* The Content-Security-Policy of an answer that is no page. */
#define HW_REPLY_POLICY "default-src 'none'; frame-ancestors 'none'"

struct evbuffer;
struct evhttp_request;
struct hw_json;

/* Puts the headers that each answer carries in place: a browser takes no answer for another type, or for a page. */
void hw_reply_guard(struct evhttp_request *req);
/* Replaces the Content-Security-Policy of the answer. */
void hw_reply_policy(struct evhttp_request *req, const char *policy);
/* Answers with a JSON body, which is freed. NULL: no body. */
void hw_reply(struct evhttp_request *req, int code, struct evbuffer *body);
/* As hw_reply(), with a content type of its own. */
void hw_reply_as(struct evhttp_request *req, int code, const char *content_type, struct evbuffer *body);
/* Whether the answer must not have its body: evhttp would send it, and the client take it for the next answer. */
bool hw_is_head(struct evhttp_request *req);
/* Answers "ok", a line of text. */
void hw_reply_ok(struct evhttp_request *req);
/* A route: answers "ok" for as long as the loop turns, whatever else is away. `arg` is not used. */
void hw_serve_alive(void *arg, struct evhttp_request *req, const char *rest);
/* Answers {"error":"why"}. */
void hw_reply_error(struct evhttp_request *req, int code, const char *why);

/* An answer under construction: its body, begun with '{'; NULL: there is no memory, and that was answered.
 * hw_answer_end() closes that and sends it. */
struct evbuffer *hw_answer_begin(struct evhttp_request *req, struct hw_json *j);
void hw_answer_end(struct evhttp_request *req, struct hw_json *j, struct evbuffer *body);
void hw_answer_end_as(struct evhttp_request *req, int code, struct hw_json *j, struct evbuffer *body);

#endif
