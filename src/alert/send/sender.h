/* SPDX-License-Identifier: MIT */
/* One receiver with its messages. Internal to src/alert/send; send.h is the interface. */
#ifndef HW_ALERT_SEND_SENDER_H
#define HW_ALERT_SEND_SENDER_H

#include "alert/send/alerts.h"
#include "alert/send/past.h"
#include "alert/send/secret.h"
#include "alert/send/send.h"
#include "alert/send/transfer.h"
#include "http/multi.h"

#define HW_SEND_KEY (HW_CONF_NAME_MAX + 32) /* bytes of RECEIVER-NUMBER with its NUL */

struct event;
struct hw_exec;
struct hw_note;
struct hw_sender;

/* A job: a message until the receiver has accepted it, or until it is given up. */
struct hw_job {
	struct hw_sender *sender;
	struct hw_job *next;
	uint64_t number, past; /* past: number of its entry */
	char key[HW_SEND_KEY], incident[HW_INCIDENT_ID + 1];
	char *json; /* owned */
	size_t len;
	bool test, resolve;  /* resolve: it ends PagerDuty's incident of a test */
	bool running;        /* a try is under way */
	bool held;           /* waits for the lease */
	bool over;           /* is in `ended` of the sender */
	unsigned tries;      /* finished ones */
	int64_t taken_ms;    /* wall clock */
	struct event *timer; /* the time of the next try; during a try with several servers: until when this try
	                      * waits for the last servers */
	struct hw_note *note;
	struct hw_try *at[HW_RECEIVER_URLS];
	unsigned n_at, n_ended;
	struct hw_try_result best;
	struct hw_exec *program; /* from the first try on */
};

/* The regular posts of an alertmanager receiver to one of its servers. */
struct hw_poster {
	struct hw_sender *sender;
	struct hw_try *at; /* NULL: idle */
	struct hw_note *note;
	char after[HW_INCIDENT_ID + 1];
	bool full; /* the batch was full, so another one follows */
	bool failing;
};

struct hw_sender {
	struct hw_senders *all;
	struct hw_receiver_settings conf; /* owned; the name never changes */
	struct hw_receiver_secrets secrets;
	struct hw_job *jobs, *ended; /* in order; `ended` is freed by the next turn */
	size_t n_jobs;
	struct event *turn, *minute;
	struct hw_send_stats stats;
	struct hw_past past;
	bool failing;
	struct hw_alerts alerts;
	struct hw_poster poster[HW_RECEIVER_URLS];
};

struct hw_senders {
	struct event_base *base;
	struct hw_senders_calls calls;
	char *node; /* owned */
	struct hw_multi multi;
	struct hw_sender **at; /* in the order of the configuration */
	size_t n;
	uint64_t dropped;
};

int64_t hw_senders_wall_ms(void);
/* Formats a line for the log. */
void hw_sender_trouble(struct hw_sender *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* job.c */
/* Adds a message at the end. `json` is copied. Returns the job or NULL if there is no memory. */
struct hw_job *hw_job_add(struct hw_sender *s, const char *key, const char *json, size_t len,
                          const struct hw_send_message *m);
/* Starts what may start, and frees what has ended. */
void hw_jobs_turn(struct hw_sender *s);
/* Schedules hw_jobs_turn(). */
void hw_jobs_schedule(struct hw_sender *s);
/* Begins the next try of all messages that wait for a try at once. `held_alone`: only of the messages that wait for the
 * lease. */
void hw_jobs_retry(struct hw_sender *s, bool held_alone);
/* Drops all messages, and records this in their entries (past.h). Returns how many, without tests. */
size_t hw_jobs_drop(struct hw_sender *s);

/* posts.c */
/* Stops the running posts, and begins the next ones in a second. Only for alertmanager. */
void hw_posts_restart(struct hw_sender *s);
void hw_posts_stop(struct hw_sender *s);
void hw_posts_minute(struct hw_sender *s);

#endif
