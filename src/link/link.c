/* SPDX-License-Identifier: MIT */
/*
 * The connection. `ac` becomes NULL as soon as the connection is given up, so a late callback can find out that its
 * connection is an old one. hiredis before 1.0 frees the context itself after a failed connect, and accepts no commands
 * in the connect callback. So the greeting is sent from `turn`.
 */
#include "link/link.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heartwheel/print.h"
#include "link/hooks.h"
#include "link/sentinel.h"

static void start(struct hw_redis_link *l);
static void ready(struct hw_redis_link *l);
static void greet(struct hw_redis_link *l);

static int64_t mono_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- failures and back-off --------------------------------------------------------------------------------------- */

/* Returns a random number by xorshift64 (Marsaglia, 2003), which is good enough to vary the delays. */
static uint64_t next_random(struct hw_redis_link *l)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random;
}

static void schedule(struct hw_redis_link *l)
{
	int64_t ms = HW_LINK_BACKOFF_MAX_MS;
	if (l->tries < 7)
		ms = (int64_t)HW_LINK_BACKOFF_MIN_MS << l->tries;
	if (ms > HW_LINK_BACKOFF_MAX_MS)
		ms = HW_LINK_BACKOFF_MAX_MS;
	ms = ms / 2 + (int64_t)(next_random(l) % (uint64_t)(ms / 2 + 1));
	l->tries++;
	struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000 * 1000)};
	l->unarmed = event_add(l->retry, &tv) != 0;
}

/* Closes the connection without calling on_lost(). */
static void drop(struct hw_redis_link *l)
{
	redisAsyncContext *ac = l->ac;
	l->ac = NULL;
	l->state = HW_LINK_DOWN;
	event_del(l->turn);
	event_del(l->alive);
	if (l->resolve)
		hw_resolve_cancel(l->resolve);
	l->resolve = NULL;
	if (ac)
		redisAsyncFree(ac);
	if (l->conf.local)
		l->conf.local->close(l->conf.local->arg);
	l->in_flight = 0;
}

void hw_redis_link_fail(struct hw_redis_link *l, const char *why)
{
	char text[512];
	snprintf(text, sizeof(text), "%s", why); /* `why` may point into the context, which is freed */
	drop(l);
	l->n_addresses = 0;
	l->named = false;
	schedule(l);
	l->ops->on_lost(l->arg, text);
}

/* Called when Redis cannot be reached at this address. Tries the next address, if there is one. */
static void unreachable(struct hw_redis_link *l, const char *why)
{
	char text[512];
	bool more = l->address + 1 < l->n_addresses;
	snprintf(text, sizeof(text), "cannot reach Redis at %s: %s; see [redis] %s", l->where, why,
	         hw_redis_address_keys(&l->conf.at));
	if (!more) {
		hw_redis_link_fail(l, text);
		return;
	}
	drop(l);
	l->address++;
	event_active(l->retry, EV_TIMEOUT, 0);
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct hw_redis_link *l = ac->data;
	char text[512];
	if (l->ac != ac)
		return;
	l->ac = NULL;
	const char *why = status == REDIS_OK || !ac->c.errstr[0] ? "connection closed" : ac->c.errstr;
	snprintf(text, sizeof(text), "lost Redis at %s: %s", l->where, l->guard.refused ? l->guard.refused : why);
	hw_redis_link_fail(l, text);
}

/* --- connecting -------------------------------------------------------------------------------------------------- */

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct hw_redis_link *l = ac->data;
	if (l->ac != ac)
		return;
	if (status != REDIS_OK) {
		l->ac = NULL; /* hiredis frees it */
		unreachable(l, ac->c.errstr);
		return;
	}
	l->state = HW_LINK_GREETING;
	event_active(l->turn, EV_TIMEOUT, 0);
}

/*
 * Schedules the next check of the connection. Each command and each reply postpones the check, so it causes no wake-up
 * while replies come promptly. Returns 0 or -ENOMEM.
 */
static int watch(struct hw_redis_link *l)
{
	bool waiting = l->in_flight > 0 || l->state < HW_LINK_READY;
	struct timeval in = {waiting ? 1 : HW_LINK_QUIET_MS / 1000, waiting ? 0 : HW_LINK_QUIET_MS % 1000 * 1000};
	if (!waiting && l->conf.subscriber)
		return event_del(l->alive);
	return event_add(l->alive, &in) == 0 ? 0 : -ENOMEM;
}

static bool is_local(const struct hw_redis_link *l)
{
	return !l->follow && *l->conf.at.unix_socket;
}

