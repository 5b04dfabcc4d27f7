/* SPDX-License-Identifier: MIT */
/*
 * A message to a web server: one POST at a time through libcurl's multi interface, whose sockets and timer are events
 * of the loop. An answer of 2xx is success; a redirection is not followed, and no proxy is used, whatever the
 * environment says. What the server sends is thrown away.
 *
 * Names are resolved in a thread of libcurl's. A time-out must not wait for that thread: CURLOPT_QUICK_EXIT.
 */
#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notify/carrier.h"

struct hw_webhook {
	struct event_base *base; /* borrowed */
	hw_carrier_done *done;
	void *arg;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct event *timer;
	bool busy;
	char error[CURL_ERROR_SIZE];
};

/* --- the loop ----------------------------------------------------------------- */

/* If the transfer has ended, says so. */
static void check(struct hw_webhook *w)
{
	char why[CURL_ERROR_SIZE + 32] = "";
	int left;
	CURLMsg *m = curl_multi_info_read(w->multi, &left);
	if (!m || m->msg != CURLMSG_DONE)
		return;
	CURLcode code = m->data.result;
	long status = 0;
	curl_easy_getinfo(w->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(w->multi, w->easy);
	w->busy = false;
	if (code != CURLE_OK)
		snprintf(why, sizeof why, "%s", w->error[0] ? w->error : curl_easy_strerror(code));
	else if (status < 200 || status > 299)
		snprintf(why, sizeof why, "the server answered with status %ld", status);
	w->done(w->arg, why[0] ? why : NULL);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct hw_webhook *w = arg;
	int flags = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0), running;
	curl_multi_socket_action(w->multi, fd, flags, &running);
	check(w);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_webhook *w = arg;
	int running;
	(void)fd;
	(void)what;
	curl_multi_socket_action(w->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	check(w);
}

/* libcurl's: what it wants to know of a socket. Its event is kept with it, and made anew at each change. */
static int watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *kept)
{
	struct hw_webhook *w = arg;
	struct event *e = kept;
	(void)easy;
	if (e)
		event_free(e);
	e = NULL;
	if (what != CURL_POLL_REMOVE) {
		short events = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
		e = event_new(w->base, fd, (short)(events | EV_PERSIST), on_ready, w);
		if (e && event_add(e, NULL)) {
			event_free(e);
			e = NULL;
		}
	}
	/* Without memory nobody watches it: the transfer's time-out ends it. */
	curl_multi_assign(w->multi, fd, e);
	return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct hw_webhook *w = arg;
	struct timeval tv = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	(void)multi;
	return timeout_ms < 0 ? evtimer_del(w->timer) : evtimer_add(w->timer, &tv);
}

static size_t throw_away(char *bytes, size_t size, size_t n, void *arg)
{
	(void)bytes;
	(void)arg;
	return size * n;
}

/* --- making and ending -------------------------------------------------------- */

static int set_up(struct hw_webhook *w)
{
	static const char *const lines[] = {"Content-Type: application/json", "Expect:"};
	for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
		struct curl_slist *more = curl_slist_append(w->headers, lines[k]);
		if (!more)
			return -ENOMEM;
		w->headers = more;
	}
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, watch);
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
	curl_easy_setopt(w->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->error);
	curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, w->headers);
	curl_easy_setopt(w->easy, CURLOPT_USERAGENT, "heartwheel/" HW_VERSION);
	curl_easy_setopt(w->easy, CURLOPT_WRITEFUNCTION, throw_away);
	curl_easy_setopt(w->easy, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(w->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(w->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	curl_easy_setopt(w->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return 0;
}

struct hw_webhook *hw_webhook_new(struct event_base *base, hw_carrier_done *done, void *arg)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return NULL;
	struct hw_webhook *w = calloc(1, sizeof *w);
	if (!w) {
		curl_global_cleanup();
		return NULL;
	}
	*w = (struct hw_webhook){.base = base, .done = done, .arg = arg};
	w->timer = evtimer_new(base, on_timer, w);
	w->multi = curl_multi_init();
	w->easy = curl_easy_init();
	if (w->timer && w->multi && w->easy && set_up(w) == 0)
		return w;
	hw_webhook_free(w);
	return NULL;
}

void hw_webhook_free(struct hw_webhook *w)
{
	if (!w)
		return;
	if (w->busy)
		curl_multi_remove_handle(w->multi, w->easy);
	/* Tells of the sockets that were kept open, through watch(). */
	if (w->easy)
		curl_easy_cleanup(w->easy);
	if (w->multi)
		curl_multi_cleanup(w->multi);
	curl_slist_free_all(w->headers);
	if (w->timer)
		event_free(w->timer);
	free(w);
	curl_global_cleanup();
}

int hw_webhook_start(struct hw_webhook *w, const char *url, const char *text, size_t len, int64_t timeout_ms)
{
	w->error[0] = '\0';
	if (curl_easy_setopt(w->easy, CURLOPT_URL, url))
		return -ENOMEM;
	curl_easy_setopt(w->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(w->easy, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(w->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	curl_easy_setopt(w->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	if (curl_multi_add_handle(w->multi, w->easy))
		return -ENOMEM;
	w->busy = true;
	return 0;
}
