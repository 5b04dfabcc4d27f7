/* SPDX-License-Identifier: MIT */
/* See ask.h. A libcurl handle is created at its first use, and is reused with its connection. */
#include "http/ask.h"

#include <errno.h>
#include <stdlib.h>

#include "http/multi.h"

struct request {
	CURL *easy; /* owned */
	size_t header_bytes;
	uint64_t request_id;
	bool busy;
};

struct hw_ask {
	struct hw_multi multi;
	long timeout_ms;
	hw_ask_done *done;
	void *arg;
	struct request request[HW_ASK_MAX];
	unsigned busy;
};

static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct hw_ask *a = arg;
	struct request *r;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
	r->busy = false;
	a->busy--;
	a->done(a->arg, r->request_id, hw_multi_status(easy, code));
}

struct hw_ask *hw_ask_new(struct event_base *base, long timeout_ms, hw_ask_done *done, void *arg)
{
	struct hw_ask *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->timeout_ms = timeout_ms;
	a->done = done;
	a->arg = arg;
	if (hw_multi_init(&a->multi, base, on_done, a) == 0)
		return a;
	hw_ask_free(a);
	return NULL;
}

void hw_ask_free(struct hw_ask *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < HW_ASK_MAX; i++) {
		if (a->request[i].busy)
			hw_multi_remove(&a->multi, a->request[i].easy);
		if (a->request[i].easy)
			curl_easy_cleanup(a->request[i].easy);
	}
	hw_multi_fini(&a->multi);
	free(a);
}

unsigned hw_ask_room(const struct hw_ask *a)
{
	return HW_ASK_MAX - a->busy;
}

int hw_ask_get(struct hw_ask *a, const char *url, uint64_t request_id)
{
	struct request *r = a->request;
	if (a->busy == HW_ASK_MAX)
		return -EBUSY;
	while (r->busy)
		r++;
	if (!r->easy)
		r->easy = hw_multi_outward(&r->header_bytes);
	if (!r->easy || curl_easy_setopt(r->easy, CURLOPT_URL, url))
		return -ENOMEM;
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, a->timeout_ms);
	curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
	r->header_bytes = 0;
	if (hw_multi_add(&a->multi, r->easy))
		return -ENOMEM;
	r->request_id = request_id;
	r->busy = true;
	a->busy++;
	return 0;
}
