/* SPDX-License-Identifier: MIT */
/* See refusal.h. Cost: a look at the last bytes of each answer, and at each byte of a request. */
#include "http/refusal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "http/reply.h"

#define NOT_UNDERSTOOD                                                                                                 \
	"not a request that is understood (a body needs Content-Length; Transfer-Encoding is not accepted)"

static const char name[] = "transfer-encoding";
#define NAME_LEN (sizeof(name) - 1)

/*
 * The front of the output is left as it was. A plain bufferevent keeps it frozen, and thaws it for each write. A
 * bufferevent of TLS does not: it could drop nothing from a frozen front, and would send the same bytes for ever.
 */
static void drain(struct evbuffer *out, size_t n)
{
	if (evbuffer_drain(out, n) == 0)
		return;
	evbuffer_unfreeze(out, 1);
	evbuffer_drain(out, n);
	evbuffer_freeze(out, 1);
}

static void rewrite(struct evbuffer *out, const char *page)
{
	/* "100 Continue" may stand before it. */
	const char *status = strstr(page, "HTTP/1.1 100 ") == page ? strstr(page + 1, "HTTP/1.") : page;
	int code = 0;
	if (!status || sscanf(status, "HTTP/%*d.%*d %d ", &code) != 1)
		return;
	const char *why = code == HTTP_ENTITYTOOLARGE ? "the body is too large" : NOT_UNDERSTOOD;
	int line = (int)strcspn(status, "\r");
	drain(out, strlen(page));
	evbuffer_add_printf(out,
	                    "%.*s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n"
	                    "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: " HW_REPLY_POLICY "\r\n\r\n"
	                    "{\"error\":\"%s\"}\n",
	                    line, status, strlen(why) + strlen("{\"error\":\"\"}\n"), why);
}

/* Copies without taking: evbuffer_copyout() will not, once the bufferevent has written and keeps its front frozen. */
static bool peek(struct evbuffer *out, size_t from, size_t n, char *to)
{
	struct evbuffer_iovec v[32];
	struct evbuffer_ptr at;
	if (evbuffer_ptr_set(out, &at, from, EVBUFFER_PTR_SET) < 0)
		return false;
	int pieces = evbuffer_peek(out, (ev_ssize_t)n, &at, v, 32);
	if (pieces < 0 || pieces > 32)
		return false;
	for (int i = 0; i < pieces && n > 0; i++) {
		size_t len = v[i].iov_len < n ? v[i].iov_len : n;
		memcpy(to, v[i].iov_base, len);
		to += len;
		n -= len;
	}
	return n == 0;
}

/*
 * What is not HTTP, or too large, evhttp answers by itself with a page of HTML, and this libevent has no hook for that.
 * All answers pass through the connection's output buffer: such a page is known by its end, with which none of ours
 * ends, and is replaced before a byte of it is written.
 */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	static const char end[] = "</BODY></HTML>\n";
	const size_t end_len = sizeof(end) - 1;
	size_t len = evbuffer_get_length(out);
	char page[1024];
	(void)arg;
	if (info->n_added == 0 || len < end_len || len >= sizeof(page))
		return;
	if (!peek(out, len - end_len, end_len, page) || memcmp(page, end, end_len) != 0 || !peek(out, 0, len, page))
		return;
	page[len] = '\0';
	rewrite(out, page);
}

/* Spoils each line of `n` bytes that begins with the name. `matched`: bytes of the name so far; -1: this line has
 * another name. `first`: where the name begins. */
static void spoil_lines(char *bytes, size_t n, int *matched, char **first)
{
	for (size_t i = 0; i < n; i++) {
		int c = bytes[i] >= 'A' && bytes[i] <= 'Z' ? bytes[i] + ('a' - 'A') : bytes[i];
		if (c == '\n') {
			*matched = 0;
			continue;
		}
		if (*matched < 0 || c != name[*matched]) {
			*matched = -1;
			continue;
		}
		if (*matched == 0)
			*first = &bytes[i];
		if (name[++*matched])
			continue;
		**first = '\r';
		*matched = -1;
	}
}

/*
 * evhttp bounds the body of a request, but not the line that announces a chunk. Such a line without an end would fill
 * the input up to its bound, and libevent would call evhttp for the full input again and again. No client needs chunks:
 * the header's name gets a byte that evhttp refuses in a name. evhttp takes whole lines, so the input begins with a
 * line. Invariant: no complete Transfer-Encoding header line reaches evhttp.
 */
static void on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
	size_t len = evbuffer_get_length(in), from = info->orig_size > NAME_LEN ? info->orig_size - NAME_LEN : 0;
	int matched = from == 0 ? 0 : -1;
	char *first = NULL;
	(void)arg;
	if (info->n_added == 0)
		return;
	while (from < len) {
		struct evbuffer_ptr at;
		struct evbuffer_iovec v;
		if (evbuffer_ptr_set(in, &at, from, EVBUFFER_PTR_SET) < 0 || evbuffer_peek(in, -1, &at, &v, 1) < 1)
			return;
		spoil_lines(v.iov_base, v.iov_len, &matched, &first);
		from += v.iov_len;
	}
}

void hw_refusal_watch(struct bufferevent *bev)
{
	evbuffer_add_cb(bufferevent_get_input(bev), on_input, NULL);
	evbuffer_add_cb(bufferevent_get_output(bev), on_output, NULL);
}
