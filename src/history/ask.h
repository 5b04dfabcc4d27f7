/* SPDX-License-Identifier: MIT */
/* Handlers of the requests that need SQL: they parse the query and pass the report to the query worker. */
#ifndef HW_HISTORY_ASK_H
#define HW_HISTORY_ASK_H

struct evhttp_request;

/* Handlers for hw_history_routes; `arg` is a struct hw_history_api. */
void hw_serve_transitions_of(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_outages(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_old_incidents(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_uptime(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_bars(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_counts(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_badge(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_old_events(void *arg, struct evhttp_request *req, const char *rest);

#endif
