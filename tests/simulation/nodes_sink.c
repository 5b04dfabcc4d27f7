/* SPDX-License-Identifier: MIT */
/*
 * Replaces the sink, the loader and the sight record of src/redis (src/redis/redis.h) for the wiring: the ring of
 * transitions; P; refreshes, which the store answers by requesting a snapshot if its data differ; the sweep; loads; and
 * the sight record, by which an emptied store is found. Confirmed transitions are kept for a while, and are sent before
 * all others when the link is back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "nodes_world.h"
#include "redis/redis.h"
#include "redis/tail.h"

#define EDGE_CALLS 2
#define RECORDS    64
#define KEPT       512
#define KEPT_NS    (60 * HW_NS_PER_S)
#define FIRST      (UINT64_C(1) << 32) /* lesser places are those of transitions that are sent again */

struct nw_ringed {
	struct hw_transition t;
	uint64_t epoch;
	int64_t queued_ns; /* when the item was queued; of a transition that is kept: when it was confirmed */
	bool again;        /* the transition was confirmed before */
};

struct nw_looking {
	hw_redis_fenced *fn;
	void *arg;
	struct nw_looking *next;
};

struct hw_redis {
	struct nw_host *h;
	struct hw_redis_conf conf;
	const struct hw_monitor *m;
	const struct hw_redis_ops *ops;
	void *arg;
	bool up, was_up;
	struct hw_mono down_since;
	int64_t started_wall_ms;

	struct nw_ringed *ring; /* owned; the place of an item is a number that only grows */
	size_t cap;
	uint64_t head, sent, tail;
	unsigned flying[RECORDS];       /* for each device: the number of its transitions that are under way */
	unsigned calls[NW_REFRESH + 1]; /* for each kind: the number of calls under way */
	bool refresh[RECORDS], rewrite[RECORDS];
	bool sweep, comparing;
	uint64_t published[HW_PARTITIONS]; /* P as it was written last; 0: not in this run */

	struct nw_ringed kept[KEPT];
	size_t n_kept;

	enum { NONE, WANTED, STATES, OUTBOX, DONE, AGAIN } stage;
	bool next, loaded; /* loaded: a load has ended at least once */
	int pages;
	unsigned reads; /* requests for one device that are under way */
	uint64_t devices;

	struct {
		bool read, written, left, doubted, in_flight;
		int64_t old_ms, saw_ms, sent_ms, written_ms;
	} mark;
	struct nw_looking *looking; /* owned, in the order of the requests */
	struct hw_redis_stats stats;
};

/* --- devices ----------------------------------------------------------------------------------------------------- */

int nw_device_of(const char *id, size_t len)
{
	int n = 0;
	for (size_t k = 4; k < len; k++)
		n = n * 10 + (id[k] - '0');
	return n;
}

static struct hw_device *device_of(const struct hw_redis *r, struct hw_ref ref)
{
	return hw_registry_get(hw_monitor_registry(r->m), ref);
}

static int number_of(const struct hw_device *d)
{
	struct hw_id id = hw_device_id(d);
	return nw_device_of(id.text, id.len);
}

/* Whether this node owns the device's partition (with `epoch`, if that is not 0). If so, writes the partition's
 * token to *token. */
static bool owns(const struct hw_redis *r, int device, uint64_t epoch, struct hw_fencing_token *token)
{
	struct hw_ownership o;
	char id[16];
	int len = snprintf(id, sizeof(id), "dev-%d", device);
	if (!r->ops->owner(r->arg, id, (size_t)len, &o) || (epoch && epoch != o.token.epoch))
		return false;
	*token = o.token;
	return true;
}

/* Returns what the store must contain about the device. */
static struct nw_hash picture(const struct hw_redis *r, const struct hw_device *d)
{
	struct nw_hash h = {.there = true,
	                    .once = d->flags & HW_FLAG_ONCE,
	                    .state = hw_device_state(d),
	                    .reason = hw_device_reason(d),
	                    .seq = d->seq,
	                    .since_ms = d->since_ms,
	                    .last_seen_ms = hw_device_last_seen_ms(d, nw_host_now(r->h->w, r->h)),
	                    .own_timeout_ms = hw_device_own_timeout_ms(d),
	                    .form = hw_monitor_form(r->m, d)};
	h.entry_has_form = h.form != hw_monitor_group_of(r->m, d)->form_hash;
	hw_monitor_gaps(r->m, d, h.gaps);
	return h;
}

