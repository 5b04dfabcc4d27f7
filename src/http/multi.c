/* SPDX-License-Identifier: MIT */
/* See multi.h. Invariant: from hw_multi_init() to hw_multi_fini() `base` is set, and this object counts as a user of
 * curl's global state. */
#include "http/multi.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Reports the transfers that have ended. */
static void check(struct hw_multi *m)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(m->curl, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_multi_remove_handle(m->curl, easy); /* frees the message */
		m->done(m->arg, easy, code);
	}
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct hw_multi *m = arg;
	int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0), running;
	curl_multi_socket_action(m->curl, fd, flags, &running);
	check(m);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_multi *m = arg;
	int running;
	(void)fd, (void)what;
	curl_multi_socket_action(m->curl, CURL_SOCKET_TIMEOUT, 0, &running);
	check(m);
}

/* Called by libcurl when a socket changes. `kept` is the event for the socket; each change replaces the event. */
static int watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *kept)
{
	struct hw_multi *m = arg;
	struct event *e = kept;
	(void)easy;
	if (e)
		event_free(e);
	e = NULL;
	if (what != CURL_POLL_REMOVE) {
		short events = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
		e = event_new(m->base, fd, (short)(events | EV_PERSIST), on_ready, m);
		if (e && event_add(e, NULL)) {
			event_free(e);
			e = NULL;
		}
	}
	/* If there is no memory, the socket has no event, and its transfer ends by its timeout. */
	curl_multi_assign(m->curl, fd, e);
	return 0;
}

static int set_timer(CURLM *curl, long timeout_ms, void *arg)
{
	struct hw_multi *m = arg;
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	(void)curl;
	return timeout_ms < 0 ? evtimer_del(m->timer) : evtimer_add(m->timer, &tv);
}

int hw_multi_init(struct hw_multi *m, struct event_base *base, hw_multi_done *done, void *arg)
{
	*m = (struct hw_multi){.done = done, .arg = arg};
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	m->base = base;
	m->timer = evtimer_new(base, on_timer, m);
	m->curl = curl_multi_init();
	if (!m->timer || !m->curl)
		return -ENOMEM;
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, watch);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	return 0;
}

static size_t discard(char *bytes, size_t size, size_t n, void *arg)
{
	(void)bytes;
	(void)arg;
	return size * n;
}

/* Counts the bytes of headers and trailers, and ends the transfer if they are too many (by returning less than all
 * bytes). libcurl keeps each header and each trailer, but limits only the headers. */
static size_t count_header(char *bytes, size_t size, size_t n, void *arg)
{
	size_t *total = arg;
	(void)bytes;
	*total += size * n;
	return *total > HW_MULTI_HEADERS_MAX ? 0 : size * n;
}

CURL *hw_multi_outward(size_t *header_bytes)
{
	CURL *easy = curl_easy_init();
	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "heartwheel/" HW_VERSION);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, count_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, header_bytes);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return easy;
}

CURL *hw_multi_inward(const char *socket)
{
	CURL *easy = curl_easy_init();
	if (!easy)
		return NULL;
	if (curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, socket)) {
		curl_easy_cleanup(easy);
		return NULL;
	}
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	return easy;
}

int hw_multi_set_path(CURL *easy, const char *path, const char *query)
{
	char *url;
	if (asprintf(&url, "http://localhost%s%s%s", path, query ? "?" : "", query ? query : "") < 0)
		return -ENOMEM;
	int rc = curl_easy_setopt(easy, CURLOPT_URL, url) ? -ENOMEM : 0;
	free(url);
	return rc;
}

long hw_multi_status(CURL *easy, CURLcode code)
{
	long status = 0;
	if (code == CURLE_OK)
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

int hw_multi_add(struct hw_multi *m, CURL *easy)
{
	return curl_multi_add_handle(m->curl, easy) ? -ENOMEM : 0;
}

void hw_multi_remove(struct hw_multi *m, CURL *easy)
{
	curl_multi_remove_handle(m->curl, easy);
}

void hw_multi_fini(struct hw_multi *m)
{
	/* Calls watch() for the sockets that were kept open. */
	if (m->curl)
		curl_multi_cleanup(m->curl);
	if (m->timer)
		event_free(m->timer);
	if (m->base)
		curl_global_cleanup();
	*m = (struct hw_multi){0};
}
