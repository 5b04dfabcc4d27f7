/* SPDX-License-Identifier: MIT */
/* Replaces the HTML pages with which evhttp refuses requests by JSON. Refuses requests with Transfer-Encoding, because
 * evhttp does not limit the lines between their chunks. */
#ifndef HW_HTTP_REFUSAL_H
#define HW_HTTP_REFUSAL_H

struct bufferevent;

/* Watches a connection until it is freed. */
void hw_refusal_watch(struct bufferevent *bev);

#endif
