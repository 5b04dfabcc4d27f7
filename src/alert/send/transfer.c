/* SPDX-License-Identifier: MIT */
/*
 * See transfer.h. A server's answer counts as soon as its final status line and headers are complete. So a message that
 * the server has accepted is not sent again, even if the body of the answer never ends.
 */
#include "alert/send/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alert/send/note.h"
#include "heartwheel/utf8.h"

#define REPLY_MAX 1024 /* bytes of an answer that are kept */

#define SOCKETS_MAX 8 /* libcurl tries a few addresses at the same time */

struct hw_try {
	struct hw_multi *multi; /* borrowed */
	CURL *easy;             /* owned */
	struct curl_slist *headers, *recipients;
	hw_try_done *done;
	void *arg;
	bool busy, mail;
	bool answered; /* HTTP: the headers of the final status are complete */
	size_t header_bytes, body_bytes;
	const char *text; /* mail: what is left to send */
	size_t left;
	char reply[REPLY_MAX]; /* HTTP: the body's begin; mail: the last reply that refuses something */
	size_t n_reply;
	bool goes_on;            /* mail: the reply in `reply` has more lines */
	int socket[SOCKETS_MAX]; /* mail: those that libcurl has open; -1: none */
	char error[CURL_ERROR_SIZE];
};

void hw_try_words(char words[HW_SEND_WORDS], const char *text, size_t len)
{
	char flat[REPLY_MAX];
	size_t n = 0;
	for (size_t i = 0; i < len && n < sizeof(flat); i++) {
		bool blank = strchr(" \t\r\n", text[i]); /* also a NUL */
		if (!blank)
			flat[n++] = text[i];
		else if (n > 0 && flat[n - 1] != ' ')
			flat[n++] = ' ';
	}
	while (n > 0 && flat[n - 1] == ' ')
		n--;
	/* If `flat` is full, it may end within a character. hw_utf8_show() would show the bytes of that character as
	 * escapes, so they are left out. */
	for (size_t k = n; k > 0 && k + 4 > n; k--)
		if (((unsigned char)flat[k - 1] & 0xc0) == 0xc0) {
			uint32_t c;
			n = n == sizeof(flat) && hw_utf8_next((unsigned char *)flat + k - 1, n - k + 1, &c) == 0 ? k - 1
			                                                                                         : n;
			break;
		}
	hw_utf8_show(flat, n, words, HW_SEND_WORDS);
}

/* --- what the server sends -------------------------------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct hw_try *t = arg;
	size_t room = REPLY_MAX - t->n_reply, keep = n < room ? n : room;
	(void)size; /* 1 */
	memcpy(t->reply + t->n_reply, bytes, keep);
	t->n_reply += keep;
	t->body_bytes += n;
	return t->body_bytes > HW_TRY_BODY_MAX ? 0 : n;
}

/* Called by libcurl with a line of the HTTP headers or trailers. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct hw_try *t = arg;
	(void)size;
	t->header_bytes += n;
	if (n <= 2 && (line[0] == '\r' || line[0] == '\n')) {
		long status = 0;
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
		t->answered |= status >= 200;
	}
	return t->header_bytes > HW_MULTI_HEADERS_MAX ? 0 : n;
}

/* Handles a line of a mail server's reply. Keeps the last reply that refuses something. */
static size_t on_reply(char *line, size_t size, size_t n, void *arg)
{
	struct hw_try *t = arg;
	bool refuses = n > 3 && (line[0] == '4' || line[0] == '5');
	(void)size;
	t->header_bytes += n;
	if (refuses && !t->goes_on)
		t->n_reply = 0;
	if (refuses) {
		size_t room = REPLY_MAX - t->n_reply, keep = n < room ? n : room;
		memcpy(t->reply + t->n_reply, line, keep);
		t->n_reply += keep;
		t->goes_on = line[3] == '-';
	}
	return t->header_bytes > HW_MULTI_HEADERS_MAX ? 0 : n;
}

