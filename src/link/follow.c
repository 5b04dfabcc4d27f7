/* SPDX-License-Identifier: MIT */
/*
 * There are at most two connections: to the Sentinel that is being asked, and to the Sentinel whose messages are
 * subscribed to.
 *
 * The question and SUBSCRIBE are sent together. So a change of the master is either in the answer, or is published
 * afterwards. A Sentinel may process other commands between the two. So the question is repeated after
 * HW_FOLLOW_AGAIN_MS. Connections are opened only from `turn` and `timer`, never in a callback of hiredis.
 */
#include "link/follow.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/guard.h"
#include "link/hooks.h"
#include "link/resolve.h"
#include "link/sentinel.h"

struct talk {
	struct hw_follow *follow;
	unsigned who; /* index of the Sentinel in the list */
	struct hw_resolve *resolve;
	char addresses[HW_ADDRESSES_MAX][HW_ADDRESS_TEXT]; /* tried in turn */
	size_t n_addresses, address;
	redisAsyncContext *ac; /* NULL: none */
	struct hw_guard guard; /* of ac */
};

struct hw_follow {
	struct event_base *base;
	const char *name; /* name of the master */
	const struct hw_follow_ops *ops;
	void *arg;
	struct hw_hosts list;
	struct hw_sentinel_round round;
	struct hw_sentinel_view view;
	bool wanted; /* hw_follow_ask() was called, and no Sentinel has named a master since */
	bool asking; /* talk[asked] waits for its answer */
	unsigned asked;
	struct talk talk[2]; /* talk[asked], and the subscription: talk[1 - asked] */
	/* the fault of each Sentinel that was reported last; HW_SENTINEL_NAMED: none */
	enum hw_sentinel_answer reported[HW_HOSTS_MAX];
	char why[HW_SENTINEL_WHY]; /* the trouble of the Sentinel that failed last */
	struct event *turn, *timer;
	bool unarmed; /* `timer` could not be armed: hw_follow_tick() runs it */
};

static void arm(struct hw_follow *f, int ms)
{
	struct timeval in = {ms / 1000, ms % 1000 * 1000};
	f->unarmed = event_add(f->timer, &in) != 0;
}

