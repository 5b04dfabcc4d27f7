/* SPDX-License-Identifier: MIT */
/* The control API: its routes and its parts. An answer is at most a page of 1000 devices. */
#include "control/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/nodes.h"
#include "control/parts.h"
#include "http/json.h"
#include "http/proxy.h"

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
	{EVHTTP_REQ_GET, "/v1/overview", "", hw_serve_overview},
	{EVHTTP_REQ_GET, "/v1/nodes", "", hw_serve_nodes},
	{EVHTTP_REQ_GET, "/v1/groups", "", hw_serve_groups},
	{EVHTTP_REQ_GET, "/v1/devices", "", hw_serve_list},
	{EVHTTP_REQ_GET, "/v1/devices/", "/events", hw_serve_device_events},
	{EVHTTP_REQ_GET, "/v1/devices/", "", hw_serve_device},
	{EVHTTP_REQ_DELETE, "/v1/devices/", "", hw_serve_forget},
	{EVHTTP_REQ_PATCH, "/v1/devices/", "", hw_serve_device_patch},
	{EVHTTP_REQ_GET, "/v1/inventory", "", hw_serve_inventory},
	{EVHTTP_REQ_PUT, "/v1/inventory", "", hw_serve_inventory_put},
	{EVHTTP_REQ_DELETE, "/v1/inventory/", "", hw_serve_inventory_delete},
	{EVHTTP_REQ_GET, "/v1/events", "", hw_serve_events},
	{EVHTTP_REQ_GET, "/v1/transitions", "", hw_serve_transitions},
	{EVHTTP_REQ_GET, "/v1/samples", "", hw_serve_samples},
	{EVHTTP_REQ_GET, "/v1/wheel", "", hw_serve_wheel},
	{EVHTTP_REQ_POST, "/v1/reload", "", serve_reload},
	{EVHTTP_REQ_GET, "/v1/tasks", NULL, hw_serve_tasks},
	{EVHTTP_REQ_POST, "/v1/tasks", NULL, hw_serve_tasks},
	{EVHTTP_REQ_DELETE, "/v1/tasks", NULL, hw_serve_tasks},
	{EVHTTP_REQ_POST, "/v1/call", "", hw_serve_tasks},
	{EVHTTP_REQ_GET, "/v1/history", NULL, hw_serve_durable},
	{EVHTTP_REQ_GET, "/v1/incidents", NULL, hw_serve_alert},
	{EVHTTP_REQ_POST, "/v1/incidents", NULL, hw_serve_alert},
	{EVHTTP_REQ_DELETE, "/v1/incidents", NULL, hw_serve_alert},
	{EVHTTP_REQ_GET, "/v1/silences", NULL, hw_serve_alert},
	{EVHTTP_REQ_POST, "/v1/silences", NULL, hw_serve_alert},
	{EVHTTP_REQ_DELETE, "/v1/silences", NULL, hw_serve_alert},
	{EVHTTP_REQ_GET, "/v1/receivers", NULL, hw_serve_alert},
	{EVHTTP_REQ_POST, "/v1/receivers", NULL, hw_serve_alert},
	{EVHTTP_REQ_GET, "/healthz", "", hw_serve_health},
	{EVHTTP_REQ_GET, "/readyz", "", hw_serve_ready},
	{EVHTTP_REQ_GET, "/metrics", "", hw_serve_metrics},
	{EVHTTP_REQ_GET, "/", "", hw_serve_web},
	{EVHTTP_REQ_GET, "/web/", "", hw_serve_web},
};

/* The paths that a standby node answers itself or passes on. Only the owner can answer the other paths, because a
 * standby node has no data about the fleet. */
static hw_http_handler *const its_own[] = {hw_serve_status,  hw_serve_overview, hw_serve_nodes,
                                           serve_reload,     hw_serve_health,   hw_serve_ready,
                                           hw_serve_metrics, hw_serve_web,      hw_serve_alert};

static void refer(struct evhttp_request *req, const char *owner)
{
	char why[512] = "this node stands by and knows no node that owns the fleet now: try again";
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	if (!body)
		return;
	if (*owner)
		snprintf(why, sizeof(why), "this node stands by: send the request to node '%s', which owns the fleet",
		         owner);
	hw_json_text(&j, "error", why);
	hw_json_text(&j, "owner", *owner ? owner : NULL);
	hw_answer_end_as(req, HTTP_SERVUNAVAIL, &j, body);
}

/* The routes whose answers do not depend on what this node knows of the fleet. */
static hw_http_handler *const timeless[] = {hw_serve_tasks, hw_serve_durable, hw_serve_alert, hw_serve_web,
                                            hw_serve_health};

/* If this node's entry in Redis has lapsed, marks the answer with the time of the last renewal. Since then, other nodes
 * may own its devices. */
static void mark_as_of(const struct hw_control *c, struct evhttp_request *req, const struct hw_http_route *route)
{
	struct hw_control_nodes nodes;
	char ms[24];
	for (size_t i = 0; i < sizeof(timeless) / sizeof(*timeless); i++)
		if (route->serve == timeless[i])
			return;
	if (!hw_nodes_of(c, &nodes) || !hw_nodes_is_lapsed(&nodes))
		return;
	snprintf(ms, sizeof(ms), "%" PRId64, nodes.as_of_ms);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Heartwheel-As-Of", ms);
}