static size_t on_upload(char *buf, size_t size, size_t n, void *arg)
{
	struct hw_try *t = arg;
	size_t take = size * n < t->left ? size * n : t->left;
	memcpy(buf, t->text, take);
	t->text += take;
	t->left -= take;
	return take;
}

/*
 * Shuts the socket down for reading when libcurl has sent QUIT, so that libcurl sees the end of the connection at once.
 * libcurl would wait up to two minutes for the reply, in a loop of its own. A silent mail server would block the daemon
 * for that time, and the reply is not needed.
 */
static int on_debug(CURL *easy, curl_infotype type, char *text, size_t n, void *arg)
{
	struct hw_try *t = arg;
	(void)easy;
	for (int k = 0; type == CURLINFO_HEADER_OUT && n >= 4 && memcmp(text, "QUIT", 4) == 0 && k < SOCKETS_MAX; k++)
		if (t->socket[k] >= 0)
			shutdown(t->socket[k], SHUT_RD);
	return 0;
}

static int replace_socket(struct hw_try *t, int from, int to)
{
	for (int k = 0; k < SOCKETS_MAX; k++)
		if (t->socket[k] == from) {
			t->socket[k] = to;
			return 0;
		}
	return -ENOENT;
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	(void)purpose;
	if (fd < 0 || replace_socket(arg, -1, fd) == 0)
		return fd < 0 ? CURL_SOCKET_BAD : fd;
	close(fd);
	return CURL_SOCKET_BAD;
}

static int on_close(void *arg, curl_socket_t fd)
{
	replace_socket(arg, fd, -1);
	return close(fd);
}

/* --- the result ------------------------------------------------------------------------------------------------- */

static bool is_passing(long status)
{
	return status == 408 || status == 425 || status == 429 || status >= 500;
}

static void judge_status(struct hw_try *t, long status, struct hw_try_result *r)
{
	char *to = NULL, text[512];
	curl_off_t after = 0;
	r->code = (int)status;
	r->end = status >= 200 && status <= 299 ? HW_TRY_TAKEN : is_passing(status) ? HW_TRY_AGAIN : HW_TRY_REFUSED;
	if (r->end == HW_TRY_TAKEN)
		return;
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &after);
	curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to);
	r->retry_after_ms = after > 0 && after < HW_SEND_WAIT_MAX_MS ? after * 1000
	                    : after > 0                              ? HW_SEND_WAIT_MAX_MS
	                                                             : 0;
	hw_try_words(r->words, t->reply, t->n_reply);
	if (to)
		snprintf(text, sizeof(text), "redirections are not followed; the server names %s", to);
	else
		snprintf(text, sizeof(text), "status %ld", status);
	if (to || !r->words[0])
		hw_try_words(r->words, text, strlen(text));
}

static void judge_post(struct hw_try *t, CURLcode code, struct hw_try_result *r)
{
	long status = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK || t->answered)
		judge_status(t, status, r);
	else if (t->header_bytes > HW_MULTI_HEADERS_MAX)
		snprintf(r->words, sizeof(r->words), "the headers of the answer are longer than 300 KiB");
	else if (code == CURLE_OUT_OF_MEMORY && status) /* libcurl's error for a header that is too long */
		snprintf(r->words, sizeof(r->words), "a header of the answer is longer than 100 KiB");
}

/* Decides the result of a mail. If the server refuses only some of the recipients, the mail is sent, and the
 * server's words about them are kept. */
static void judge_mail(struct hw_try *t, CURLcode code, struct hw_try_result *r)
{
	long reply = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &reply);
	r->code = reply ? (int)reply : -1;
	if (code == CURLE_OK)
		r->end = HW_TRY_TAKEN;
	else if (reply >= 500)
		r->end = HW_TRY_REFUSED;
	if (code == CURLE_OK || reply >= 400)
		hw_try_words(r->words, t->reply, t->n_reply);
	else if (t->header_bytes > HW_MULTI_HEADERS_MAX)
		snprintf(r->words, sizeof(r->words), "the replies of the server are longer than 300 KiB");
}