static void drop(struct hw_redis *r, struct hw_ref ref, uint64_t seq)
{
	r->ops->on_dropped(r->arg, ref, seq);
}

/* --- the ring ---------------------------------------------------------------------------------------------------- */

static struct nw_ringed *at(const struct hw_redis *r, uint64_t place)
{
	return &r->ring[place % r->cap];
}

static void grow(struct hw_redis *r)
{
	size_t cap = r->cap ? 2 * r->cap : 64;
	struct nw_ringed *ring = nw_alloc(cap * sizeof(*ring));
	for (uint64_t k = r->head; k != r->tail; k++)
		ring[k % cap] = *at(r, k);
	free(r->ring);
	r->ring = ring;
	r->cap = cap;
}

static void push(struct hw_redis *r, const struct nw_ringed *e)
{
	if (r->tail - r->head == r->cap)
		grow(r);
	*at(r, r->tail) = *e;
	r->tail++;
}

bool hw_redis_transition(struct hw_redis *r, struct hw_now now, const struct hw_transition *t)
{
	const struct hw_device *d = device_of(r, t->device);
	struct hw_fencing_token token;
	if (t->state == HW_STATE_OFFLINE && d)
		nw_oracle_offline(r->h->w, r->h, number_of(d), t->reason, t->delay_ns >= 0);
	if (t->state == HW_STATE_ONLINE && d)
		nw_oracle_online(r->h->w, r->h, number_of(d));
	if (!d || !owns(r, number_of(d), 0, &token))
		return false;
	nw_trace(r->h->w, "%s: dev-%d is %s (%s), seq %d of (%d %s)", nw_names[r->h->name], number_of(d),
	         hw_state_name(t->state), hw_reason_name(t->reason), (int)t->seq, (int)token.epoch, token.node);
	push(r, &(struct nw_ringed){.t = *t, .epoch = token.epoch, .queued_ns = now.mono.ns});
	return true;
}

/* No device of this world is forgotten while its node could clear its status. */
void hw_redis_cleared(struct hw_redis *r, const char *id, size_t id_len)
{
	(void)r, (void)id, (void)id_len;
}

static void send_published(struct hw_redis *r, unsigned p)
{
	struct nw_published *b = nw_alloc(sizeof(*b));
	*b = (struct nw_published){.partition = p, .p = r->published[p], .token = r->ops->token(r->arg, p)};
	nw_trace(r->h->w, "%s: P of %u is %" PRIu64 " of (%d %s)%s", nw_names[r->h->name], p, b->p, (int)b->token.epoch,
	         b->token.node, r->up ? "" : ", without Redis");
	if (b->token.epoch > 0 && r->up)
		nw_link_ask(r->h, NW_L_SINK, (struct nw_msg){.what = NW_PUBLISHED, .body = b});
	else
		free(b);
}

void hw_redis_write_published(struct hw_redis *r, unsigned partition, uint64_t p)
{
	r->published[partition] = p;
	send_published(r, partition);
}

bool hw_redis_published_idle(const struct hw_redis *r)
{
	(void)r;
	return true;
}

int hw_redis_read_published(struct hw_redis *r)
{
	if (!r->up)
		return -ENOTCONN;
	nw_link_ask(r->h, NW_L_SINK,
	            (struct nw_msg){.what = NW_PUBLISHED_ALL, .body = nw_alloc(sizeof(struct nw_published_all))});
	return 0;
}

/* After a reconnect, or when Redis was emptied. */
static void send_all_published(struct hw_redis *r)
{
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		if (r->published[p])
			send_published(r, p);
}

