/* SPDX-License-Identifier: MIT */
/* See access.h. */
#include "http/access.h"

#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/reply.h"

#define HTTP_UNAUTHORIZED 401
#define HTTP_FORBIDDEN    403
#define HTTP_TOO_MANY     429

/* The client's credentials: slices of `buf` or of the request's header. */
struct pass_word {
	char buf[HW_API_TOKEN_MAX + HW_ACCOUNT_NAME_MAX + 8];
	const char *name; /* NULL: not given */
	size_t name_len;
	const char *token; /* NULL: no token */
	size_t len;
};

static bool decode_basic(struct pass_word *p, const char *text, size_t len)
{
	unsigned char bytes[sizeof(p->buf)];
	if (len % 4 != 0 || len / 4 * 3 >= sizeof(bytes))
		return false;
	int n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len);
	if (n < 0)
		return false;
	while (len > 0 && text[len - 1] == '=' && n > 0) {
		len--;
		n--; /* EVP_DecodeBlock counts the padding */
	}
	memcpy(p->buf, bytes, (size_t)n);
	const char *colon = memchr(p->buf, ':', (size_t)n);
	if (!colon)
		return false;
	p->name = p->buf;
	p->name_len = (size_t)(colon - p->buf);
	p->token = colon + 1;
	p->len = (size_t)(p->buf + n - p->token);
	return true;
}

/* The text after the scheme's name, or NULL. */
static const char *after(const char *header, const char *scheme)
{
	size_t len = strlen(scheme);
	if (strncasecmp(header, scheme, len) != 0 || header[len] != ' ')
		return NULL;
	return header + len + strspn(header + len, " ");
}

static void read_pass_word(struct pass_word *p, struct evhttp_request *req)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
	const char *bearer = header ? after(header, "Bearer") : NULL, *basic = header ? after(header, "Basic") : NULL;
	*p = (struct pass_word){0};
	if (bearer) {
		p->token = bearer;
		p->len = strcspn(bearer, " ");
	} else if (basic && !decode_basic(p, basic, strcspn(basic, " "))) {
		p->token = basic; /* malformed: matches no user */
		p->len = 0;
	}
}

static bool refuse(struct evhttp_request *req, int code, const char *why)
{
	if (code == HTTP_UNAUTHORIZED)
		evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
		                  "Bearer realm=\"heartwheel\"");
	hw_reply_error(req, code, why);
	return false;
}

static bool refuse_closed(struct evhttp_request *req, int64_t ms)
{
	char seconds[24];
	snprintf(seconds, sizeof(seconds), "%lld", (long long)(ms + 999) / 1000);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", seconds);
	return refuse(req, HTTP_TOO_MANY, "too many wrong API tokens came from this address: try again in a minute");
}

static bool reads(struct evhttp_request *req)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
}

static bool has_expired(const struct hw_account *who, int64_t wall_s)
{
	return who->expires_s && wall_s >= who->expires_s;
}

static bool is_allowed(const struct hw_account *who, struct evhttp_request *req)
{
	return who->role != HW_USER_ROLE_READ || reads(req);
}

/* The user whose token the request carries, or NULL. */
static const struct hw_account *find_user(const struct hw_access *a, const struct pass_word *p)
{
	return p->token ? hw_accounts_find(&a->accounts, p->name, p->name_len, p->token, p->len) : NULL;
}

bool hw_access_still_admits(const struct hw_access *a, struct evhttp_request *req, int64_t wall_s)
{
	struct pass_word p;
	read_pass_word(&p, req);
	const struct hw_account *who = find_user(a, &p);
	return who && !has_expired(who, wall_s) && is_allowed(who, req);
}

bool hw_access_may_write(const struct hw_access *a, struct evhttp_request *req)
{
	struct pass_word p;
	read_pass_word(&p, req);
	const struct hw_account *who = find_user(a, &p);
	return !who || who->role != HW_USER_ROLE_READ;
}

static bool admit(struct hw_access *a, struct evhttp_request *req, const struct hw_account *who)
{
	if (!is_allowed(who, req)) {
		char why[HW_ACCOUNT_NAME_MAX + 64];
		snprintf(why, sizeof(why), "%s may only read: this request needs the role 'operate'", who->name);
		a->stats.may_not++;
		return refuse(req, HTTP_FORBIDDEN, why);
	}
	a->stats.admitted++;
	evhttp_add_header(evhttp_request_get_input_headers(req), HW_USER_HEADER, who->name);
	return true;
}

/* Makes the key of the client's address. All clients with an unknown address share one key. */
static void read_address(const struct hw_access *a, struct evhttp_request *req, unsigned char from[HW_IP_BYTES])
{
	const char *forwarded = evhttp_find_header(evhttp_request_get_input_headers(req), "X-Forwarded-For");
	unsigned char client[HW_IP_BYTES] = {0};
	char *peer = NULL;
	ev_uint16_t port;
	evhttp_connection_get_peer(evhttp_request_get_connection(req), &peer, &port);
	if (!peer || !hw_proxies_client(&a->proxies, peer, forwarded, client))
		memset(client, 0, sizeof(client));
	hw_attempts_key(client, from);
}

static bool refuse_wrong(struct hw_access *a, struct evhttp_request *req, int64_t mono_ms)
{
	unsigned char from[HW_IP_BYTES];
	read_address(a, req, from);
	int64_t closed = hw_attempts_closed(&a->attempts, from, mono_ms);
	if (closed > 0) {
		a->stats.closed++;
		return refuse_closed(req, closed);
	}
	a->stats.wrong++;
	if (hw_attempts_wrong(&a->attempts, from, mono_ms)) {
		a->closings++;
		hw_ip_text(from, a->last_closed, sizeof(a->last_closed));
	}
	return refuse(req, HTTP_UNAUTHORIZED, "this API token belongs to no user");
}

bool hw_access_admit(struct hw_access *a, struct evhttp_request *req, int64_t mono_ms, int64_t wall_s)
{
	struct pass_word p;
	read_pass_word(&p, req);
	if (!p.token) {
		a->stats.without++;
		return refuse(req, HTTP_UNAUTHORIZED, "an API token is needed: Authorization: Bearer TOKEN");
	}
	const struct hw_account *who = find_user(a, &p);
	if (!who)
		return refuse_wrong(a, req, mono_ms);
	if (has_expired(who, wall_s)) {
		a->stats.without++;
		return refuse(req, HTTP_UNAUTHORIZED, "this API token has expired");
	}
	return admit(a, req, who);
}