static const char *host_of(const struct hw_redis_link *l)
{
	return l->follow ? l->master.name : l->conf.at.host;
}

static int port_of(const struct hw_redis_link *l)
{
	return l->follow ? l->master.port : l->conf.at.port;
}

static void connect_to(struct hw_redis_link *l)
{
	l->state = HW_LINK_CONNECTING;
	l->overdue = 0;
	l->since_ms = mono_ms();
	redisAsyncContext *ac = is_local(l) ? redisAsyncConnectUnix(l->conf.at.unix_socket)
	                                    : redisAsyncConnect(l->addresses[l->address], port_of(l));
	if (!ac) {
		unreachable(l, "out of memory");
		return;
	}
	l->ac = ac;
	ac->data = l;
	if (ac->err) {
		char why[160];
		snprintf(why, sizeof(why), "%s", ac->errstr);
		unreachable(l, why);
		return;
	}
	if (hw_hooks_attach(ac, l->base) != 0 || redisAsyncSetConnectCallback(ac, on_connect) != REDIS_OK ||
	    redisAsyncSetDisconnectCallback(ac, on_disconnect) != REDIS_OK || watch(l) != 0)
		unreachable(l, "out of memory");
	else
		hw_guard_set(&l->guard, ac);
}

static void on_resolved(void *arg, const char (*addresses)[HW_ADDRESS_TEXT], size_t n, const char *error)
{
	struct hw_redis_link *l = arg;
	l->resolve = NULL;
	if (error) {
		unreachable(l, error);
		return;
	}
	memcpy(l->addresses, addresses, n * sizeof(*addresses));
	l->n_addresses = n;
	l->address = 0;
	connect_to(l);
}

static void look_up(struct hw_redis_link *l)
{
	l->address = 0;
	if (hw_resolve_literal(host_of(l))) {
		snprintf(l->addresses[0], HW_ADDRESS_TEXT, "%.*s", HW_ADDRESS_TEXT - 1, host_of(l));
		l->n_addresses = 1;
		connect_to(l);
		return;
	}
	l->state = HW_LINK_RESOLVING;
	l->resolve = hw_resolve_start(l->base, host_of(l), on_resolved, l);
	if (!l->resolve)
		unreachable(l, "cannot start to resolve the host name");
}

static void open_local(struct hw_redis_link *l)
{
	const char *why = l->conf.local->open(l->conf.local->arg);
	if (why)
		hw_redis_link_fail(l, why);
	else
		ready(l);
}

static void start(struct hw_redis_link *l)
{
	l->unarmed = false; /* The connection is being opened now, so the next tick must not open it again. */
	if (l->conf.local) {
		open_local(l);
	} else if (is_local(l) || l->address < l->n_addresses) {
		connect_to(l);
	} else if (!l->follow || l->named) {
		l->named = false;
		look_up(l);
	} else {
		l->state = HW_LINK_ASKING;
		hw_follow_ask(l->follow);
	}
}

/* --- the master -------------------------------------------------------------------------------------------------- */

static void on_master(void *arg, const struct hw_host *master, const struct hw_host *by)
{
	struct hw_redis_link *l = arg;
	char old[sizeof(l->where)], text[512];
	snprintf(old, sizeof(old), "%s", l->where);
	l->master = *master;
	l->address = l->n_addresses = 0; /* these are addresses of the old master */
	hw_host_text(by, l->by);
	hw_host_text(master, l->where);
	if (l->state == HW_LINK_ASKING) {
		look_up(l);
		return;
	}
	if (l->state != HW_LINK_DOWN) {
		snprintf(text, sizeof(text),
		         "leaving Redis at %.140s: the master is now %.140s, as the Sentinel at %.140s reports", old,
		         l->where, l->by);
		hw_redis_link_fail(l, text);
	}
	l->named = true;
	hw_redis_link_settled(l); /* the delays of attempts to reach the old master do not apply to the new one */
	event_active(l->retry, EV_TIMEOUT, 0);
}

static void on_nobody(void *arg, const char *why)
{
	struct hw_redis_link *l = arg;
	char text[HW_SENTINEL_WHY + 200];
	if (l->state != HW_LINK_ASKING)
		return;
	snprintf(text, sizeof(text), "no Sentinel names the master %.128s: %s", l->conf.at.master, why);
	hw_redis_link_fail(l, text);
}

static void on_trouble(void *arg, const char *what)
{
	struct hw_redis_link *l = arg;
	if (l->ops->on_trouble)
		l->ops->on_trouble(l->arg, what);
}

static const struct hw_follow_ops follow_ops = {on_master, on_nobody, on_trouble};

/* --- the greeting ------------------------------------------------------------------------------------------------ */

