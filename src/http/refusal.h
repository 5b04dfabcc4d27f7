/* SPDX-License-Identifier: MIT */
/* evhttp refuses requests by itself, with a page of HTML: the client gets JSON instead. And a request with
 * Transfer-Encoding is refused, because evhttp does not bound one. */
#ifndef HW_HTTP_REFUSAL_H
#define HW_HTTP_REFUSAL_H

struct bufferevent;

/* Of one connection, for as long as it lasts. */
void hw_refusal_watch(struct bufferevent *bev);

#endif