static void hang_up(struct talk *t)
{
	redisAsyncContext *ac = t->ac;
	t->ac = NULL;
	if (t->resolve)
		hw_resolve_cancel(t->resolve);
	t->resolve = NULL;
	if (ac)
		redisAsyncFree(ac);
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

static void report(struct hw_follow *f, unsigned who, enum hw_sentinel_answer what, const char *detail)
{
	bool news = f->reported[who] != what;
	f->reported[who] = what;
	hw_sentinel_why(what, &f->list.at[who], f->name, detail, f->why);
	if (news)
		f->ops->on_trouble(f->arg, f->why);
}

/* Called when the Sentinel that was asked has given no usable answer. Asks the next one. */
static void failed(struct hw_follow *f, enum hw_sentinel_answer what, const char *detail)
{
	struct talk *t = &f->talk[f->asked];
	char text[160];
	snprintf(text, sizeof(text), "%s", detail); /* `detail` may point into the connection, which is freed */
	hang_up(t);
	report(f, t->who, what, text);
	f->asking = false;
	event_active(f->turn, EV_TIMEOUT, 0);
}

/* Called when the Sentinel cannot be reached at this address. Tries its next address; if there is none, the next
 * Sentinel. */
static void unreachable(struct talk *t, const char *why)
{
	if (t->address + 1 >= t->n_addresses) {
		failed(t->follow, HW_SENTINEL_AWAY, why);
		return;
	}
	hang_up(t);
	t->address++;
	event_active(t->follow->turn, EV_TIMEOUT, 0);
}

static bool is_asked(const struct talk *t)
{
	return t->follow->asking && t == &t->follow->talk[t->follow->asked];
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct talk *t = ac->data;
	if (t->ac != ac || status == REDIS_OK)
		return;
	t->ac = NULL; /* hiredis frees it */
	unreachable(t, ac->c.errstr);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct talk *t = ac->data;
	if (t->ac != ac)
		return;
	t->ac = NULL; /* hiredis frees it */
	const char *why = status == REDIS_OK || !ac->c.errstr[0] ? "connection closed" : ac->c.errstr;
	if (t->guard.refused)
		why = t->guard.refused;
	if (is_asked(t)) {
		failed(t->follow, HW_SENTINEL_AWAY, why);
		return;
	}
	report(t->follow, t->who, HW_SENTINEL_LOST, why);
	if (!t->follow->asking)
		arm(t->follow, HW_FOLLOW_RETRY_MS);
}

/* --- answers and messages ---------------------------------------------------------------------------------------- */

/* Called when the Sentinel that was asked has named a master. Its connection now serves the subscription. */
static void named(struct talk *t, const struct hw_host *master)
{
	struct hw_follow *f = t->follow;
	bool wanted = f->wanted;
	f->asking = f->wanted = false;
	f->reported[t->who] = HW_SENTINEL_NAMED;
	f->asked = 1 - f->asked;
	hang_up(&f->talk[f->asked]);
	bool go = hw_sentinel_view_named(&f->view, master, f->round.n, wanted);
	arm(f, f->view.n_named ? HW_FOLLOW_RETRY_MS : HW_FOLLOW_AGAIN_MS);
	if (go)
		f->ops->on_master(f->arg, master, &f->list.at[t->who]);
}

static void on_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	struct talk *t = arg;
	const redisReply *reply = answer;
	struct hw_host master;
	if (!reply || t->ac != ac || !is_asked(t))
		return;
	enum hw_sentinel_answer what = hw_sentinel_read_master(reply, &master);
	if (what == HW_SENTINEL_NAMED)
		named(t, &master);
	else
		failed(t->follow, what, reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of another type");
}

static void switched(struct talk *t, const struct hw_host *master)
{
	struct hw_follow *f = t->follow;
	bool go = hw_sentinel_view_switched(&f->view, master) || f->wanted;
	f->wanted = false;
	if (go)
		f->ops->on_master(f->arg, master, &f->list.at[t->who]);
}

static void on_message(redisAsyncContext *ac, void *answer, void *arg)
{
	struct talk *t = arg;
	const redisReply *reply = answer;
	struct hw_host master;
	if (!reply || t->ac != ac || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return;
	const redisReply *text = reply->element[2];
	if (text->type == REDIS_REPLY_STRING && hw_sentinel_read_switch(text->str, t->follow->name, &master))
		switched(t, &master);
}

/* --- questions --------------------------------------------------------------------------------------------------- */

static int ask(struct talk *t)
{
	const char *question[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", t->follow->name};
	if (redisAsyncCommandArgv(t->ac, on_answer, t, 3, question, NULL) != REDIS_OK ||
	    redisAsyncCommand(t->ac, on_message, t, "SUBSCRIBE +switch-master") != REDIS_OK)
		return -ENOMEM;
	return 0;
}

static void connect_to(struct talk *t)
{
	redisAsyncContext *ac = redisAsyncConnect(t->addresses[t->address], t->follow->list.at[t->who].port);
	t->ac = ac;
	if (!ac) {
		unreachable(t, "out of memory");
		return;
	}
	ac->data = t;
	if (ac->err) {
		char why[160];
		snprintf(why, sizeof(why), "%s", ac->errstr);
		unreachable(t, why);
		return;
	}
	hw_guard_set(&t->guard, ac);
	if (hw_hooks_attach(ac, t->follow->base) != 0 || redisAsyncSetConnectCallback(ac, on_connect) != REDIS_OK ||
	    redisAsyncSetDisconnectCallback(ac, on_disconnect) != REDIS_OK || ask(t) != 0)
		unreachable(t, "out of memory");
}

static void on_resolved(void *arg, const char (*addresses)[HW_ADDRESS_TEXT], size_t n, const char *error)
{
	struct talk *t = arg;
	t->resolve = NULL;
	if (error) {
		unreachable(t, error);
		return;
	}
	memcpy(t->addresses, addresses, n * sizeof(*addresses));
	t->n_addresses = n;
	connect_to(t);
}

static void look_up(struct talk *t, const char *host)
{
	t->n_addresses = t->address = 0;
	if (hw_resolve_literal(host)) {
		strncat(strcpy(t->addresses[0], ""), host, HW_ADDRESS_TEXT - 1);
		t->n_addresses = 1;
		connect_to(t);
		return;
	}
	t->resolve = hw_resolve_start(t->follow->base, host, on_resolved, t);
	if (!t->resolve)
		unreachable(t, "cannot start to resolve the host name");
}

static void ask_next(struct hw_follow *f)
{
	int who = hw_sentinel_round_next(&f->round);
	bool wanted = f->wanted;
	if (who >= 0) {
		struct talk *t = &f->talk[f->asked];
		t->who = (unsigned)who;
		f->asking = true;
		arm(f, HW_FOLLOW_ASK_MS);
		look_up(t, f->list.at[who].name);
		return;
	}
	f->wanted = false;
	arm(f, HW_FOLLOW_AGAIN_MS);
	if (wanted)
		f->ops->on_none(f->arg, f->why);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct hw_follow *f = arg;
	struct talk *t = &f->talk[f->asked];
	(void)fd, (void)what;
	if (!f->asking)
		ask_next(f);
	else if (!t->ac && !t->resolve)
		connect_to(t);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct hw_follow *f = arg;
	(void)fd, (void)what;
	if (f->asking) {
		failed(f, HW_SENTINEL_AWAY, "no answer within 500 ms");
		return;
	}
	hw_sentinel_round_begin(&f->round);
	ask_next(f);
}

void hw_follow_ask(struct hw_follow *f)
{
	f->wanted = true;
	hw_sentinel_round_begin(&f->round);
	if (!f->asking)
		event_active(f->turn, EV_TIMEOUT, 0);
}

void hw_follow_tick(struct hw_follow *f)
{
	if (f->unarmed)
		event_active(f->timer, EV_TIMEOUT, 0);
	f->unarmed = false;
}

struct hw_follow *hw_follow_new(struct event_base *base, const char *sentinels, const char *master,
                                const struct hw_follow_ops *ops, void *arg)
{
	struct hw_follow *f = calloc(1, sizeof(*f));
	char why[160];
	if (!f)
		return NULL;
	f->base = base;
	f->name = master;
	f->ops = ops;
	f->arg = arg;
	f->talk[0].follow = f->talk[1].follow = f;
	f->turn = event_new(base, -1, 0, on_turn, f);
	f->timer = event_new(base, -1, 0, on_timer, f);
	if (f->turn && f->timer && hw_hosts_parse(&f->list, sentinels, why, sizeof(why)) == 0) {
		f->round.n = (unsigned)f->list.n;
		return f;
	}
	hw_follow_free(f);
	return NULL;
}

void hw_follow_free(struct hw_follow *f)
{
	if (!f)
		return;
	hang_up(&f->talk[0]);
	hang_up(&f->talk[1]);
	if (f->turn)
		event_free(f->turn);
	if (f->timer)
		event_free(f->timer);
	free(f);
}
