/* SPDX-License-Identifier: MIT */
/*
 * Sends messages to the receivers of heartwheel-alert. A message is a JSON text (state/message.h). Each type of
 * receiver renders the message in its own form. Each receiver gets one message at a time, in order. Exception:
 * pagerduty gets HW_INCIDENT_PARALLEL messages at a time, but never two about one incident. No receiver waits for
 * another receiver, and no call blocks the loop.
 *
 * A try lasts at most HW_SEND_TRY_MS. After no answer, or the status 408, 425, 429 or 5xx, the message is tried again:
 * after 1 s, then after twice the last wait, up to HW_SEND_WAIT_MAX_MS. A Retry-After of the server is obeyed up to
 * that limit. After another error status, or the third failure of a program, the message is given up. All tries of a
 * message have the same key RECEIVER-NUMBER, in the header Idempotency-Key, or for a program in the variable
 * IDEMPOTENCY_KEY.
 */
#ifndef HW_ALERT_SEND_H
#define HW_ALERT_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alert/send/settings.h"

#define HW_SEND_TRY_MS      15000
#define HW_SEND_WAIT_MAX_MS 300000
#define HW_SEND_MESSAGE_MAX 65536 /* bytes of a message's JSON */
#define HW_SEND_QUEUE       64    /* messages of a receiver that wait or are being sent */
#define HW_SEND_PAST        100   /* messages of a receiver whose results are shown */
#define HW_SEND_WORDS       256   /* bytes of a server's words, with the NUL */

struct event_base;
struct hw_json;
struct hw_senders;

enum hw_send_result { HW_SEND_WAITING, HW_SEND_SENT, HW_SEND_GIVEN_UP, HW_SEND_DROPPED, HW_SEND_RESULTS };

/* Returns "waiting", "sent", "given_up" or "dropped" (only by hw_senders_reset()). */
const char *hw_send_result_name(enum hw_send_result r);

/* Called from the loop only, never from a function of this header. */
struct hw_senders_calls {
	void *arg;
	/* Called before each try. Returns whether the lease was confirmed recently enough; if not, no try begins.
	 * Called again after a second, and by hw_senders_wake(). Must not call a function of this header. */
	bool (*try_allowed)(void *arg);
	/* Called when the message was accepted (SENT) or is given up. `words`: what the server wrote, made
	 * printable; "": nothing. May call hw_senders_take(), but not hw_senders_configure() or hw_senders_free(). */
	void (*done)(void *arg, const char *receiver, uint64_t number, enum hw_send_result result, const char *words);
	/* Called with a text for the log: a first failed try, a message that is given up, a receiver that works
	 * again. */
	void (*trouble)(void *arg, const char *receiver, const char *text);
};

/* Creates the senders, without receivers. `node` is shown in test messages; `node` and `calls` are copied. Returns
 * NULL if there is no memory. */
struct hw_senders *hw_senders_new(struct event_base *base, const struct hw_senders_calls *calls, const char *node);
/* Cancels what is being sent, without done(). `s` may be NULL. */
void hw_senders_free(struct hw_senders *s);

/*
 * Called at the start and at a reload. Reads the secret files, and copies `list`. A receiver is identified by its name.
 * The messages of a removed receiver are dropped without done(), and counted. If the type of a receiver has changed,
 * its messages are rendered for the new type at their next try. Returns 0; or -errno, with the reason in `why` and
 * nothing changed.
 */
int hw_senders_configure(struct hw_senders *s, const struct hw_receiver_settings *list, size_t n, char *why,
                         size_t cap);

/*
 * Sends a message whose `json` is stored already; the text is copied. Returns 0; -ENOENT: no such receiver; -EEXIST:
 * this number is waiting already; -EINVAL: the text is not a message; -ENOSPC: HW_SEND_QUEUE are waiting; -ENOMEM.
 */
int hw_senders_take(struct hw_senders *s, const char *receiver, uint64_t number, const char *json, size_t len);

/*
 * Adds an incident to an alertmanager receiver's alerts, which it gets each minute. Called after a start, for each
 * incident that was sent to this receiver and is open, or has closed within the last 15 minutes. `json`: the incident's
 * object as in a message ({"id":..,"kind":..}). Other types of receivers ignore the call. Incidents of new messages are
 * added without this call. Returns 0; -ENOENT; -EINVAL; -ENOMEM.
 */
int hw_senders_known(struct hw_senders *s, const char *receiver, const char *json, size_t len);

/* Sends a test message with one try. *number is its number in hw_senders_show(). Returns 0, -ENOENT, -EBUSY (a test is
 * waiting already) or -ENOMEM. There is no done(). */
int hw_senders_test(struct hw_senders *s, const char *receiver, uint64_t *number);

/*
 * Drops all messages without done(), and all alerts. Called when the lease is lost, and before the state is loaded
 * again. The new holder of the lease sends these messages, and later ones. If this instance gets the lease back, it
 * must not send an old message again after the later ones. Must not be called from done().
 */
void hw_senders_reset(struct hw_senders *s);

/* Called when try_allowed() may return true now. */
void hw_senders_wake(struct hw_senders *s);

/* Returns the number of messages that wait or are being sent, of all receivers. */
size_t hw_senders_waiting(const struct hw_senders *s);

/* Writes the member "receivers" for GET /v1/receivers: an array with each receiver's type, address without secrets,
 * counts, and its last HW_SEND_PAST messages. */
void hw_senders_show(const struct hw_senders *s, struct hw_json *j);
/* Like hw_senders_show(), for one receiver: writes the members to an open object. Returns 0 or -ENOENT. */
int hw_senders_show_one(const struct hw_senders *s, const char *receiver, struct hw_json *j);

/* For the metrics. */
struct hw_send_stats {
	const char *name, *type;
	uint64_t result[HW_SEND_RESULTS]; /* messages; WAITING: the present number */
	uint64_t retried;                 /* tries after the first */
	uint64_t failed_posts;            /* alertmanager: how many of the regular posts a server did not accept */
	int64_t waits_since_ms;           /* wall clock: when the oldest waiting message came (hw_senders_take()); 0:
	                                   * none waits */
};
size_t hw_senders_count(const struct hw_senders *s);
/* Describes receiver `i` < hw_senders_count(), in the order of the configuration. */
void hw_senders_stats(const struct hw_senders *s, size_t i, struct hw_send_stats *out);
/* Returns the number of messages that were dropped with their receivers. */
uint64_t hw_senders_dropped(const struct hw_senders *s);

#endif