void hw_try_on_done(void *arg, CURL *easy, CURLcode code)
{
	struct hw_try *t;
	struct hw_try_result r = {.end = HW_TRY_AGAIN, .code = -1};
	(void)arg;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
	t->busy = false;
	if (t->mail)
		judge_mail(t, code, &r);
	else
		judge_post(t, code, &r);
	if (r.end != HW_TRY_TAKEN && !r.words[0]) {
		const char *error = t->error[0] ? t->error : curl_easy_strerror(code);
		hw_try_words(r.words, error, strlen(error));
	}
	t->done(t->arg, &r); /* may free t */
}

/* --- making and ending ------------------------------------------------------------------------------------------ */

void hw_try_free(struct hw_try *t)
{
	if (!t)
		return;
	if (t->busy)
		hw_multi_remove(t->multi, t->easy);
	if (t->easy)
		curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	curl_slist_free_all(t->recipients);
	free(t);
}

static int add_line(struct curl_slist **list, const char *line, size_t len)
{
	char *one = strndup(line, len);
	struct curl_slist *more = one ? curl_slist_append(*list, one) : NULL;
	if (one)
		explicit_bzero(one, len);
	free(one);
	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

__attribute__((format(printf, 2, 3))) static int add_format(struct curl_slist **list, const char *format, ...)
{
	char *line;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&line, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	int rc = add_line(list, line, (size_t)n);
	explicit_bzero(line, (size_t)n);
	free(line);
	return rc;
}

/* Sets the options that all tries have. The caller frees `t` if this fails. */
static int set_common(struct hw_try *t, const struct hw_try_target *to)
{
	char *url;
	if (asprintf(&url, "%.*s%s", (int)to->len, to->url, to->path) < 0)
		return -ENOMEM;
	int rc = curl_easy_setopt(t->easy, CURLOPT_URL, url) ? -ENOMEM : 0;
	free(url);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)HW_SEND_TRY_MS);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	if (!rc && *to->conf->username && to->secrets->password)
		rc = curl_easy_setopt(t->easy, CURLOPT_USERNAME, to->conf->username) ||
		                     curl_easy_setopt(t->easy, CURLOPT_PASSWORD, to->secrets->password)
		             ? -ENOMEM
		             : 0;
	return rc;
}

static struct hw_try *try_new(struct hw_multi *m, hw_try_done *done, void *arg)
{
	struct hw_try *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->multi = m;
	t->done = done;
	t->arg = arg;
	t->easy = hw_multi_outward(&t->header_bytes);
	if (t->easy)
		return t;
	free(t);
	return NULL;
}

static struct hw_try *begin(struct hw_try *t, int rc)
{
	if (rc == 0 && hw_multi_add(t->multi, t->easy) == 0) {
		t->busy = true;
		return t;
	}
	hw_try_free(t);
	return NULL;
}

/* --- a POST ----------------------------------------------------------------------------------------------------- */

/* `lines`: headers with line ends. */
static int add_lines(struct curl_slist **list, const char *lines)
{
	int rc = 0;
	while (rc == 0 && lines && *lines) {
		size_t n = strcspn(lines, "\n");
		rc = n > 0 ? add_line(list, lines, n) : 0;
		lines += n + (lines[n] == '\n');
	}
	return rc;
}

static int set_headers(struct hw_try *t, const struct hw_try_target *to, const struct hw_note *note)
{
	int rc = add_format(&t->headers, "Content-Type: %s", note->type);
	if (!rc)
		rc = add_format(&t->headers, "Expect:"); /* no 100-continue */
	if (!rc)
		rc = add_lines(&t->headers, note->headers);
	if (!rc && *to->key)
		rc = add_format(&t->headers, "Idempotency-Key: %s", to->key);
	bool bearer = to->secrets->key && *to->conf->url && to->conf->type != HW_RECEIVER_PAGERDUTY;
	if (!rc && bearer)
		rc = add_format(&t->headers, "Authorization: Bearer %s", to->secrets->key);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return rc;
}