/* Whether the size of the body is within the limit of its route; only an import may have a large body. If not, this
 * function has answered the request. */
static bool is_small(struct evhttp_request *req, const struct hw_http_route *route)
{
	if (route->serve == hw_serve_inventory_put ||
	    evbuffer_get_length(evhttp_request_get_input_buffer(req)) <= HW_HTTP_BODY_MAX)
		return true;
	hw_reply_error(req, HTTP_ENTITYTOOLARGE, "the body is too large");
	return false;
}

static bool admits(void *arg, struct evhttp_request *req, const struct hw_http_route *route)
{
	const struct hw_control *c = arg;
	const char *owner = c->ops->standby ? c->ops->standby(c->arg) : NULL;
	if (!is_small(req, route))
		return false;
	for (size_t i = 0; owner && i < sizeof(its_own) / sizeof(*its_own); i++)
		if (route->serve == its_own[i])
			return true;
	if (owner)
		refer(req, owner);
	else
		mark_as_of(c, req, route);
	return !owner;
}

/* Paths that need no API token: health, and the files of the page, which are public. The page itself asks for a token.
 */
static const char *const open_paths[] = {"/healthz", "/", "/web/", NULL};

static const struct hw_http_table table = {routes, sizeof(routes) / sizeof(routes[0]), open_paths};

static int make_parts(struct hw_control *c)
{
	c->pager = hw_pager_new(c);
	c->hub = hw_hub_new(c);
	c->history = hw_history_new(c->ops && c->ops->events_after);
	c->samples = hw_samples_new();
	c->asks = hw_asks_new(c);
	c->importer = hw_importer_new(c);
	return c->pager && c->hub && c->history && c->samples && c->asks && c->importer ? 0 : -ENOMEM;
}

/* Creates the object, which does not listen yet. NULL if there is no memory. */
static struct hw_control *make(struct event_base *base, const struct hw_monitor *m, const struct hw_control_ops *ops,
                               void *arg)
{
	struct hw_control *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct hw_control){.base = base, .monitor = m, .ops = ops, .arg = arg};
	hw_http_init(&c->http, base, &table, c);
	c->http.body_max_local = HW_CONTROL_BODY_MAX;
	c->http.admits = admits;
	if (make_parts(c) == 0)
		return c;
	hw_control_free(c);
	return NULL;
}

/* Sets *out, or frees `c` on error. */
static int hand_out(struct hw_control **out, struct hw_control *c, int rc)
{
	*out = rc < 0 ? NULL : c;
	if (rc < 0)
		hw_control_free(c);
	return rc;
}

int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	struct hw_control *c = make(base, m, ops, arg);
	return hand_out(out, c, c ? hw_http_listen(&c->http, path, group) : -ENOMEM);
}

int hw_control_keep(struct hw_control *c, struct hw_http_kept *out)
{
	return hw_http_keep(&c->http, out);
}

int hw_control_resume(struct hw_control **out, struct event_base *base, struct hw_http_kept *kept,
                      const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	struct hw_control *c = make(base, m, ops, arg);
	return hand_out(out, c, c ? hw_http_resume(&c->http, kept) : -ENOMEM);
}

int hw_control_secure(struct hw_control *c, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg)
{
	return hw_http_secure(&c->http, s, wrong, arg);
}

int hw_control_plan(struct hw_control *c, const struct hw_http_safety *s, struct hw_http_plan *out,
                    hw_http_wrong *wrong, void *arg)
{
	return hw_http_plan(&c->http, s, out, wrong, arg);
}

static bool keeps(const void *arg, struct evhttp_request *req)
{
	return hw_http_still_admits(arg, req);
}

unsigned hw_close_unadmitted(struct hw_control *c)
{
	unsigned n = hw_hub_cut_unadmitted(c->hub);
	if (c->tasks)
		n += hw_proxy_break_off(c->tasks, keeps, &c->http);
	if (c->durable)
		n += hw_proxy_break_off(c->durable, keeps, &c->http);
	if (c->alert)
		n += hw_proxy_break_off(c->alert, keeps, &c->http);
	return n;
}

struct hw_control_taken hw_control_take(struct hw_control *c, struct hw_http_plan *p)
{
	struct hw_control_taken taken;
	hw_http_take(&c->http, p, taken.users, sizeof(taken.users));
	taken.closed = hw_close_unadmitted(c);
	return taken;
}

int hw_control_listen(struct hw_control *c, const char *address, bool *local)
{
	return hw_http_listen_tcp(&c->http, address, local);
}

struct hw_http_refused hw_control_refused(const struct hw_control *c)
{
	return hw_http_refused(&c->http);
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
	hw_importer_free(c->importer);
	hw_inventory_changes_free(c);
	hw_proxy_free(c->tasks);
	hw_proxy_free(c->durable);
	hw_proxy_free(c->alert);
	free(c);
}
