/* SPDX-License-Identifier: MIT */
/* A request that is answered on a later turn of the loop, and whose client may go meanwhile, or be silent for longer
 * than the server's time-out. */
#ifndef HW_HTTP_PENDING_H
#define HW_HTTP_PENDING_H

struct evhttp_request;

struct hw_pending {
	struct evhttp_request *req; /* NULL: the client has gone, or it was taken */
	void (*on_gone)(void *arg); /* NULL: nobody needs to know */
	void *arg;
};

/* In caller's storage, which must live until it was taken or on_gone() was called, the server's end included. on_gone()
 * may free it. */
void hw_pending_begin(struct hw_pending *p, struct evhttp_request *req, void (*on_gone)(void *arg), void *arg);
/* The request, to be answered now; or NULL. */
struct evhttp_request *hw_pending_take(struct hw_pending *p);

#endif
