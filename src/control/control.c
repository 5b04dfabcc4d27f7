/* SPDX-License-Identifier: MIT */
/* The control API: its table of routes, and its parts. One answer is at most a page of 1000 devices. */
#include "control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>

#include "control/parts.h"

static void serve_reload(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	struct evbuffer *body = evbuffer_new();
	(void)rest;
	if (!body) {
		hw_reply_error(req, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	int code = c->ops->reload(c->arg, body);
	evbuffer_add(body, "\n", 1);
	hw_reply(req, code, body);
}

static const struct hw_http_route routes[] = {
	{EVHTTP_REQ_GET, "/v1/status", "", hw_serve_status},
	{EVHTTP_REQ_GET, "/v1/nodes", "", hw_serve_nodes},
	{EVHTTP_REQ_GET, "/v1/groups", "", hw_serve_groups},
	{EVHTTP_REQ_GET, "/v1/devices", "", hw_serve_list},
	{EVHTTP_REQ_GET, "/v1/devices/", "/events", hw_serve_device_events},
	{EVHTTP_REQ_GET, "/v1/devices/", "", hw_serve_device},
	{EVHTTP_REQ_DELETE, "/v1/devices/", "", hw_serve_forget},
	{EVHTTP_REQ_GET, "/v1/events", "", hw_serve_events},
	{EVHTTP_REQ_GET, "/v1/transitions", "", hw_serve_transitions},
	{EVHTTP_REQ_GET, "/v1/samples", "", hw_serve_samples},
	{EVHTTP_REQ_GET, "/v1/wheel", "", hw_serve_wheel},
	{EVHTTP_REQ_POST, "/v1/reload", "", serve_reload},
	{EVHTTP_REQ_GET, "/healthz", "", hw_serve_health},
	{EVHTTP_REQ_GET, "/readyz", "", hw_serve_ready},
	{EVHTTP_REQ_GET, "/metrics", "", hw_serve_metrics},
	{EVHTTP_REQ_GET, "/", "", hw_serve_web},
	{EVHTTP_REQ_GET, "/web/", "", hw_serve_web},
};

static const struct hw_http_table table = {routes, sizeof(routes) / sizeof(routes[0])};

static int make_parts(struct hw_control *c)
{
	c->pager = hw_pager_new(c);
	c->hub = hw_hub_new(c);
	c->history = hw_history_new();
	c->samples = hw_samples_new();
	c->asks = hw_asks_new(c);
	return c->pager && c->hub && c->history && c->samples && c->asks ? 0 : -ENOMEM;
}

int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	struct hw_control *c = calloc(1, sizeof(*c));
	*out = NULL;
	if (!c)
		return -ENOMEM;
	*c = (struct hw_control){.base = base, .monitor = m, .ops = ops, .arg = arg};
	hw_http_init(&c->http, base, &table, c);
	int rc = make_parts(c);
	if (rc == 0)
		rc = hw_http_listen(&c->http, path, group);
	if (rc < 0) {
		hw_control_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

int hw_control_listen(struct hw_control *c, const char *address, bool *local)
{
	return hw_http_listen_tcp(&c->http, address, local);
}

void hw_control_free(struct hw_control *c)
{
	if (!c)
		return;
	hw_http_fini(&c->http);
	hw_pager_free(c->pager);
	hw_hub_free(c->hub);
	hw_history_free(c->history);
	hw_samples_free(c->samples);
	hw_asks_free(c->asks);
	free(c);
}