void hw_redis_refresh(struct hw_redis *r, struct hw_ref device)
{
	r->refresh[device.index % RECORDS] = true;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static struct nw_call *call_new(enum nw_item_kind kind)
{
	struct nw_call *c = nw_alloc(sizeof(*c));
	c->kind = kind;
	return c;
}

/* Returns false if the write must wait for an answer. */
static bool add_pending_write(struct hw_redis *r, struct nw_call *c, uint64_t place)
{
	const struct nw_ringed *e = at(r, place);
	const struct hw_device *d = device_of(r, e->t.device);
	struct nw_item *i = &c->item[c->n];
	if (!d)
		return true;
	*i = (struct nw_item){
		.kind = NW_EDGE, .device = number_of(d), .ref = e->t.device, .to = picture(r, d), .again = e->again};
	i->to.seq = e->t.seq;
	if (!owns(r, i->device, e->epoch, &i->to.token)) {
		drop(r, e->t.device, e->t.seq);
		return true;
	}
	if (r->flying[e->t.device.index])
		return false;
	i->to.state = e->t.state;
	i->to.reason = e->t.reason;
	i->to.since_ms = e->t.time_ms;
	i->to.last_seen_ms = e->t.last_seen_ms;
	c->n++;
	return true;
}

static bool send_call(struct hw_redis *r, struct nw_call *c)
{
	r->calls[c->kind]++;
	for (size_t k = 0; k < c->n; k++)
		if (c->item[k].kind == NW_EDGE)
			r->flying[c->item[k].ref.index]++;
	return nw_link_ask(r->h, NW_L_SINK, (struct nw_msg){.what = NW_CALL, .body = c});
}

/* Called when all items before this place are confirmed: removes them, and keeps their transitions for a while. */
static void confirm(struct hw_redis *r, uint64_t place)
{
	int64_t now = nw_host_now(r->h->w, r->h).mono.ns;
	for (; r->head != place; r->head++) {
		const struct nw_ringed *e = at(r, r->head);
		if (r->n_kept == KEPT)
			memmove(r->kept, r->kept + 1, --r->n_kept * sizeof(*r->kept));
		r->kept[r->n_kept] = *e;
		r->kept[r->n_kept++].queued_ns = now;
	}
}

static bool call_edges(struct hw_redis *r)
{
	uint64_t place = r->sent;
	if (place == r->tail || r->calls[NW_EDGE] >= EDGE_CALLS)
		return false;
	struct nw_call *c = call_new(NW_EDGE);
	while (place != r->tail && c->n < NW_ITEMS && add_pending_write(r, c, place))
		place++;
	c->end = place;
	bool moved = place != r->sent;
	r->sent = place;
	if (c->n) {
		send_call(r, c);
	} else {
		free(c);
		if (r->calls[NW_EDGE] == 0)
			confirm(r, place);
	}
	return moved;
}

static bool call_dues(struct hw_redis *r, enum nw_item_kind kind)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	bool *due = kind == NW_REFRESH ? r->refresh : r->rewrite;
	struct nw_call *c = call_new(kind);
	for (uint32_t k = 0; k < RECORDS && k < hw_registry_bound(devices) && c->n < NW_ITEMS; k++) {
		const struct hw_device *d = due[k] ? hw_registry_at(devices, k) : NULL;
		if (due[k] && kind == NW_REWRITE && r->flying[k])
			continue;
		due[k] = false;
		if (!d || hw_device_state(d) == HW_STATE_PROVISIONAL || hw_device_state(d) == HW_STATE_FORGOTTEN)
			continue;
		struct nw_item i = {.kind = kind, .device = number_of(d), .ref = hw_registry_ref(devices, k)};
		i.to = picture(r, d);
		if (owns(r, i.device, 0, &i.to.token))
			c->item[c->n++] = i;
		else
			drop(r, i.ref, d->seq);
	}
	if (c->n)
		return send_call(r, c);
	free(c);
	return false;
}

static bool has_dues(const struct hw_redis *r)
{
	for (uint32_t k = 0; k < RECORDS; k++)
		if (r->refresh[k] || r->rewrite[k])
			return true;
	return false;
}

