/* SPDX-License-Identifier: MIT */
/* Shared by the files of the API. api.c has the table of routes. */
#ifndef HW_ALERT_API_PARTS_H
#define HW_ALERT_API_PARTS_H

#include "alert/api/api.h"
#include "alert/app.h"
#include "alert/state/message.h"
#include "heartwheel/json.h"
#include "http/json.h"
#include "http/pending.h"
#include "http/reply.h"

#define HW_ALERT_WAITS_MAX 1000 /* requests that wait for a commit, or for Redis */

struct hw_alert_feed;
struct hw_alert_wait;

struct hw_alert_api {
	struct hw_alert_app *app; /* borrowed */
	struct hw_alert_feed *feed;
	struct hw_alert_wait *waits;
	unsigned n_waits;
};

/* Each handler gets a struct hw_alert_app as `arg`. */
hw_http_handler hw_serve_incidents, hw_serve_incident, hw_serve_ack, hw_serve_unack; /* incidents.c, changes.c */
hw_http_handler hw_serve_silences, hw_serve_silence_post, hw_serve_silence_delete;   /* changes.c */
hw_http_handler hw_serve_incident_events;                                            /* feed.c */

/* Returns true if this instance works and Redis can be reached. Otherwise answers 503, with the name of the node
 * that holds the lease, and returns false. */
bool hw_alert_api_works(struct hw_alert_app *a, struct evhttp_request *req);

/* Answers the request when a commit that contains all changes so far is confirmed: with status `code` and {"id":ID},
 * or without a body if `id` is "". */
void hw_alert_api_wait(struct hw_alert_app *a, struct evhttp_request *req, int code, const char *id);

#define HW_ALERT_NO_INCIDENT "there is no such incident"
#define HW_ALERT_CLOSED      "the incident is closed"
/* Answers a request about an incident that is not open: 409 if it is closed, else 404. */
void hw_alert_api_not_open(struct hw_alert_app *a, struct evhttp_request *req, const char *id);

/* A text or a flag in the body of a request, which must be a JSON object. */
struct hw_alert_field {
	const char *name;
	char *text; /* of `cap` bytes; NULL: not a text */
	size_t cap;
	bool *flag;  /* NULL: not a flag */
	int64_t *ms; /* a time in ms; NULL: not a time */
};
/* Reads the body of a request into fields. Returns false after it has answered 400. A member that is no field is an
 * error. An empty body has no member. */
bool hw_alert_api_read(struct evhttp_request *req, const struct hw_alert_field *fields, size_t n);

/* feed.c */
struct hw_alert_feed *hw_alert_feed_new(struct hw_alert_app *app);
void hw_alert_feed_free(struct hw_alert_feed *f);
/* hw_alert_feed_poll(): called after a commit; clients that have all entries check for new ones.
 * hw_alert_feed_tick(): called each second. */
void hw_alert_feed_poll(struct hw_alert_feed *f);
void hw_alert_feed_tick(struct hw_alert_feed *f);
unsigned hw_alert_feed_clients(const struct hw_alert_feed *f);

#endif
