/* SPDX-License-Identifier: MIT */
/* Forwards the paths of our other daemons to their sockets. Answers 503 while such a daemon cannot be reached. */
#include <errno.h>

#include "control/parts.h"
#include "http/proxy.h"

#define PATIENCE_MS 60000 /* longer than the pause between two comments of a stream, and than any request may wait */

static void serve(struct hw_proxy *p, struct evhttp_request *req)
{
	if (p)
		hw_proxy_forward(p, req);
	else
		hw_reply_error(req, HTTP_NOTFOUND, "no such path");
}

void hw_serve_tasks(void *arg, struct evhttp_request *req, const char *rest)
{
	const struct hw_control *c = arg;
	(void)rest;
	serve(c->tasks, req);
}

void hw_serve_durable(void *arg, struct evhttp_request *req, const char *rest)
{
	const struct hw_control *c = arg;
	(void)rest;
	serve(c->durable, req);
}

void hw_serve_alert(void *arg, struct evhttp_request *req, const char *rest)
{
	const struct hw_control *c = arg;
	(void)rest;
	serve(c->alert, req);
}

int hw_control_proxy_to(struct hw_control *c, const char *tasks, const char *history, const char *alert)
{
	c->tasks = hw_proxy_new(c->base, "heartwheel-tasks", tasks, PATIENCE_MS);
	c->durable = hw_proxy_new(c->base, "heartwheel-history", history, PATIENCE_MS);
	c->alert = hw_proxy_new(c->base, "heartwheel-alert", alert, PATIENCE_MS);
	return c->tasks && c->durable && c->alert ? 0 : -ENOMEM;
}
