/* SPDX-License-Identifier: MIT */
/* What evhttp refuses by itself, with a page of HTML: said in JSON as everything else. */
#ifndef HW_HTTP_REFUSAL_H
#define HW_HTTP_REFUSAL_H

struct bufferevent;

/* Of one connection, for as long as it lasts. */
void hw_refusal_watch(struct bufferevent *bev);

#endif