static bool load_pending(const struct hw_redis *r)
{
	return r->stage == WANTED || r->stage == STATES || r->stage == OUTBOX || r->next;
}

static void sweep(struct hw_redis *r)
{
	const struct hw_registry *devices = hw_monitor_registry(r->m);
	if (!r->sweep || !r->up || load_pending(r))
		return;
	r->sweep = false;
	r->comparing = true;
	for (uint32_t k = 0; k < hw_registry_bound(devices) && k < RECORDS; k++) {
		const struct hw_device *d = hw_registry_at(devices, k);
		if (d && (hw_device_state(d) == HW_STATE_ONLINE || hw_device_state(d) == HW_STATE_OFFLINE))
			r->refresh[k] = true;
	}
}

static void begin_load(struct hw_redis *r);

void nw_sink_pump(struct nw_host *h)
{
	struct hw_redis *r = h->redis;
	if (!r || !r->up)
		return;
	if (r->stage == WANTED)
		begin_load(r);
	while (call_edges(r))
		;
	sweep(r);
	if (r->calls[NW_REFRESH] == 0)
		call_dues(r, NW_REFRESH);
	if (r->calls[NW_REWRITE] == 0 && r->sent == r->tail)
		call_dues(r, NW_REWRITE);
	r->comparing = r->sweep || (r->comparing && has_dues(r));
}

bool hw_redis_is_comparing(const struct hw_redis *r)
{
	return !r->up || r->sweep || r->comparing || r->stage == AGAIN;
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

static void newer(struct hw_redis *r, const struct nw_item *i)
{
	const struct hw_device *d = device_of(r, i->ref);
	if (!d || i->stored < d->seq || r->h->w->lie == NW_LIE_NEWER)
		return;
	if (i->stored == d->seq && i->stored != i->to.seq)
		r->ops->on_confirmed(r->arg, i->ref, i->stored);
	else
		r->ops->on_newer(r->arg, i->ref, i->stored);
}

static void answer_item(struct hw_redis *r, const struct nw_item *i)
{
	if (i->result == NW_FENCED) {
		r->stats.fenced++;
		r->ops->on_fenced(r->arg, r->h->w->part[i->device], &i->newer);
		drop(r, i->ref, i->to.seq);
	} else if (i->result == NW_ANEW) {
		if (device_of(r, i->ref))
			r->rewrite[i->ref.index] = true;
	} else if (i->result == NW_NEWER) {
		if (i->kind == NW_EDGE)
			nw_oracle_surpassed(r->h->w, r->h, i);
		newer(r, i);
	} else {
		if (i->kind == NW_EDGE)
			nw_oracle_confirms(r->h->w, r->h, i);
		r->ops->on_confirmed(r->arg, i->ref, i->to.seq);
	}
}

static void answer_call(struct hw_redis *r, const struct nw_call *c)
{
	r->calls[c->kind]--;
	for (size_t k = 0; k < c->n; k++)
		if (c->item[k].kind == NW_EDGE)
			r->flying[c->item[k].ref.index]--;
	for (size_t k = 0; k < c->n; k++)
		answer_item(r, &c->item[k]);
	if (c->kind == NW_EDGE)
		confirm(r, r->calls[NW_EDGE] ? c->end : r->sent);
}

/* --- loading ----------------------------------------------------------------------------------------------------- */

static void ask(struct hw_redis *r, enum nw_what what, uint64_t from)
{
	nw_link_ask(r->h, NW_L_SINK,
	            (struct nw_msg){.what = what, .number = from, .body = nw_alloc(sizeof(struct nw_hashes))});
}

static void begin_load(struct hw_redis *r)
{
	r->pages = 0;
	r->devices = 0;
	if (r->stage == DONE) {
		r->stage = AGAIN;
		ask(r, NW_OUTBOX, 0);
		return;
	}
	r->stage = STATES;
	for (uint64_t from = 0; from < NW_DEVICES; from += NW_HASHES, r->pages++)
		ask(r, NW_LOAD, from);
}

void hw_redis_load(struct hw_redis *r)
{
	r->next = r->stage == AGAIN;
	if (!r->next)
		r->stage = WANTED;
}

/* Only for standby, which this world does not have. */
void hw_redis_load_late(struct hw_redis *r)
{
	r->stage = WANTED;
}

static void take_hash(struct hw_redis *r, const struct nw_hash *h, int device)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "dev-%d", device);
	int64_t down_ms = r->started_wall_ms - r->mark.old_ms;
	struct hw_stored s = {.id = id,
	                      .id_len = (size_t)len,
	                      .state = h->state,
	                      .reason = h->reason,
	                      .since_ms = h->since_ms,
	                      .last_seen_ms = h->last_seen_ms,
	                      .own_timeout_ms = h->own_timeout_ms,
	                      .down_ms = r->mark.old_ms && down_ms > 0 ? down_ms : 0,
	                      .group = nw_is_child(r->h->w, device) ? "below" : "default",
	                      .parents = nw_is_child(r->h->w, device) ? "dev-0" : NULL,
	                      .gaps = *h->gaps ? h->gaps : NULL,
	                      .form = h->form,
	                      .source = HW_SOURCE_MQTT,
	                      .seq = h->seq,
	                      .once = h->once};
	r->devices++;
	if (!r->loaded || r->h->w->lie != NW_LIE_REREAD)
		r->ops->on_device(r->arg, &s);
}

