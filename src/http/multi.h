/* SPDX-License-Identifier: MIT */
/* libcurl's multi interface on the loop: its sockets and its one timer are events. */
#ifndef HW_HTTP_MULTI_H
#define HW_HTTP_MULTI_H

#include <curl/curl.h>

struct event;
struct event_base;

/* A transfer has ended. It is no longer part of the multi handle; it may be freed, or added again. */
typedef void hw_multi_done(void *arg, CURL *easy, CURLcode code);

struct hw_multi {
	struct event_base *base; /* borrowed */
	CURLM *curl;             /* owned */
	struct event *timer;
	hw_multi_done *done;
	void *arg;
};

/* Readies caller's storage. 0; or -ENOMEM, and hw_multi_fini() is still to be called. */
int hw_multi_init(struct hw_multi *m, struct event_base *base, hw_multi_done *done, void *arg);
/*
 * A handle for requests to some other's web server, whose answers' status alone counts: what else is sent is thrown
 * away, a redirection is not followed, and no proxy is used, whatever the environment says. Names are resolved in a
 * thread of libcurl's, and a time-out does not wait for that one. NULL without memory; the caller's, for
 * curl_easy_cleanup().
 */
CURL *hw_multi_outward(void);
/* A handle for requests to another program of ours, which listens on a unix socket. NULL without memory; the caller's,
 * for curl_easy_cleanup(). */
CURL *hw_multi_inward(const char *socket);
/* What is asked of it next: a path, which goes as it is, and a query or NULL. 0 or -ENOMEM. */
int hw_multi_set_path(CURL *easy, const char *path, const char *query);
/* The status of a transfer that has ended well, or 0. */
long hw_multi_status(CURL *easy, CURLcode code);
/* Starts a transfer, which stays the caller's. 0 or -ENOMEM. */
int hw_multi_add(struct hw_multi *m, CURL *easy);
/* Gives one up; done() is not called. Not from one of its own libcurl callbacks. */
void hw_multi_remove(struct hw_multi *m, CURL *easy);
/* After every transfer was removed and cleaned up. Zeroed storage may be given. */
void hw_multi_fini(struct hw_multi *m);

#endif
