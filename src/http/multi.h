/* SPDX-License-Identifier: MIT */
/* libcurl's multi interface on the loop: its sockets and its timer are events. */
#ifndef HW_HTTP_MULTI_H
#define HW_HTTP_MULTI_H

#include <curl/curl.h>

#define HW_MULTI_HEADERS_MAX (300 << 10) /* bytes: libcurl's own limit on headers */

struct event;
struct event_base;

/* Called when a transfer has ended and was removed from the multi handle. The callback may free its handle or start
 * it again. */
typedef void hw_multi_done(void *arg, CURL *easy, CURLcode code);

struct hw_multi {
	struct event_base *base; /* borrowed */
	CURLM *curl;             /* owned */
	struct event *timer;
	hw_multi_done *done;
	void *arg;
};

/* Initialises the caller's storage. Returns 0 or -ENOMEM. hw_multi_fini() must be called in both cases. */
int hw_multi_init(struct hw_multi *m, struct event_base *base, hw_multi_done *done, void *arg);
/*
 * Returns a handle for requests to other web servers, of whose answers only the status is used. Returns NULL if there
 * is no memory. The caller frees the handle with curl_easy_cleanup().
 *
 * The body is discarded, redirections are not followed, and no proxy is used, whatever the environment contains.
 * libcurl resolves names in a thread, and a timeout does not wait for that thread.
 *
 * `header_bytes` counts the bytes of an answer's headers and trailers. If there are more than HW_MULTI_HEADERS_MAX, the
 * transfer ends with CURLE_WRITE_ERROR. The caller sets *header_bytes to 0 before each transfer, and keeps it as long
 * as the handle.
 */
CURL *hw_multi_outward(size_t *header_bytes);
/* Returns a handle for requests to another of our daemons on a unix socket, or NULL if there is no memory. The caller
 * frees it with curl_easy_cleanup(). */
CURL *hw_multi_inward(const char *socket);
/* Sets the next request's path, which is sent unchanged, and query (may be NULL). Returns 0 or -ENOMEM. */
int hw_multi_set_path(CURL *easy, const char *path, const char *query);
/* Returns the HTTP status of a successful transfer, or 0. */
long hw_multi_status(CURL *easy, CURLcode code);
/* Starts a transfer; the caller still owns `easy`. Returns 0 or -ENOMEM. */
int hw_multi_add(struct hw_multi *m, CURL *easy);
/* Cancels a transfer without calling done(). Must not be called from a callback of libcurl for `easy`. */
void hw_multi_remove(struct hw_multi *m, CURL *easy);
/* Frees the object. Called after all transfers are removed and cleaned up. Zeroed storage is allowed. */
void hw_multi_fini(struct hw_multi *m);

#endif