/* Returns the reply to a step of the greeting. Returns NULL if the connection is lost, or if Redis refuses the step; in
 * the second case closes the connection. */
static const redisReply *checked(struct hw_redis_link *l, const redisReply *reply)
{
	if (!reply)
		return NULL;
	hw_redis_link_got(l);
	if (reply->type != REDIS_REPLY_ERROR)
		return reply;
	hw_redis_link_fail(l, reply->str ? reply->str : "unexpected reply");
	return NULL;
}

static void ready(struct hw_redis_link *l)
{
	l->state = HW_LINK_READY;
	l->ops->on_ready(l->arg);
}

/* Handles the reply to ROLE. A Sentinel that is cut off, or not up to date, may name a server that is a replica now. */
static void on_role(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis_link *l = arg;
	const redisReply *reply = checked(l, answer);
	char text[512];
	(void)ac;
	if (!reply)
		return;
	if (hw_sentinel_read_role(reply)) {
		ready(l);
		return;
	}
	snprintf(text, sizeof(text),
	         "Redis at %.140s, which the Sentinel at %.140s names as the master %.128s, is a replica: "
	         "asking the next Sentinel",
	         l->where, l->by, l->conf.at.master);
	hw_redis_link_fail(l, text);
}

/* Handles the first reply, after which the connection is ready. An error also counts as a reply: the owner's first
 * command will get the same error, and the owner handles it. */
static void on_first_answer(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	if (!answer)
		return;
	hw_redis_link_got(arg);
	ready(arg);
}

/* Called when the database is selected. The kernel accepts a connection even if Redis hangs. So with `proves`, the
 * connection is ready only after a reply. */
static void selected(struct hw_redis_link *l)
{
	const char *argv[] = {l->follow ? "ROLE" : "PING"};
	const size_t lens[] = {4};
	if (!l->follow && !l->conf.proves)
		ready(l);
	else if (hw_redis_link_command(l, l->follow ? on_role : on_first_answer, l, 1, argv, lens) != 0)
		hw_redis_link_fail(l, "out of memory");
}

static void on_selected(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	if (checked(arg, answer))
		selected(arg);
}

static void select_db(struct hw_redis_link *l)
{
	char db[16];
	size_t len = hw_print(db, sizeof(db), "%d", l->conf.at.db);
	const char *argv[] = {"SELECT", db};
	const size_t lens[] = {6, len};
	if (l->conf.at.db == 0)
		selected(l);
	else if (hw_redis_link_command(l, on_selected, l, 2, argv, lens) != 0)
		hw_redis_link_fail(l, "out of memory");
}

static void on_authenticated(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	if (checked(arg, answer))
		select_db(arg);
}

static void greet(struct hw_redis_link *l)
{
	const char *argv[3] = {"AUTH", l->conf.at.username, l->conf.at.password};
	int argc = 3;
	if (!*l->conf.at.username && !*l->conf.at.password) {
		select_db(l);
		return;
	}
	if (!*l->conf.at.username) {
		argv[1] = l->conf.at.password;
		argc = 2;
	}
	const size_t lens[3] = {4, strlen(argv[1]), strlen(l->conf.at.password)};
	if (hw_redis_link_command(l, on_authenticated, l, argc, argv, lens) != 0)
		hw_redis_link_fail(l, "out of memory");
}

/* --- an open link ------------------------------------------------------------------------------------------------ */

static void on_pong(redisAsyncContext *ac, void *answer, void *arg)
{
	(void)ac;
	if (answer)
		hw_redis_link_got(arg);
}

/* Gives the connection up if Redis is silent. Redis counts as silent only after two checks in a row: if this process
 * was stopped, the first check runs before the socket is read. */
static void check_silence(struct hw_redis_link *l)
{
	int64_t now = mono_ms();
	bool waiting = l->in_flight > 0 || l->state == HW_LINK_CONNECTING;
	const char *argv[] = {"PING"};
	const size_t lens[] = {4};
	if (waiting && now - l->since_ms > HW_LINK_SILENCE_MS) {
		if (++l->overdue < 2)
			return;
		if (l->state == HW_LINK_CONNECTING) {
			unreachable(l, "no answer for 5 s");
			return;
		}
		char why[400];
		snprintf(why, sizeof(why), "Redis at %s has not answered for 5 s", l->where);
		hw_redis_link_fail(l, why);
		return;
	}
	l->overdue = 0;
	/* watch() schedules this check after HW_LINK_QUIET_MS without a reply */
	if (!waiting && !l->conf.subscriber && l->state == HW_LINK_READY)
		hw_redis_link_command(l, on_pong, l, 1, argv, lens);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	greet(arg);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	start(arg);
}

