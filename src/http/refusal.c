/* SPDX-License-Identifier: MIT */
/* See refusal.h. Cost: a check of the last bytes of each answer, and of each byte of a request. */
#include "http/refusal.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/json_writer.h"
#include "http/reply.h"

#define NOT_UNDERSTOOD "malformed request (a body needs Content-Length; Transfer-Encoding is not accepted)"

static const char name[] = "transfer-encoding";
#define NAME_LEN (sizeof(name) - 1)

/*
 * Removes `n` bytes, although the front of the buffer may be frozen. A plain bufferevent unfreezes the front for each
 * write. A TLS bufferevent does not: it would send the same bytes for ever if the front were frozen.
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
	/* "100 Continue" may precede the page. */
	const char *status = strstr(page, "HTTP/1.1 100 ") == page ? strstr(page + 1, "HTTP/1.") : page;
	int code = 0;
	if (!status || sscanf(status, "HTTP/%*d.%*d %d ", &code) != 1)
		return;
	const char *why = code == HTTP_ENTITYTOOLARGE ? "the body is too large" : NOT_UNDERSTOOD;
	int line = (int)strcspn(status, "\r");
	char body[128];
	struct hw_json j;
	hw_json_begin_text(&j, body, sizeof(body));
	hw_json_open(&j, '{');
	hw_json_text(&j, "error", why);
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	drain(out, strlen(page));
	evbuffer_add_printf(out,
	                    "%.*s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n"
	                    "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: " HW_REPLY_POLICY
	                    "\r\n\r\n%s\n",
	                    line, status, strlen(body) + 1, body);
}

/* Copies bytes without removing them. evbuffer_copyout() fails while the bufferevent keeps the front frozen. */
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
 * Replaces evhttp's own error pages. evhttp answers a malformed or too large request with HTML, and this libevent has
 * no hook to change that. But all answers pass through the connection's output buffer. Only an error page of evhttp
 * ends with the text `end`, so this function recognises the page, and replaces it before any byte is written to the
 * socket.
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

/* Searches the `n` bytes for lines that begin with the header name, and makes the name in them invalid. `matched`:
 * how many bytes of the name have matched in this line so far; -1: the line has another name. `first`: where the
 * name begins. */
static void invalidate_lines(char *bytes, size_t n, int *matched, char **first)
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
 * Makes requests with Transfer-Encoding invalid. evhttp limits the body of a request, but not the line that announces a
 * chunk. An endless line would fill the input to its limit, and libevent would then call evhttp without end. Chunks are
 * not needed, so one byte of the header's name is replaced by one that evhttp refuses. evhttp consumes whole lines, so
 * the input always begins with a line. Invariant: no complete Transfer-Encoding line reaches evhttp.
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
		invalidate_lines(v.iov_base, v.iov_len, &matched, &first);
		from += v.iov_len;
	}
}

void hw_refusal_watch(struct bufferevent *bev)
{
	evbuffer_add_cb(bufferevent_get_input(bev), on_input, NULL);
	evbuffer_add_cb(bufferevent_get_output(bev), on_output, NULL);
}
