/* SPDX-License-Identifier: MIT */
/* HTTP over the unix socket, by libcurl. An answer is kept whole in memory, up to a bound. */
#include "ctl/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (64 * 1024 * 1024)
#define TIMEOUT_S  30L

struct hw_client {
	CURL *curl;
	const char *socket;
	char *body;
	size_t len, cap;
	char why[512];
	char curl_why[CURL_ERROR_SIZE];
};

struct hw_client *hw_client_new(const char *socket)
{
	struct hw_client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->socket = socket;
	if (curl_global_init(CURL_GLOBAL_NOTHING) == CURLE_OK)
		c->curl = curl_easy_init();
	if (!c->curl) {
		free(c);
		return NULL;
	}
	return c;
}

void hw_client_free(struct hw_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	curl_global_cleanup();
	free(c->body);
	free(c);
}

const char *hw_client_why(const struct hw_client *c)
{
	return c->why;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct hw_client *c = arg;
	n *= size;
	if (c->len + n > ANSWER_MAX)
		return 0;
	if (c->len + n + 1 > c->cap) {
		size_t cap = (c->len + n + 1) * 2;
		char *grown = realloc(c->body, cap);
		if (!grown)
			return 0;
		c->body = grown;
		c->cap = cap;
	}
	memcpy(c->body + c->len, bytes, n);
	c->len += n;
	c->body[c->len] = '\0';
	return n;
}

/* Says in one line what is wrong and what to do about it. */
static void explain(struct hw_client *c, CURLcode rc)
{
	long number = 0;
	const char *advice = "is it running?";
	if (rc == CURLE_OPERATION_TIMEDOUT) {
		snprintf(c->why, sizeof(c->why), "heartwheeld at %s does not answer", c->socket);
		return;
	}
	if (rc != CURLE_COULDNT_CONNECT) {
		snprintf(c->why, sizeof(c->why), "talking to heartwheeld at %s failed: %s", c->socket,
		         *c->curl_why ? c->curl_why : curl_easy_strerror(rc));
		return;
	}
	curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
	if (number == EACCES || number == EPERM)
		advice = "you need to be root or in the group of the socket ([http] socket_group)";
	snprintf(c->why, sizeof(c->why), "cannot reach heartwheeld at %s: %s; %s", c->socket,
	         number ? strerror((int)number) : curl_easy_strerror(rc), advice);
}

/* Readies the handle for a request of that path. 0, or -1: it is too long. */
static int prepare(struct hw_client *c, const char *path)
{
	char url[8192];
	/* No host is looked up: the name only fills the header. */
	int n = snprintf(url, sizeof(url), "http://heartwheel%s", path);
	c->len = 0;
	*c->curl_why = '\0';
	if (n < 0 || (size_t)n >= sizeof(url)) {
		snprintf(c->why, sizeof(c->why), "the request is too long");
		return -1;
	}
	curl_easy_reset(c->curl); /* keeps the connection */
	curl_easy_setopt(c->curl, CURLOPT_URL, url);
	curl_easy_setopt(c->curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->curl_why);
	return curl_easy_setopt(c->curl, CURLOPT_UNIX_SOCKET_PATH, c->socket) == CURLE_OK ? 0 : -1;
}

int hw_client_ask(struct hw_client *c, const char *method, const char *path, struct hw_answer *a)
{
	*a = (struct hw_answer){0};
	if (prepare(c, path) < 0)
		return -1;
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	if (strcmp(method, "POST") == 0)
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, "");
	else if (strcmp(method, "GET") != 0)
		curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
	CURLcode rc = curl_easy_perform(c->curl);
	if (rc != CURLE_OK) {
		explain(c, rc);
		return -1;
	}
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &a->code);
	a->json = c->len > 0 ? cJSON_ParseWithLength(c->body, c->len) : NULL;
	return 0;
}

/* --- a stream */

struct stream {
	struct hw_client *c;
	hw_line *line;
	void *arg;
	bool ended; /* by the one who reads */
};

/* Hands out whole lines; the rest waits in the body. */
static size_t on_stream(char *bytes, size_t size, size_t n, void *arg)
{
	struct stream *s = arg;
	struct hw_client *c = s->c;
	long code = 0;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &code);
	if (on_body(bytes, size, n, c) != size * n)
		return 0;
	if (code != 200)
		return size * n;
	char *at = c->body, *end;
	while (!s->ended && (end = memchr(at, '\n', c->len - (size_t)(at - c->body)))) {
		*end = '\0';
		s->ended = !s->line(s->arg, at);
		at = end + 1;
	}
	c->len -= (size_t)(at - c->body);
	memmove(c->body, at, c->len);
	return s->ended ? 0 : size * n;
}

/* What an answer that is not a stream says. */
static void read_refusal(struct hw_client *c, long code)
{
	cJSON *json = c->len > 0 ? cJSON_ParseWithLength(c->body, c->len) : NULL;
	const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "error"));
	if (why)
		snprintf(c->why, sizeof(c->why), "%s", why);
	else
		snprintf(c->why, sizeof(c->why), "heartwheeld answered %ld", code);
	cJSON_Delete(json);
}

int hw_client_stream(struct hw_client *c, const char *path, const char *last, hw_line *line, void *arg, long *code)
{
	struct stream s = {.c = c, .line = line, .arg = arg};
	struct curl_slist *headers = NULL;
	char place[128];
	*code = 0;
	if (prepare(c, path) < 0)
		return -1;
	if (last && *last) {
		snprintf(place, sizeof(place), "Last-Event-ID: %s", last);
		headers = curl_slist_append(NULL, place);
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	}
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_stream);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &s);
	/* A comment comes each 15 s: a daemon that says nothing at all does not live. */
	curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, 60L);
	CURLcode rc = curl_easy_perform(c->curl);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, code);
	curl_slist_free_all(headers);
	if (s.ended)
		return 0;
	if (*code != 200 && rc == CURLE_OK) {
		read_refusal(c, *code);
		return 1;
	}
	explain(c, rc);
	return rc == CURLE_OK ? 0 : -1;
}

void hw_answer_fini(struct hw_answer *a)
{
	cJSON_Delete(a->json);
	*a = (struct hw_answer){0};
}

static void add_bytes(struct hw_path *p, const char *bytes, size_t n)
{
	if (p->len + n + 1 > p->cap && (p->text || p->cap == 0)) {
		p->cap = (p->len + n + 1) * 2;
		char *grown = realloc(p->text, p->cap);
		if (!grown)
			free(p->text);
		p->text = grown;
	}
	if (!p->text)
		return;
	memcpy(p->text + p->len, bytes, n);
	p->len += n;
	p->text[p->len] = '\0';
}

void hw_path_add(struct hw_path *p, const char *text)
{
	add_bytes(p, text, strlen(text));
}

void hw_path_add_encoded(struct hw_path *p, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
	char code[4];
	for (; *text; text++) {
		if (strchr(plain, *text)) {
			add_bytes(p, text, 1);
			continue;
		}
		snprintf(code, sizeof(code), "%%%02X", (unsigned)(unsigned char)*text);
		add_bytes(p, code, 3);
	}
}

void hw_path_fini(struct hw_path *p)
{
	free(p->text);
	*p = (struct hw_path){0};
}