/* The outbox is empty: see hw_redis_cleared(). */
static void take_outbox(struct hw_redis *r)
{
	bool again = r->stage == AGAIN;
	r->stage = DONE;
	if (again && r->next)
		hw_redis_load(r);
	if (again)
		return;
	r->loaded = true;
	r->ops->on_loaded(r->arg, r->devices, 0, "", true);
	r->sweep = r->h->w->lie != NW_LIE_COMPARE;
}

static void answer_load(struct hw_redis *r, const struct nw_msg *msg)
{
	const struct nw_hashes *page = msg->body;
	if (msg->what == NW_DEVICE) {
		r->reads--;
		if (page->hash[0].there)
			take_hash(r, &page->hash[0], (int)msg->number);
		return;
	}
	if (msg->what == NW_OUTBOX) {
		take_outbox(r);
		return;
	}
	for (int k = 0; k < NW_HASHES; k++)
		if (page->hash[k].there)
			take_hash(r, &page->hash[k], (int)msg->number + k);
	if (--r->pages == 0) {
		r->stage = OUTBOX;
		ask(r, NW_OUTBOX, 0);
	}
}

int hw_redis_read_device(struct hw_redis *r, const char *id, size_t id_len, bool again)
{
	if (!again)
		abort(); /* no device is known only from other nodes' transitions */
	if (!r->up)
		return -ENOTCONN;
	ask(r, NW_DEVICE, (uint64_t)nw_device_of(id, id_len));
	r->reads++;
	r->h->w->count.reads++;
	return 0;
}

bool hw_redis_is_reading_again(const struct hw_redis *r)
{
	return r->reads > 0;
}

/* --- the mark ---------------------------------------------------------------------------------------------------- */

static void compare(struct hw_redis *r, const struct nw_mark *found)
{
	if (!r->mark.written && (!r->mark.left || found->there))
		return;
	if (!found->there) {
		r->mark.written = r->mark.left = false;
		send_all_published(r);
		r->ops->on_emptied(r->arg);
	} else if (found->run == r->conf.run_id && found->ms >= r->mark.written_ms) {
		return;
	} else {
		r->mark.doubted = true;
	}
	r->sweep = r->h->w->lie != NW_LIE_COMPARE;
}

static void put(struct hw_redis *r)
{
	if (!r->up || r->mark.in_flight)
		return;
	struct nw_mark *m = nw_alloc(sizeof(*m));
	*m = (struct nw_mark){.there = true, .run = r->conf.run_id, .ms = r->mark.saw_ms};
	m->anew = !hw_redis_has_sight_record(r) || r->h->w->lie == NW_LIE_MARK;
	r->mark.in_flight = true;
	r->mark.sent_ms = r->mark.saw_ms;
	nw_link_ask(r->h, NW_L_SINK, (struct nw_msg){.what = NW_MARK, .body = m});
}

