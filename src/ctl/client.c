/* SPDX-License-Identifier: MIT */
/* Sends requests over the unix socket, with libcurl. An answer is kept in memory, up to a limit. */
#include "ctl/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "heartwheel/json_tree.h"

#define ANSWER_MAX (64 * 1024 * 1024)
#define TIMEOUT_S  30L
#define AGAIN_MS   3000

struct hw_client {
	CURL *curl;
	const char *socket, *program, *section, *type;
	char next[sizeof(((struct hw_answer *)0)->next)];
	int64_t as_of_ms; /* Heartwheel-As-Of of the last answer; 0: none */
	struct hw_path body;
	const struct hw_client_also *also; /* borrowed; NULL: none */
	bool reached;                      /* the last request had a connection */
	char why[512];
	char curl_why[CURL_ERROR_SIZE];
};

struct hw_client *hw_client_new(const char *socket)
{
	struct hw_client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->socket = socket;
	hw_client_ask_of(c, "heartwheeld", "http");
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
	hw_path_fini(&c->body);
	free(c);
}

void hw_client_ask_of(struct hw_client *c, const char *program, const char *section)
{
	c->program = program;
	c->section = section;
}

void hw_client_want(struct hw_client *c, const char *type)
{
	c->type = type;
}

bool hw_client_wants_text(const struct hw_client *c)
{
	return c->type != NULL;
}

int64_t hw_client_as_of_ms(const struct hw_client *c)
{
	return c->as_of_ms;
}

const char *hw_client_program(const struct hw_client *c)
{
	return c->program;
}

const char *hw_client_why(const struct hw_client *c)
{
	return c->why;
}

bool hw_client_may_have_asked(const struct hw_client *c)
{
	return c->reached;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct hw_client *c = arg;
	return hw_client_keep(&c->body, bytes, n * size) ? n * size : 0;
}

/* Sets `why`: one line with the error and advice. */
static void explain(struct hw_client *c, CURLcode rc)
{
	long number = 0;
	char advice[128] = "is the daemon running?";
	c->reached = rc != CURLE_COULDNT_CONNECT;
	if (rc == CURLE_OPERATION_TIMEDOUT) {
		snprintf(c->why, sizeof(c->why), "%s at %s does not answer", c->program, c->socket);
		return;
	}
	if (rc != CURLE_COULDNT_CONNECT) {
		snprintf(c->why, sizeof(c->why), "talking to %s at %s failed: %s", c->program, c->socket,
		         *c->curl_why ? c->curl_why : curl_easy_strerror(rc));
		return;
	}
	curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
	if (number == EACCES || number == EPERM)
		snprintf(advice, sizeof(advice),
		         "you need to be root or in the group of the socket ([%.32s] socket_group)", c->section);
	snprintf(c->why, sizeof(c->why), "cannot reach %s at %s: %s; %s", c->program, c->socket,
	         number ? strerror((int)number) : curl_easy_strerror(rc), advice);
}

int hw_client_prepare(CURL *curl, const char *socket, const char *path)
{
	char url[8192];
	/* The host name only fills the header Host. It is not resolved. */
	int n = snprintf(url, sizeof(url), "http://heartwheel%s", path);
	if (n < 0 || (size_t)n >= sizeof(url))
		return -ENAMETOOLONG;
	curl_easy_reset(curl); /* keeps the connection */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	return curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket) == CURLE_OK ? 0 : -ENOMEM;
}

/* Prepares the handle for a request. Returns 0, or -1 if the path is too long or there is no memory. */
static int prepare(struct hw_client *c, const char *path)
{
	c->body.len = 0;
	*c->curl_why = '\0';
	int rc = hw_client_prepare(c->curl, c->socket, path);
	if (rc < 0)
		snprintf(c->why, sizeof(c->why), "%s", rc == -ENOMEM ? "out of memory" : "the request is too long");
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->curl_why);
	return rc < 0 ? -1 : 0;
}