struct hw_try *hw_try_post(struct hw_multi *m, const struct hw_try_target *to, const struct hw_note *note,
                           hw_try_done *done, void *arg)
{
	struct hw_try *t = try_new(m, done, arg);
	if (!t)
		return NULL;
	int rc = set_common(t, to);
	if (!rc)
		rc = set_headers(t, to, note);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, (const char *)note->text);
	curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)note->len);
	return begin(t, rc);
}

/* --- a mail ----------------------------------------------------------------------------------------------------- */

/* Returns the address in "Name <address>", or without brackets the text without outer
 * blanks. Sets the length of the address. */
static const char *bare_address(const char *text, size_t *len)
{
	const char *open = memchr(text, '<', *len),
		   *end = open ? memchr(open, '>', *len - (size_t)(open - text)) : NULL;
	if (end) {
		*len = (size_t)(end - open - 1);
		return open + 1;
	}
	while (*len > 0 && *text == ' ') {
		text++;
		--*len;
	}
	while (*len > 0 && text[*len - 1] == ' ')
		--*len;
	return text;
}

static int set_addresses(struct hw_try *t, const struct hw_receiver_settings *c)
{
	size_t len = strlen(c->mail_from);
	const char *address = bare_address(c->mail_from, &len);
	char *from = strndup(address, len);
	int rc = from && curl_easy_setopt(t->easy, CURLOPT_MAIL_FROM, from) == CURLE_OK ? 0 : -ENOMEM;
	free(from);
	for (const char *at = c->mail_to; rc == 0 && *at;) {
		size_t n = strcspn(at, ",");
		len = n;
		address = bare_address(at, &len);
		if (len > 0)
			rc = add_line(&t->recipients, address, len);
		at += n + (at[n] == ',');
	}
	curl_easy_setopt(t->easy, CURLOPT_MAIL_RCPT, t->recipients);
	return rc;
}

/*
 * Sets the options for TLS. If there is a username, the connection must have TLS and a valid certificate of the
 * server's name before the password is sent. Without a username, TLS is used if the server offers it, with any
 * certificate (RFC 7435), because a connection without TLS would be less safe.
 */
static void set_tls(struct hw_try *t, const struct hw_receiver_settings *c)
{
	bool must = *c->username || strncmp(c->url, "smtps://", 8) == 0;
	curl_easy_setopt(t->easy, CURLOPT_USE_SSL, (long)(must ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	if (must)
		return;
	curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
}

struct hw_try *hw_try_mail(struct hw_multi *m, const struct hw_try_target *to, const struct hw_note *note,
                           hw_try_done *done, void *arg)
{
	struct hw_try *t = try_new(m, done, arg);
	if (!t)
		return NULL;
	t->mail = true;
	memset(t->socket, -1, sizeof(t->socket));
	t->text = note->text;
	t->left = note->len;
	int rc = set_common(t, to);
	if (!rc)
		rc = set_addresses(t, to->conf);
	set_tls(t, to->conf);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
#else
	curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x080200
	curl_easy_setopt(t->easy, CURLOPT_MAIL_RCPT_ALLOWFAILS, 1L);
#elif LIBCURL_VERSION_NUM >= 0x074500
	curl_easy_setopt(t->easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
#endif
	curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L); /* the callbacks of the sockets end with `t` */
	curl_easy_setopt(t->easy, CURLOPT_VERBOSE, 1L);
	curl_easy_setopt(t->easy, CURLOPT_DEBUGFUNCTION, on_debug);
	curl_easy_setopt(t->easy, CURLOPT_DEBUGDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	curl_easy_setopt(t->easy, CURLOPT_CLOSESOCKETDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_reply);
	curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_upload);
	curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)note->len);
	return begin(t, rc);
}
