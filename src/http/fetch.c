/* SPDX-License-Identifier: MIT */
/* See fetch.h. A libcurl handle is created at its first use, and is reused with its connection. */
#include "http/fetch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "http/multi.h"

struct request {
	struct hw_fetch *fetch;
	CURL *easy; /* owned */
	hw_fetch_done *done;
	void *arg;
	char *body; /* owned */
	size_t len, cap;
	bool busy;
};

struct hw_fetch {
	struct hw_multi multi;
	char *socket; /* owned */
	long timeout_ms;
	size_t max_bytes;
	struct request request[HW_FETCH_MAX];
};

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct request *r = arg;
	(void)size;
	if (n > r->fetch->max_bytes - r->len)
		return 0; /* makes libcurl end the transfer */
	if (r->len + n + 1 > r->cap) {
		size_t cap = 2 * (r->len + n + 1);
		char *grown = realloc(r->body, cap);
		if (!grown)
			return 0;
		r->body = grown;
		r->cap = cap;
	}
	memcpy(r->body + r->len, bytes, n);
	r->len += n;
	r->body[r->len] = '\0';
	return n;
}

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct request *r;
	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
	char *body = r->body;
	size_t len = r->len;
	r->body = NULL;
	r->len = r->cap = 0;
	r->busy = false;
	r->done(r->arg, hw_multi_status(easy, code), body ? body : "", len);
	free(body);
}

struct hw_fetch *hw_fetch_new(struct event_base *base, const char *socket, long timeout_ms, size_t max_bytes)
{
	struct hw_fetch *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->timeout_ms = timeout_ms;
	f->max_bytes = max_bytes;
	f->socket = strdup(socket);
	if (f->socket && hw_multi_init(&f->multi, base, on_done, f) == 0)
		return f;
	hw_fetch_free(f);
	return NULL;
}

void hw_fetch_free(struct hw_fetch *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < HW_FETCH_MAX; i++) {
		struct request *r = &f->request[i];
		if (r->busy)
			hw_multi_remove(&f->multi, r->easy);
		if (r->easy)
			curl_easy_cleanup(r->easy);
		free(r->body);
	}
	hw_multi_fini(&f->multi);
	free(f->socket);
	free(f);
}

/* Returns 0 or -ENOMEM. */
static int set_up(struct hw_fetch *f, struct request *r, const char *path)
{
	if (!r->easy && !(r->easy = hw_multi_inward(f->socket)))
		return -ENOMEM;
	if (hw_multi_set_path(r->easy, path, NULL))
		return -ENOMEM;
	r->fetch = f;
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, f->timeout_ms);
	curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
	return 0;
}

int hw_fetch_get(struct hw_fetch *f, const char *path, hw_fetch_done *done, void *arg)
{
	struct request *r = f->request;
	while (r < f->request + HW_FETCH_MAX && r->busy)
		r++;
	if (r == f->request + HW_FETCH_MAX)
		return -EBUSY;
	if (set_up(f, r, path) || hw_multi_add(&f->multi, r->easy))
		return -ENOMEM;
	r->done = done;
	r->arg = arg;
	r->busy = true;
	return 0;
}