static bool take_header(const char *line, size_t len, const char *name, char *to, size_t cap)
{
	size_t skip = strlen(name);
	if (len <= skip || strncasecmp(line, name, skip) != 0)
		return false;
	skip += strspn(line + skip, " \t"); /* libcurl ends the line with CR and LF */
	snprintf(to, cap, "%.*s", (int)strcspn(line + skip, "\r\n"), line + skip);
	return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct hw_client *c = arg;
	size_t len = size * n;
	char as_of[32] = "";
	if (!take_header(line, len, "Heartwheel-Next:", c->next, sizeof(c->next)) &&
	    take_header(line, len, "Heartwheel-As-Of:", as_of, sizeof(as_of)))
		c->as_of_ms = strtoll(as_of, NULL, 10);
	return len;
}

/* Builds the headers of a request: the content type that the caller wants, and that of the body. The caller frees
 * the list. */
static struct curl_slist *headers_of(const struct hw_client *c, const struct hw_client_body *body)
{
	char line[80];
	struct curl_slist *headers = NULL;
	if (c->type) {
		snprintf(line, sizeof(line), "Accept: %.48s", c->type);
		headers = curl_slist_append(headers, line);
	}
	if (body->type) {
		snprintf(line, sizeof(line), "Content-Type: %.48s", body->type);
		headers = curl_slist_append(headers, line);
		headers = curl_slist_append(headers, "Expect:"); /* otherwise libcurl waits before a large body */
	}
	return headers;
}

int hw_client_send(struct hw_client *c, const char *method, const char *path, const struct hw_client_body *body,
                   long timeout_s, struct hw_answer *a)
{
	*a = (struct hw_answer){0};
	if (prepare(c, path) < 0)
		return -1;
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, timeout_s);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	if (body->bytes) {
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body->bytes);
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "POST") != 0)
		curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
	struct curl_slist *headers = headers_of(c, body);
	if (headers)
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, c);
	*c->next = '\0';
	c->as_of_ms = 0;
	CURLcode rc = curl_easy_perform(c->curl);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK) {
		explain(c, rc);
		return -1;
	}
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &a->code);
	snprintf(a->next, sizeof(a->next), "%s", c->next);
	a->as_of_ms = c->as_of_ms;
	a->text = c->body.len > 0 ? c->body.text : NULL;
	a->json = hw_json_tree(c->body.text, c->body.len);
	return 0;
}

int hw_client_ask(struct hw_client *c, const char *method, const char *path, struct hw_answer *a)
{
	const struct hw_client_body none = {0}, empty = {.bytes = ""};
	return hw_client_send(c, method, path, strcmp(method, "POST") == 0 ? &empty : &none, TIMEOUT_S, a);
}

int hw_client_get(struct hw_client *c, const char *path, long timeout_s, struct hw_answer *a)
{
	const struct hw_client_body none = {0};
	return hw_client_send(c, "GET", path, &none, timeout_s, a);
}

int hw_client_post(struct hw_client *c, const char *path, const char *body, long timeout_s, struct hw_answer *a)
{
	const struct hw_client_body text = {.bytes = body, .len = strlen(body)};
	return hw_client_send(c, "POST", path, &text, timeout_s, a);
}

/* --- a stream */

struct stream {
	struct hw_client *c;
	hw_line *line;
	void *arg;
	struct curl_slist *headers; /* owned */
	bool ended;                 /* the line callback has ended the stream */
};

/* Passes on complete lines; the rest stays in the body. */
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
	s->ended = !hw_client_lines(&c->body, s->line, s->arg);
	return s->ended ? 0 : size * n;
}

/* Sets `why` from an answer that is not a stream. */
static void read_refusal(struct hw_client *c, long code)
{
	cJSON *json = hw_json_tree(c->body.text, c->body.len);
	const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "error"));
	if (why)
		snprintf(c->why, sizeof(c->why), "%s", why);
	else
		snprintf(c->why, sizeof(c->why), "%s answered %ld", c->program, code);
	cJSON_Delete(json);
}