void hw_redis_seen(struct hw_redis *r, struct hw_now now, bool blind)
{
	if (!blind)
		r->mark.saw_ms = now.wall_ms;
	put(r);
}

static void on_marked(struct hw_redis *r, const struct nw_mark *found)
{
	r->mark.in_flight = false;
	if (!found->left || !found->there)
		compare(r, found);
	if (!found->left && !found->there && !found->anew) {
		put(r);
		return;
	}
	r->mark.doubted |= found->left;
	if (!found->left && r->mark.left && !r->mark.written_ms)
		r->mark.doubted = false;
	r->mark.written = !found->left;
	r->mark.left = found->left && found->there;
	r->mark.written_ms = r->mark.sent_ms;
}

bool hw_redis_has_sight_record(const struct hw_redis *r)
{
	return r->mark.written || r->mark.left;
}

bool hw_redis_doubts(struct hw_redis *r)
{
	bool doubted = r->mark.doubted && r->h->w->lie != NW_LIE_DOUBT;
	r->mark.doubted = false;
	return doubted;
}

int hw_redis_fence(struct hw_redis *r, hw_redis_fenced *fn, void *arg)
{
	struct nw_looking *l, **end = &r->looking;
	if (!r->up)
		return -ENOTCONN;
	l = nw_alloc(sizeof(*l));
	*l = (struct nw_looking){.fn = fn, .arg = arg};
	while (*end)
		end = &(*end)->next;
	*end = l;
	nw_link_ask(r->h, NW_L_SINK, (struct nw_msg){.what = NW_LOOK, .body = nw_alloc(sizeof(struct nw_mark))});
	return 0;
}

static void looked(struct hw_redis *r, bool known, bool marked)
{
	struct nw_looking l = *r->looking;
	free(r->looking);
	r->looking = l.next;
	l.fn(l.arg, known, marked);
}

const char *hw_redis_server(const struct hw_redis *r)
{
	if (r->h->w->lie == NW_LIE_LINKS)
		return r->h->app->cluster->redis.server;
	if (r->h->w->lie == NW_LIE_WHO)
		return hw_tail_server(r->h->tail);
	return r->up ? nw_redis_run(r->h->link[NW_L_SINK].instance) : "";
}

/* --- up and down ------------------------------------------------------------------------------------------------- */

/* Sends confirmed transitions again, before all pending ones. */
static void send_again(struct hw_redis *r)
{
	int64_t now = nw_host_now(r->h->w, r->h).mono.ns;
	while (r->n_kept && now - r->kept[r->n_kept - 1].queued_ns <= KEPT_NS) {
		struct nw_ringed e = r->kept[--r->n_kept];
		e.queued_ns = now;
		e.again = true;
		if (r->h->w->lie == NW_LIE_KEPT)
			continue;
		if (r->tail - r->head == r->cap)
			grow(r);
		*at(r, --r->head) = e;
	}
	r->sent = r->head;
	r->n_kept = 0;
}

void nw_sink_up(struct nw_host *h, struct nw_msg *hello)
{
	struct hw_redis *r = h->redis;
	const struct nw_mark *found = hello->body;
	bool again = r->was_up;
	if (!r->mark.read) {
		r->mark.read = true;
		r->mark.old_ms = found->there ? found->ms : 0;
		r->mark.saw_ms = r->mark.old_ms;
	}
	r->up = r->was_up = true;
	r->down_since = (struct hw_mono){0};
	send_again(r);
	nw_oracle_connects(h->w, h);
	send_all_published(r);
	r->ops->on_link(r->arg, true, "connected");
	if (r->stage == WANTED || r->stage == DONE)
		begin_load(r);
	if (again && h->w->lie != NW_LIE_COMPARE)
		r->sweep = true;
	compare(r, found);
}