static void on_alive(evutil_socket_t fd, short what, void *arg)
{
	struct hw_redis_link *l = arg;
	(void)fd, (void)what;
	check_silence(l);
	if (l->ac)
		watch(l);
}

/* Returns the result of sending a command. If there is no memory, hiredis 0.14 sends a command without queueing its
 * callback. All later replies would go to the wrong callbacks, so the connection is given up. `last`: the last
 * callback in the queue before the command. */
static int sent(struct hw_redis_link *l, int rc, const redisCallback *last)
{
	if (rc != REDIS_OK)
		return -ENOMEM;
	if (!l->conf.subscriber && l->ac->replies.tail == last) {
		hw_hooks_give_up(l->ac);
		return -ENOMEM;
	}
	if (l->in_flight++ == 0) {
		l->since_ms = mono_ms();
		watch(l);
	}
	l->commands++;
	return 0;
}

int hw_redis_link_send(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, const char *command, size_t len)
{
	if (l->conf.local)
		return l->state == HW_LINK_READY ? l->conf.local->send(l->conf.local->arg, fn, arg, command, len)
		                                 : -ENOTCONN;
	if (!l->ac || l->state < HW_LINK_GREETING)
		return -ENOTCONN;
	if (!hw_hooks_can_send(l->ac))
		return -ENOMEM;
	const redisCallback *last = l->ac->replies.tail;
	return sent(l, redisAsyncFormattedCommand(l->ac, fn, arg, command, len), last);
}

static int send_local(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                      const size_t *len)
{
	char *command = NULL;
	long long n = redisFormatCommandArgv(&command, argc, argv, len);
	int rc = n < 0 ? -ENOMEM : hw_redis_link_send(l, fn, arg, command, (size_t)n);
	if (command)
		redisFreeCommand(command);
	return rc;
}

int hw_redis_link_command(struct hw_redis_link *l, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                          const size_t *len)
{
	if (l->conf.local)
		return send_local(l, fn, arg, argc, argv, len);
	if (!l->ac || l->state < HW_LINK_GREETING)
		return -ENOTCONN;
	if (!hw_hooks_can_send(l->ac))
		return -ENOMEM;
	const redisCallback *last = l->ac->replies.tail;
	return sent(l, redisAsyncCommandArgv(l->ac, fn, arg, argc, argv, len), last);
}

void hw_redis_link_got(struct hw_redis_link *l)
{
	l->since_ms = mono_ms();
	l->overdue = 0;
	if (l->in_flight > 0 && --l->in_flight == 0)
		watch(l);
}

void hw_redis_link_tick(struct hw_redis_link *l)
{
	if (l->unarmed)
		event_active(l->retry, EV_TIMEOUT, 0);
	l->unarmed = false;
	if (l->follow)
		hw_follow_tick(l->follow);
	if (l->ac && !event_pending(l->alive, EV_TIMEOUT, NULL))
		watch(l);
}

void hw_redis_link_settled(struct hw_redis_link *l)
{
	l->tries = 0;
}

int hw_redis_link_init(struct hw_redis_link *l, struct event_base *base, const struct hw_redis_link_conf *conf,
                       const struct hw_redis_link_ops *ops, void *arg)
{
	memset(l, 0, sizeof(*l));
	l->base = base;
	l->conf = *conf;
	l->ops = ops;
	l->arg = arg;
	l->random = conf->seed ? conf->seed : 1;
	hw_redis_address_text(&conf->at, l->where, sizeof(l->where));
	l->turn = event_new(base, -1, 0, on_turn, l);
	l->retry = event_new(base, -1, 0, on_retry, l);
	l->alive = event_new(base, -1, 0, on_alive, l);
	bool asked_for = !conf->local && hw_redis_address_is_asked_for(&conf->at);
	if (asked_for)
		l->follow = hw_follow_new(base, conf->at.sentinels, conf->at.master, &follow_ops, l);
	struct timeval now = {0, 0};
	if (l->turn && l->retry && l->alive && !asked_for == !l->follow && event_add(l->retry, &now) == 0)
		return 0;
	hw_redis_link_fini(l);
	return -ENOMEM;
}

void hw_redis_link_fini(struct hw_redis_link *l)
{
	if (l->turn && l->alive)
		drop(l);
	hw_follow_free(l->follow);
	l->follow = NULL;
	if (l->turn)
		event_free(l->turn);
	if (l->retry)
		event_free(l->retry);
	if (l->alive)
		event_free(l->alive);
	l->turn = l->retry = l->alive = NULL;
}
