/* SPDX-License-Identifier: MIT */
/*
 * TLS for the clients of an address. A handshake takes the loop about a millisecond, so their rate is limited: at most
 * HW_TLS_A_SECOND in a second, and HW_TLS_AT_ONCE open at a time. With more, the oldest open handshake is ended. In a
 * flood of silent clients, the oldest handshake is one of the flood. A handshake that takes longer than
 * HW_TLS_PATIENCE_MS is also ended.
 */
#ifndef HW_HTTP_TLS_H
#define HW_HTTP_TLS_H

#include <stddef.h>
#include <stdint.h>

#define HW_TLS_AT_ONCE     20
#define HW_TLS_A_SECOND    50
#define HW_TLS_BURST       5 /* handshakes at once after a pause: as many as a browser opens */
#define HW_TLS_PATIENCE_MS 5000

struct bufferevent;
struct event_base;
struct hw_tls;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

struct hw_tls_stats {
	unsigned now;   /* handshakes under way */
	uint64_t done;  /* handshakes that were completed */
	uint64_t cut;   /* cut: too many open, or too slow */
	uint64_t waits; /* times when the next handshake was delayed */
};

/* Reads a certificate and its key. `cert`: PEM file with the certificate and its chain; `key`: its private key,
 * without a password. Returns 0 with *out for hw_tls_take() or hw_tls_discard(); -ENOMEM; or -EINVAL with the file
 * and the error in `why`. */
int hw_tls_read(struct ssl_ctx_st **out, const char *cert, const char *key, char *why, size_t cap);
void hw_tls_discard(struct ssl_ctx_st *files);
/* Creates the TLS of an address, which is usable after hw_tls_take(). Returns NULL if there is no memory. */
struct hw_tls *hw_tls_new(struct event_base *base);
/* Uses the files for new connections. */
void hw_tls_take(struct hw_tls *t, struct ssl_ctx_st *files);
/* Makes new connections on another loop. */
void hw_tls_rebase(struct hw_tls *t, struct event_base *base);
/* Call after all its connections are closed. */
void hw_tls_free(struct hw_tls *t);

/* Returns a connection that begins with a handshake. The server assigns its descriptor. NULL if there is no memory. */
struct bufferevent *hw_tls_accept(struct hw_tls *t, int64_t now_ms);
/* How many ms the next handshake must wait; 0: none. */
int64_t hw_tls_wait(struct hw_tls *t, int64_t now_ms);
/* Call once a second. */
void hw_tls_tick(struct hw_tls *t, int64_t now_ms);

const struct hw_tls_stats *hw_tls_stats(const struct hw_tls *t);

#endif
