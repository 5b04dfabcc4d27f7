/* SPDX-License-Identifier: MIT */
/* Replaces the follower of the event stream (src/redis/tail.h) for the wiring: requests a page that begins with the
 * last offset, waits for more, and reports a gap or another server. */
#include "redis/tail.h"

#include <stdlib.h>

#include "nodes_world.h"

#define WAIT_NS HW_NS_PER_S

struct hw_tail {
	struct nw_host *h;
	const struct hw_tail_ops *ops;
	void *arg;
	struct hw_stream_id place;
	bool started, busy, waits, moved, at_end, in_gap, up;
	int64_t waits_since;
	enum hw_tail_gap gap;
	int server;
	struct hw_tail_stats stats;
};

struct hw_tail *hw_tail_new(struct event_base *base, const struct hw_tail_conf *conf, const struct hw_tail_ops *ops,
                            void *arg)
{
	struct hw_tail *t = base->h->tail = nw_alloc(sizeof(*t));
	(void)conf;
	*t = (struct hw_tail){.h = base->h, .ops = ops, .arg = arg, .server = -1};
	return t;
}

void hw_tail_free(struct hw_tail *t)
{
	if (t)
		t->h->tail = NULL;
	free(t);
}

static void read_on(struct hw_tail *t)
{
	if (!t->started || t->busy)
		return;
	struct nw_range *g = nw_alloc(sizeof(*g));
	t->busy = true;
	t->waits = t->moved = false;
	*g = (struct nw_range){.after = t->place, .end = t->in_gap};
	nw_link_ask(t->h, NW_L_TAIL, (struct nw_msg){.what = NW_RANGE, .body = g});
}

static void find_end(struct hw_tail *t, enum hw_tail_gap gap)
{
	t->in_gap = true;
	t->gap = gap;
	read_on(t);
}

static void on_end(struct hw_tail *t, const struct nw_range *g)
{
	t->place = g->last;
	t->at_end = t->in_gap = false;
	t->busy = true;
	t->ops->on_gap(t->arg, t->gap, t->place, "there is a gap");
	t->busy = false;
	read_on(t);
}

static void wait_for_more(struct hw_tail *t)
{
	t->busy = t->waits = true;
	t->waits_since = t->h->w->t;
	nw_link_ask(t->h, NW_L_TAIL, (struct nw_msg){.what = NW_BLOCK, .number = t->place.ms, .mark = t->place.seq});
}

static struct hw_event event_of(const struct nw_world *w, const struct nw_entry *e, char id[16])
{
	bool child = nw_is_child(w, e->device);
	int len = snprintf(id, 16, "dev-%d", e->device);
	return (struct hw_event){.at = e->at,
	                         .id = id,
	                         .id_len = (size_t)len,
	                         .group = child ? "below" : "default",
	                         .group_len = child ? 5 : 7,
	                         .parents = child ? "dev-0" : NULL,
	                         .parents_len = child ? 5 : 0,
	                         .node = e->token.node,
	                         .node_len = strlen(e->token.node),
	                         .state = e->state,
	                         .reason = e->reason,
	                         .time_ms = e->time_ms,
	                         .last_seen_ms = e->last_seen_ms,
	                         .seq = e->seq,
	                         .epoch = e->token.epoch,
	                         .has_form = e->has_form,
	                         .form = e->form};
}

/* A lie: the reader hides the entry from the device's owner, which then learns only from the answer to its own write
 * that the store has a newer entry. */
static bool is_withheld(const struct hw_tail *t, const struct nw_entry *e)
{
	const struct nw_world *w = t->h->w;
	return w->lie == NW_LIE_NEWER && hw_nodes_owns(t->h->app->cluster->nodes, w->part[e->device]);
}

static void tell_page(struct hw_tail *t, const struct nw_range *g)
{
	struct hw_event events[NW_PAGE];
	char id[NW_PAGE][16];
	size_t n = 0;
	for (size_t i = 0; i < g->n; i++)
		if (!is_withheld(t, &g->entry[i]))
			events[n++] = event_of(t->h->w, &g->entry[i], id[i]);
	struct hw_event_page page = {.events = events, .n = n, .last = g->last, .ok = true, .more = g->more};
	if (t->h->w->lie == NW_LIE_STREAM)
		page.n = 0;
	for (size_t i = 0; i < page.n; i++)
		nw_trace(t->h->w, "%s: reads that %s is %s, seq %d", nw_names[t->h->name], events[i].id,
		         hw_state_name(events[i].state), (int)events[i].seq);
	t->ops->on_page(t->arg, &page);
}

static void on_page(struct hw_tail *t, const struct nw_range *g)
{
	if (g->gone) {
		find_end(t, HW_TAIL_LOST);
		return;
	}
	bool told = !g->more && g->n == 0 && t->at_end;
	t->busy = true;
	t->place = g->last;
	t->at_end = !g->more;
	t->stats.pages++;
	if (!told)
		tell_page(t, g);
	t->busy = false;
	if (g->more || t->moved)
		read_on(t);
	else
		wait_for_more(t);
}

void nw_tail_answer(struct nw_host *h, struct nw_msg *msg)
{
	struct hw_tail *t = h->tail;
	const struct nw_range *g = msg->body;
	if (msg->what == NW_BLOCK && !t->waits)
		return; /* it has been looked at since */
	t->busy = t->waits = false;
	if (msg->what == NW_BLOCK || t->moved)
		read_on(t);
	else if (g->end)
		on_end(t, g);
	else
		on_page(t, g);
}

void nw_tail_up(struct nw_host *h, int server)
{
	struct hw_tail *t = h->tail;
	bool other = t->server >= 0 && server != t->server;
	t->server = server;
	if (other && t->started) {
		t->gap = HW_TAIL_SERVER; /* this also replaces a gap that was found at the previous server */
		t->in_gap = true;
	}
	t->up = true;
	t->busy = true;
	t->ops->on_link(t->arg, true, "following");
	t->busy = false;
	read_on(t);
}

void nw_tail_lost(struct nw_host *h, const char *why)
{
	struct hw_tail *t = h->tail;
	t->up = t->busy = t->waits = t->moved = t->at_end = false;
	t->ops->on_link(t->arg, false, why);
}

void hw_tail_from(struct hw_tail *t, struct hw_stream_id place)
{
	t->place = place;
	t->started = true;
	t->at_end = t->in_gap = false;
	t->moved = true;
	if (t->up)
		read_on(t);
}

const char *hw_tail_server(const struct hw_tail *t)
{
	return nw_redis_run(t->in_gap && t->gap == HW_TAIL_SERVER ? -1 : t->server);
}

bool hw_tail_at_end(const struct hw_tail *t)
{
	return t->up && t->at_end;
}

const struct hw_tail_stats *hw_tail_stats(const struct hw_tail *t)
{
	return &t->stats;
}

struct hw_stream_id hw_tail_offset(const struct hw_tail *t)
{
	return t->place;
}

/* This world has no rights that could be denied. */
bool hw_tail_is_denied(const struct hw_tail *t)
{
	(void)t;
	return false;
}

/* XREAD waits no longer. */
void hw_tail_tick(struct hw_tail *t)
{
	if (!t->waits || t->h->w->t - t->waits_since < WAIT_NS)
		return;
	t->busy = t->waits = false;
	read_on(t);
}
