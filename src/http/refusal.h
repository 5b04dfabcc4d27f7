/* SPDX-License-Identifier: MIT */
/* Replaces the HTML page with which evhttp refuses a request by JSON. Also refuses each request with Transfer-Encoding,
 * because evhttp does not limit the lines between chunks. */
#ifndef HW_HTTP_REFUSAL_H
#define HW_HTTP_REFUSAL_H

struct bufferevent;

/* Watches a connection until it is freed. */
void hw_refusal_watch(struct bufferevent *bev);

#endif
