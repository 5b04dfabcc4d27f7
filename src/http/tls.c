/* SPDX-License-Identifier: MIT */
/*
 * See tls.h. Invariant: an open handshake is in the list from hw_tls_accept() until the handshake is complete or its
 * SSL is freed, whichever comes first. libssl reports both events.
 */
#include "http/tls.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "conf/file.h"

struct handshake {
	TAILQ_ENTRY(handshake) all;
	struct hw_tls *t;
	SSL *ssl;
	int64_t since_ms;
};

struct hw_tls {
	struct event_base *base; /* borrowed */
	SSL_CTX *ctx;
	int index;                   /* ex_data index of the struct handshake in an SSL */
	TAILQ_HEAD(, handshake) all; /* oldest first */
	struct hw_tls_stats stats;
	int64_t next_ms; /* limits the rate of handshakes (GCRA): when the next one is due at that rate */
};

static void done(struct handshake *h)
{
	TAILQ_REMOVE(&h->t->all, h, all);
	h->t->stats.now--;
	free(h);
}

/* libssl frees the SSL. */
static void on_free(void *ssl, void *handshake, CRYPTO_EX_DATA *data, int index, long n, void *arg)
{
	(void)ssl, (void)data, (void)index, (void)n, (void)arg;
	if (handshake)
		done(handshake);
}

static void on_info(const SSL *ssl, int where, int ret)
{
	(void)ret;
	if (!(where & SSL_CB_HANDSHAKE_DONE))
		return;
	const struct hw_tls *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct handshake *h = SSL_get_ex_data(ssl, t->index);
	if (!h)
		return;
	SSL_set_ex_data(h->ssl, t->index, NULL);
	h->t->stats.done++;
	done(h);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

/* Gives no password. Without this, OpenSSL would ask for a key's password at the terminal and wait. */
static int no_password(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return -1;
}

static int refuse(const char *what, const char *path, char *why, size_t cap)
{
	int rc = hw_file_check(path);
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;
	if (ERR_GET_REASON(code) == ERR_R_INTERRUPTED_OR_CANCELLED)
		reason = "has a password: name a file without a password";
	snprintf(why, cap, "%s %s: %s", what, path, rc ? hw_file_error(-rc) : reason ? reason : "not usable");
	ERR_clear_error();
	return -EINVAL;
}

static int load_files(SSL_CTX *ctx, const char *cert, const char *key, char *why, size_t cap)
{
	ERR_clear_error();
	if (hw_file_check(cert) || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return refuse("cannot use the certificate", cert, why, cap);
	if (hw_file_check(key) || SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return refuse("cannot use the private key", key, why, cap);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return refuse("the certificate does not belong to the private key", key, why, cap);
	return 0;
}

int hw_tls_read(SSL_CTX **out, const char *cert, const char *key, char *why, size_t cap)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	*out = NULL;
	snprintf(why, cap, "not enough memory");
	if (!ctx)
		return -ENOMEM;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	SSL_CTX_set_info_callback(ctx, on_info);
	int rc = load_files(ctx, cert, key, why, cap);
	if (rc)
		SSL_CTX_free(ctx);
	else
		*out = ctx;
	return rc;
}

void hw_tls_discard(SSL_CTX *files)
{
	SSL_CTX_free(files);
}

struct hw_tls *hw_tls_new(struct event_base *base)
{
	struct hw_tls *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	TAILQ_INIT(&t->all);
	t->base = base;
	t->index = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_free);
	if (t->index >= 0)
		return t;
	hw_tls_free(t);
	return NULL;
}

void hw_tls_take(struct hw_tls *t, SSL_CTX *files)
{
	SSL_CTX_set_app_data(files, t);
	SSL_CTX_free(t->ctx); /* open connections keep their reference */
	t->ctx = files;
}

void hw_tls_rebase(struct hw_tls *t, struct event_base *base)
{
	t->base = base;
}

void hw_tls_free(struct hw_tls *t)
{
	struct handshake *h;
	if (!t)
		return;
	while ((h = TAILQ_FIRST(&t->all))) { /* libevent frees the SSL of a connection later, in the loop; by then the
		                                list must not contain the handshake */
		SSL_set_ex_data(h->ssl, t->index, NULL);
		done(h);
	}
	SSL_CTX_free(t->ctx);
	free(t);
}

/* --- connections ------------------------------------------------------------------------------------------------ */

/* Shuts the connection down. The server then sees the end and closes it. */
static void cut(struct hw_tls *t, const struct handshake *h)
{
	t->stats.cut++;
	shutdown(SSL_get_fd(h->ssl), SHUT_RDWR);
}

/* Adds a handshake to `ssl`. False: no memory. */
static bool begin(struct hw_tls *t, SSL *ssl, int64_t now_ms)
{
	struct handshake *h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	if (SSL_set_ex_data(ssl, t->index, h) != 1) {
		free(h);
		return false;
	}
	*h = (struct handshake){.t = t, .ssl = ssl, .since_ms = now_ms};
	TAILQ_INSERT_TAIL(&t->all, h, all);
	t->stats.now++;
	return true;
}

/* Ends the oldest handshakes if there are more than the limit. An ended handshake stays in the list until the server
 * closes its connection, so it still counts. */
static void make_room(struct hw_tls *t)
{
	const struct handshake *h = TAILQ_FIRST(&t->all);
	for (unsigned n = HW_TLS_AT_ONCE; h && n <= t->stats.now; n++, h = TAILQ_NEXT(h, all))
		cut(t, h);
}

static void pay(struct hw_tls *t, int64_t now_ms)
{
	const int64_t each = 1000 / HW_TLS_A_SECOND, credit = now_ms - (HW_TLS_BURST - 1) * each;
	t->next_ms = (t->next_ms > credit ? t->next_ms : credit) + each;
}

struct bufferevent *hw_tls_accept(struct hw_tls *t, int64_t now_ms)
{
	SSL *ssl = SSL_new(t->ctx);
	make_room(t);
	pay(t, now_ms);
	if (!ssl || !begin(t, ssl, now_ms)) {
		SSL_free(ssl);
		return NULL;
	}
	struct bufferevent *bev =
		bufferevent_openssl_socket_new(t->base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!bev) {
		SSL_free(ssl);
		return NULL;
	}
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

int64_t hw_tls_wait(struct hw_tls *t, int64_t now_ms)
{
	if (t->next_ms <= now_ms)
		return 0;
	t->stats.waits++;
	return t->next_ms - now_ms;
}

void hw_tls_tick(struct hw_tls *t, int64_t now_ms)
{
	const struct handshake *h;
	TAILQ_FOREACH(h, &t->all, all)
	{
		if (now_ms - h->since_ms < HW_TLS_PATIENCE_MS)
			break;
		cut(t, h);
	}
}

const struct hw_tls_stats *hw_tls_stats(const struct hw_tls *t)
{
	return &t->stats;
}
