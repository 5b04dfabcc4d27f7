/* SPDX-License-Identifier: MIT */
#include "ctl/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/client.h"
#include "heartwheel/json_tree.h"

#define ANSWER_S 10L
#define SILENT_S 60L /* a comment comes every 15 s */
#define STREAM   HW_LIVE_ASKS

struct transfer {
	struct hw_live *l;
	CURL *easy;
	struct hw_path body;
	struct curl_slist *headers;
	bool out;
};

struct hw_live {
	const struct hw_live_ops *ops;
	void *arg;
	CURLM *multi;
	struct transfer all[HW_LIVE_ASKS + 1]; /* the last element is the stream */
};

struct hw_live *hw_live_new(const struct hw_live_ops *ops, void *arg)
{
	struct hw_live *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct hw_live){.ops = ops, .arg = arg, .multi = curl_multi_init()};
	bool whole = l->multi != NULL;
	for (unsigned i = 0; i <= STREAM; i++) {
		l->all[i].l = l;
		l->all[i].easy = curl_easy_init();
		whole = whole && l->all[i].easy;
	}
	if (whole)
		return l;
	hw_live_free(l);
	return NULL;
}

static void rest(struct transfer *t)
{
	if (t->out)
		curl_multi_remove_handle(t->l->multi, t->easy);
	t->out = false;
	curl_slist_free_all(t->headers);
	t->headers = NULL;
}

void hw_live_free(struct hw_live *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i <= STREAM; i++) {
		rest(&l->all[i]);
		curl_easy_cleanup(l->all[i].easy);
		hw_path_fini(&l->all[i].body);
	}
	curl_multi_cleanup(l->multi);
	free(l);
}

static bool on_line(void *arg, const char *line)
{
	struct hw_live *l = arg;
	l->ops->on_line(l->arg, line);
	return true;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	long code = 0;
	if (!hw_client_keep(&t->body, bytes, size * n))
		return 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
	if (t == &t->l->all[STREAM] && code == 200)
		hw_client_lines(&t->body, on_line, t->l);
	return size * n;
}

static int prepare(struct transfer *t, const char *socket, const char *path)
{
	if (t->out)
		return -EBUSY;
	int rc = hw_client_prepare(t->easy, socket, path);
	t->body.len = 0;
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	return rc;
}

static int begin(struct transfer *t)
{
	t->out = curl_multi_add_handle(t->l->multi, t->easy) == CURLM_OK;
	return t->out ? 0 : -ENOMEM;
}

int hw_live_ask(struct hw_live *l, unsigned ask, const char *socket, const char *path)
{
	struct transfer *t = &l->all[ask];
	int rc = prepare(t, socket, path);
	if (rc < 0)
		return rc;
	curl_easy_setopt(t->easy, CURLOPT_TIMEOUT, ANSWER_S);
	return begin(t);
}

int hw_live_follow(struct hw_live *l, const char *socket, const char *path, const char *last)
{
	struct transfer *t = &l->all[STREAM];
	char place[128];
	int rc = prepare(t, socket, path);
	if (rc < 0)
		return rc;
	if (*last) {
		snprintf(place, sizeof(place), "Last-Event-ID: %s", last);
		t->headers = curl_slist_append(NULL, place);
		curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	}
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, SILENT_S);
	return begin(t);
}

bool hw_live_follows(const struct hw_live *l)
{
	return l->all[STREAM].out;
}

static void end(struct hw_live *l, struct transfer *t, CURLcode rc)
{
	long code = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
	rest(t);
	if (t == &l->all[STREAM]) {
		l->ops->on_end(l->arg, code);
		return;
	}
	cJSON *json = rc == CURLE_OK ? hw_json_tree(t->body.text, t->body.len) : NULL;
	l->ops->on_answer(l->arg, (unsigned)(t - l->all), rc == CURLE_OK ? code : 0, json);
}

static struct transfer *find(struct hw_live *l, const CURL *easy)
{
	struct transfer *t = l->all;
	while (t->easy != easy)
		t++;
	return t;
}

int hw_live_wait(struct hw_live *l, const int fds[2], int timeout_ms)
{
	struct curl_waitfd wait[2] = {{.fd = fds[0], .events = CURL_WAIT_POLLIN},
	                              {.fd = fds[1], .events = CURL_WAIT_POLLIN}};
	CURLMsg *message;
	int n;
	if (curl_multi_poll(l->multi, wait, 2, timeout_ms, NULL) != CURLM_OK ||
	    curl_multi_perform(l->multi, &n) != CURLM_OK)
		return -ENOMEM;
	while ((message = curl_multi_info_read(l->multi, &n)))
		if (message->msg == CURLMSG_DONE)
			end(l, find(l, message->easy_handle), message->data.result);
	return 0;
}
