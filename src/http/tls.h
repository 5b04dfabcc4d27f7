/* SPDX-License-Identifier: MIT */
/*
 * TLS for who comes in over an address. A handshake costs the loop a millisecond or so, whoever asks for it: so they
 * are paced, at most HW_TLS_A_SECOND and HW_TLS_AT_ONCE under way. Of more the oldest is cut off, which a flood of
 * clients that say nothing fills with its own; one that takes longer than HW_TLS_PATIENCE_MS is cut off too.
 */
#ifndef HW_HTTP_TLS_H
#define HW_HTTP_TLS_H

#include <stddef.h>
#include <stdint.h>

#define HW_TLS_AT_ONCE     20
#define HW_TLS_A_SECOND    50
#define HW_TLS_BURST       5 /* at once, where none were of late: as many as a browser opens */
#define HW_TLS_PATIENCE_MS 5000

struct bufferevent;
struct event_base;
struct hw_tls;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

struct hw_tls_stats {
	unsigned now;   /* handshakes under way */
	uint64_t done;  /* handshakes that were completed */
	uint64_t cut;   /* cut off: too many, or too slow */
	uint64_t waits; /* times when the next one was kept waiting */
};

/* `cert`: a file with the certificate and what leads to the root's, PEM; `key`: its private key, without a password.
 * 0, and *out is for hw_tls_take() or hw_tls_discard(); or -ENOMEM, or -EINVAL with what is wrong, and in which file,
 * in `why`. */
int hw_tls_read(struct ssl_ctx_st **out, const char *cert, const char *key, char *why, size_t cap);
void hw_tls_discard(struct ssl_ctx_st *files);
/* Fit to be used once it has taken files. NULL without memory. */
struct hw_tls *hw_tls_new(struct event_base *base);
/* Takes what was read, for connections from now on. */
void hw_tls_take(struct hw_tls *t, struct ssl_ctx_st *files);
/* From now on it makes its connections on another loop. */
void hw_tls_rebase(struct hw_tls *t, struct event_base *base);
/* Once its connections are closed. */
void hw_tls_free(struct hw_tls *t);

/* A connection that begins with a handshake, for a server to give its descriptor to. NULL without memory. */
struct bufferevent *hw_tls_accept(struct hw_tls *t, int64_t now_ms);
/* How long the next one has to wait, ms; 0: not at all. */
int64_t hw_tls_wait(struct hw_tls *t, int64_t now_ms);
/* Each second. */
void hw_tls_tick(struct hw_tls *t, int64_t now_ms);

const struct hw_tls_stats *hw_tls_stats(const struct hw_tls *t);

#endif
