/* SPDX-License-Identifier: MIT */
/* A request that is answered in a later turn of the loop. Meanwhile its client may disconnect, and the server's timeout
 * does not apply. */
#ifndef HW_HTTP_PENDING_H
#define HW_HTTP_PENDING_H

struct evhttp_request;

struct hw_pending {
	struct evhttp_request
		*req; /* the request; NULL: the client has disconnected, or hw_pending_take() has returned it */
	void (*on_gone)(void *arg); /* NULL: no callback */
	void *arg;
};

/* Begins to wait for the answer. `p` must live until hw_pending_take() or on_gone(), even if the server is closed
 * earlier. on_gone() may free `p`. */
void hw_pending_begin(struct hw_pending *p, struct evhttp_request *req, void (*on_gone)(void *arg), void *arg);
/* Returns the request, which the caller must answer now; or NULL. */
struct evhttp_request *hw_pending_take(struct hw_pending *p);

#endif