void nw_sink_lost(struct nw_host *h, const char *why)
{
	struct hw_redis *r = h->redis;
	if (!r->up)
		return;
	r->up = false;
	r->down_since = nw_host_now(h->w, h).mono;
	memset(r->calls, 0, sizeof(r->calls));
	memset(r->flying, 0, sizeof(r->flying));
	r->sent = r->head;
	if (load_pending(r))
		r->stage = WANTED;
	else if (r->stage == AGAIN)
		r->stage = DONE;
	r->next = r->mark.in_flight = false;
	r->ops->on_link(r->arg, false, why);
	if (r->reads > 0)
		r->ops->on_read_device_failed(r->arg);
	r->reads = 0;
	while (r->looking)
		looked(r, false, false);
}

void nw_sink_answer(struct nw_host *h, struct nw_msg *msg)
{
	struct hw_redis *r = h->redis;
	const struct nw_mark *found = msg->body;
	if (msg->what == NW_CALL) {
		answer_call(r, msg->body);
	} else if (msg->what == NW_PUBLISHED) {
		const struct nw_published *p = msg->body;
		if (p->newer.epoch)
			r->ops->on_fenced(r->arg, p->partition, &p->newer);
	} else if (msg->what == NW_PUBLISHED_ALL) {
		r->ops->on_published(r->arg, ((struct nw_published_all *)msg->body)->p);
	} else if (msg->what == NW_MARK) {
		on_marked(r, found);
	} else if (msg->what == NW_LOOK) {
		bool ours = found->run == r->conf.run_id || !r->mark.written || r->h->w->lie == NW_LIE_DOUBT;
		bool proves = r->h->app->cluster->stream.reading == HW_CLUSTER_PROVES && r->h->w->lie == NW_LIE_PROVE;
		looked(r, true, proves || (found->there && ours) || !hw_redis_has_sight_record(r));
	} else {
		answer_load(r, msg);
	}
}

/* --- the object -------------------------------------------------------------------------------------------------- */

struct hw_redis *hw_redis_new(struct event_base *base, const struct hw_redis_conf *conf, const struct hw_monitor *m,
                              const struct hw_redis_ops *ops, void *arg)
{
	struct hw_redis *r = base->h->redis = nw_alloc(sizeof(*r));
	struct hw_now now = nw_host_now(base->h->w, base->h);
	*r = (struct hw_redis){.h = base->h, .conf = *conf, .m = m, .ops = ops, .arg = arg};
	r->head = r->sent = r->tail = FIRST;
	r->down_since = now.mono;
	r->started_wall_ms = now.wall_ms;
	return r;
}

void hw_redis_free(struct hw_redis *r)
{
	while (r->looking)
		looked(r, false, false);
	r->h->redis = NULL;
	free(r->ring);
	free(r);
}

void hw_redis_compare(struct hw_redis *r)
{
	if (!r->up || r->h->w->lie == NW_LIE_COMPARE)
		return;
	if (!load_pending(r) && r->stage == DONE)
		begin_load(r);
	r->sweep = true;
}

bool hw_redis_up(const struct hw_redis *r)
{
	return r->up;
}

struct hw_mono hw_redis_down_since(const struct hw_redis *r)
{
	return r->down_since;
}

const struct hw_redis_stats *hw_redis_stats(const struct hw_redis *r)
{
	struct hw_redis *own = r->h->redis;
	own->stats.waiting = own->stats.waiting_ends = r->tail - r->head;
	own->stats.room = UINT32_MAX; /* the ring grows */
	own->stats.done = r->head;
	own->stats.oldest_transition_ms = 0;
	if (r->head != r->tail) {
		int64_t ns = nw_host_now(r->h->w, r->h).mono.ns - at(r, r->head)->queued_ns;
		own->stats.oldest_transition_ms = ns / HW_NS_PER_MS + 1;
	}
	return &own->stats;
}

int64_t hw_redis_old_seen_ms(const struct hw_redis *r)
{
	return r->mark.old_ms;
}

struct hw_redis_address hw_redis_address_of(const struct hw_conf_redis *c, const char *password)
{
	(void)c, (void)password;
	return (struct hw_redis_address){0};
}
