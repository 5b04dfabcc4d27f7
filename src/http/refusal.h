/* SPDX-License-Identifier: MIT */
/* evhttp refuses a request with an HTML page; this file sends JSON instead. It also refuses each request with
 * Transfer-Encoding, because evhttp does not limit the lines between chunks. */
#ifndef HW_HTTP_REFUSAL_H
#define HW_HTTP_REFUSAL_H

struct bufferevent;

/* Watches a connection until it is freed. */
void hw_refusal_watch(struct bufferevent *bev);

#endif
