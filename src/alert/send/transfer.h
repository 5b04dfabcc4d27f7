/* SPDX-License-Identifier: MIT */
/*
 * One try of a message: a POST to a web server, a mail to a mail server, or a run of a program. A try lasts at most
 * HW_SEND_TRY_MS. A server's answer has bounds: HW_MULTI_HEADERS_MAX for headers and trailers, HW_TRY_BODY_MAX for the
 * body. The first bytes of the body are shown as the server's words. Internal to src/alert/send.
 */
#ifndef HW_ALERT_SEND_TRANSFER_H
#define HW_ALERT_SEND_TRANSFER_H

#include <stdint.h>

#include "alert/send/secret.h"
#include "alert/send/send.h"
#include "http/multi.h"

/* Most bytes of an answer; at this length the transfer ends, and the answer's status counts. */
#define HW_TRY_BODY_MAX 65536

enum hw_try_end { HW_TRY_TAKEN, HW_TRY_AGAIN, HW_TRY_REFUSED };

struct hw_try_result {
	enum hw_try_end end;
	int code;                  /* HTTP status, reply code of SMTP, exit status; -1: none */
	int64_t retry_after_ms;    /* 0: the server named no time */
	char words[HW_SEND_WORDS]; /* the reason, or what a mail server has written about a refused recipient; "":
	                            * none */
};

/* Called from the loop, never from a start function. */
typedef void hw_try_done(void *arg, const struct hw_try_result *r);

struct hw_note;
struct hw_try; /* opaque */

/* For hw_multi_init(): the multi of all tries. */
void hw_try_on_done(void *arg, CURL *easy, CURLcode code);

struct hw_try_target {
	const struct hw_receiver_settings *conf;
	const struct hw_receiver_secrets *secrets;
	const char *url; /* of `len` bytes */
	size_t len;
	const char *path; /* appended to the URL; "" or "/api/v2/alerts" */
	const char *key;  /* Idempotency-Key; "": none */
};

/* Posts the note; `note` must live until done() or hw_try_free(). Returns NULL if there is no memory. */
struct hw_try *hw_try_post(struct hw_multi *m, const struct hw_try_target *t, const struct hw_note *note,
                           hw_try_done *done, void *arg);
/* Sends the note, which is a whole mail. */
struct hw_try *hw_try_mail(struct hw_multi *m, const struct hw_try_target *t, const struct hw_note *note,
                           hw_try_done *done, void *arg);
/* Cancels the transfer. Allowed within done(). `t` may be NULL. */
void hw_try_free(struct hw_try *t);

/* Makes a text printable and copies it to `words`: with escapes, without line ends, cut after a whole character. */
void hw_try_words(char words[HW_SEND_WORDS], const char *text, size_t len);

#endif