/* Prepares the request of a stream. Returns 0 or -1. */
static int stream_prepare(struct stream *s, const char *path, const char *last)
{
	char place[128];
	if (prepare(s->c, path) < 0)
		return -1;
	if (last && *last) {
		snprintf(place, sizeof(place), "Last-Event-ID: %s", last);
		s->headers = curl_slist_append(NULL, place);
		curl_easy_setopt(s->c->curl, CURLOPT_HTTPHEADER, s->headers);
	}
	curl_easy_setopt(s->c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(s->c->curl, CURLOPT_HEADERDATA, s->c);
	s->c->as_of_ms = 0;
	curl_easy_setopt(s->c->curl, CURLOPT_WRITEFUNCTION, on_stream);
	curl_easy_setopt(s->c->curl, CURLOPT_WRITEDATA, s);
	/* A comment comes every 15 s, so a longer silence means that the daemon hangs or cannot be reached. */
	curl_easy_setopt(s->c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(s->c->curl, CURLOPT_LOW_SPEED_TIME, 60L);
	return 0;
}

static void stream_end(struct stream *s)
{
	curl_slist_free_all(s->headers);
	s->headers = NULL;
}

void hw_client_read_also(struct hw_client *c, const struct hw_client_also *also)
{
	c->also = also;
}

static int64_t mono_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads the prepared stream of `c` to its end. Meanwhile also reads the second stream. */
static CURLcode perform_both(struct hw_client *c, const struct hw_client_also *also)
{
	struct stream second = {.c = also->client, .line = also->line, .arg = also->arg};
	CURLM *multi = curl_multi_init();
	CURLcode rc = CURLE_OUT_OF_MEMORY;
	CURLMsg *message;
	int64_t due_ms = 0;
	int n;
	bool open = false, reads = multi && curl_multi_add_handle(multi, c->curl) == CURLM_OK;
	while (reads) {
		if (!open && mono_ms() >= due_ms) {
			due_ms = mono_ms() + AGAIN_MS;
			open = stream_prepare(&second, also->path, also->last) == 0 &&
			       curl_multi_add_handle(multi, also->client->curl) == CURLM_OK;
		}
		reads = curl_multi_perform(multi, &n) == CURLM_OK;
		while (reads && (message = curl_multi_info_read(multi, &n))) {
			if (message->easy_handle == c->curl) {
				rc = message->data.result;
				reads = false;
				break;
			}
			curl_multi_remove_handle(multi, also->client->curl);
			stream_end(&second);
			open = false;
			due_ms = mono_ms() + AGAIN_MS;
		}
		if (reads)
			reads = curl_multi_poll(multi, NULL, 0, AGAIN_MS, NULL) == CURLM_OK;
	}
	if (open)
		curl_multi_remove_handle(multi, also->client->curl);
	stream_end(&second);
	if (multi)
		curl_multi_remove_handle(multi, c->curl);
	curl_multi_cleanup(multi);
	return rc;
}

int hw_client_stream(struct hw_client *c, const char *path, const char *last, hw_line *line, void *arg, long *code)
{
	struct stream s = {.c = c, .line = line, .arg = arg};
	*code = 0;
	if (stream_prepare(&s, path, last) < 0)
		return -1;
	CURLcode rc = c->also ? perform_both(c, c->also) : curl_easy_perform(c->curl);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, code);
	stream_end(&s);
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

bool hw_client_keep(struct hw_path *body, const char *bytes, size_t n)
{
	if (body->len + n > ANSWER_MAX)
		return false;
	add_bytes(body, bytes, n);
	return body->text != NULL;
}

bool hw_client_lines(struct hw_path *body, hw_line *line, void *arg)
{
	bool goes_on = true;
	char *at = body->text, *end;
	while (goes_on && (end = memchr(at, '\n', body->len - (size_t)(at - body->text)))) {
		*end = '\0';
		goes_on = line(arg, at);
		at = end + 1;
	}
	body->len -= (size_t)(at - body->text);
	memmove(body->text, at, body->len);
	return goes_on;
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
