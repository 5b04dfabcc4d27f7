/* SPDX-License-Identifier: MIT */
/* The requests that are answered out of SQL: their queries are read here, and the report goes to the desk. */
#ifndef HW_HISTORY_ASK_H
#define HW_HISTORY_ASK_H

struct evhttp_request;

/* Of hw_history_routes; `arg`: a struct hw_history_api. */
void hw_serve_transitions_of(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_outages(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_uptime(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_bars(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_counts(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_badge(void *arg, struct evhttp_request *req, const char *rest);
void hw_serve_old_events(void *arg, struct evhttp_request *req, const char *rest);

#endif
