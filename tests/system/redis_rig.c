/* SPDX-License-Identifier: MIT */
/* See redis_rig.h. A server ends with its test's process; its directory is removed at the end of rig_run(). */
#include "redis_rig.h"
#include "../sink_state.h"
#include "../suite.h"
#include "free_port.h"
#include "heartwheel/partition.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 20

static char top[] = "/tmp/heartwheel-redis-XXXXXX";

struct hw_now rig_now(void)
{
	struct timespec mono, wall;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct hw_now){{(int64_t)mono.tv_sec * HW_NS_PER_S + mono.tv_nsec},
	                       (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / HW_NS_PER_MS};
}

uint64_t rig_seed(void)
{
	const char *text = getenv("HW_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)rig_now().mono.ns;
	printf("HW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed ? seed : 1;
}

/* --- directories ---------------------------------------------------------------------------------------------------
 */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

int rig_run(Suite *suite)
{
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(top)) {
		perror(top);
		return EXIT_FAILURE;
	}
	int status = suite_run(suite);
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

/* --- the server ----------------------------------------------------------------------------------------------------
 */

static void run(const char *const *argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static void run_server(struct rig *g, const char *const *extra)
{
	char port[16];
	snprintf(port, sizeof(port), "%d", g->port);
	const char *argv[40] = {"redis-server", "--port",    port,   "--bind",      "127.0.0.1", "--unixsocket",
	                        g->socket,      "--dir",     g->dir, "--save",      "",          "--appendonly",
	                        "no",           "--logfile", "log",  "--daemonize", "no"};
	size_t n = 0;
	while (argv[n])
		n++;
	for (; extra && *extra; extra++)
		argv[n++] = *extra;
	run(argv);
}

/* Sentinel writes its configuration file itself. */
static void run_sentinel(struct rig *g)
{
	char conf[160];
	snprintf(conf, sizeof(conf), "%s/sentinel.conf", g->dir);
	FILE *f = fopen(conf, "w");
	if (f) {
		fprintf(f, "port %d\nbind 127.0.0.1\ndir %s\nlogfile %s/log\n", g->port, g->dir, g->dir);
		fclose(f);
	}
	run((const char *const[]){"redis-server", conf, "--sentinel", NULL});
}

static bool answers(struct rig *g)
{
	redisContext *c = redisConnect("127.0.0.1", g->port);
	bool good = false;
	if (c && !c->err) {
		redisReply *reply = redisCommand(c, "PING");
		good = reply && (reply->type == REDIS_REPLY_STATUS || strncmp(reply->str, "NOAUTH", 6) == 0);
		freeReplyObject(reply);
	}
	if (good)
		g->look = c;
	else if (c)
		redisFree(c);
	return good;
}

static void wait_for_it(struct rig *g)
{
	struct hw_now start = rig_now();
	ck_assert_int_ge(g->server, 0);
	while (!answers(g)) {
		int status;
		ck_assert_msg(waitpid(g->server, &status, WNOHANG) == 0, "redis-server did not start");
		ck_assert_msg(rig_now().mono.ns - start.mono.ns < PATIENCE_MS * HW_NS_PER_MS,
		              "redis-server does not answer");
		poll(NULL, 0, 10);
	}
}

void rig_serve_again(struct rig *g, const char *const *extra)
{
	g->server = fork();
	if (g->server == 0)
		run_server(g, extra);
	wait_for_it(g);
}

static void make_place(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	snprintf(g->dir, sizeof(g->dir), "%s/XXXXXX", top);
	ck_assert_ptr_nonnull(mkdtemp(g->dir));
	snprintf(g->socket, sizeof(g->socket), "%s/s", g->dir);
	g->port = free_port();
}

void rig_guard(struct rig *to)
{
	make_place(to);
	to->server = fork();
	if (to->server == 0)
		run_sentinel(to);
	wait_for_it(to);
}

void rig_serve(struct rig *g, const char *const *extra)
{
	make_place(g);
	rig_serve_again(g, extra);
	g->conf = (struct hw_redis_conf){.at.host = "127.0.0.1",
	                                 .at.port = g->port,
	                                 .at.unix_socket = "",
	                                 .at.username = "",
	                                 .at.password = "",
	                                 .key_prefix = "device:",
	                                 .node_id = "node-1",
	                                 .ttl_factor = 3,
	                                 .events_max = 1000000,
	                                 .run_id = UINT64_C(0xabcdef0123456789)};
}

void rig_kill_server(struct rig *g)
{
	int status;
	redisFree(g->look);
	g->look = NULL;
	kill(g->server, SIGKILL);
	waitpid(g->server, &status, 0);
	unlink(g->socket);
}

/* --- what the object says ------------------------------------------------------------------------------------------
 */

static void on_link(void *arg, bool up, const char *why)
{
	struct rig *g = arg;
	*(up ? &g->ups : &g->downs) += 1;
	if (!up)
		snprintf(g->why, sizeof(g->why), "%s", why);
}

static void on_device(void *arg, struct hw_stored *device)
{
	struct rig *g = arg;
	struct hw_out out;
	g->down_ms = device->down_ms;
	g->told++;
	ck_assert_int_eq(hw_monitor_load(g->m, rig_now(), device), 0);
	while (hw_monitor_caused(g->m, &out))
		if (out.kind == HW_OUT_REFRESH)
			hw_redis_refresh(g->r, out.device);
}

static void on_outbox(void *arg, const char *id, size_t id_len, bool status)
{
	struct rig *g = arg;
	g->outbox++;
	g->outbox_statuses += status;
	snprintf(g->outbox_last, sizeof(g->outbox_last), "%.*s", (int)id_len, id);
}

static void on_published(void *arg, const uint64_t *p)
{
	struct rig *g = arg;
	g->published_answers++;
	if (p)
		memcpy(g->published, p, sizeof(g->published));
}

static void on_loaded(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete)
{
	struct rig *g = arg;
	ck_assert(complete);
	ck_assert(!g->loaded);
	g->loaded = true;
	g->devices = devices;
	g->unusable = unusable;
	ck_assert(unusable || !*first);
	hw_monitor_loaded(g->m);
}

static void on_confirmed(void *arg, struct hw_ref device, uint64_t seq)
{
	struct rig *g = arg;
	(void)device, (void)seq;
	g->confirmed++;
}

static void on_newer(void *arg, struct hw_ref device, uint64_t stored_seq)
{
	struct rig *g = arg;
	g->newer++;
	g->newer_seq = stored_seq;
	if (hw_monitor_adopt_seq(g->m, device, stored_seq))
		sink_rewrite(g->r, device);
}

static void on_event(void *arg, struct hw_stream_id at, const struct hw_transition *t)
{
	struct rig *g = arg;
	g->events++;
	g->event_at = at;
	g->event = *t;
}

static void on_events(void *arg, const struct hw_event_page *page)
{
	struct rig *g = arg;
	g->pages++;
	g->page = *page;
	g->page.events = g->page_events;
	for (size_t i = 0; i < page->n; i++) {
		const struct hw_event *e = &page->events[i];
		g->page_events[i] = *e;
		snprintf(g->page_ids[i], sizeof(g->page_ids[i]), "%.*s", (int)e->id_len, e->id);
		snprintf(g->page_group, sizeof(g->page_group), "%.*s", (int)e->group_len, e->group);
	}
}

static void on_trouble(void *arg, const char *what)
{
	struct rig *g = arg;
	g->troubles++;
	snprintf(g->trouble, sizeof(g->trouble), "%s", what);
}

/* As the daemon does: the sight record must be there before it can be missing again. */
static void on_emptied(void *arg)
{
	struct rig *g = arg;
	g->emptied++;
	if (g->marking)
		hw_redis_seen(g->r, rig_now(), g->blind);
}

static void on_sent_again(void *arg, uint32_t n, uint32_t lacking)
{
	struct rig *g = arg;
	g->sent_again = n;
	g->lacking = lacking;
}

static struct hw_fencing_token token(void *arg, unsigned partition)
{
	struct rig *g = arg;
	return hw_fencing_token_make(g->epoch[partition], g->conf.node_id);
}

static bool owner(void *arg, const char *id, size_t id_len, struct hw_ownership *out)
{
	struct rig *g = arg;
	out->partition = hw_partition_of(id, id_len);
	out->token = hw_fencing_token_make(g->epoch[out->partition], g->conf.node_id);
	return out->token.epoch > 0;
}

static void on_fenced(void *arg, unsigned partition, const struct hw_fencing_token *newer)
{
	struct rig *g = arg;
	g->fenced++;
	g->fenced_partition = partition;
	g->fenced_by = *newer;
}

static void on_dropped(void *arg, struct hw_ref device, uint64_t seq)
{
	struct rig *g = arg;
	g->dropped++;
	g->dropped_device = device;
	g->dropped_seq = seq;
}

static void on_read_device_failed(void *arg)
{
	struct rig *g = arg;
	g->unlooked++;
}

#define OPS                                                                                                            \
	.on_link = on_link, .on_device = on_device, .on_outbox = on_outbox, .on_loaded = on_loaded,                    \
	.on_confirmed = on_confirmed, .on_newer = on_newer, .on_event = on_event, .on_events = on_events,              \
	.on_published = on_published, .on_trouble = on_trouble, .on_emptied = on_emptied,                              \
	.on_sent_again = on_sent_again
static const struct hw_redis_ops ops = {OPS};
static const struct hw_redis_ops ops_of_several = {OPS,
                                                   .owner = owner,
                                                   .token = token,
                                                   .on_fenced = on_fenced,
                                                   .on_dropped = on_dropped,
                                                   .on_read_device_failed = on_read_device_failed};

/* --- life ----------------------------------------------------------------------------------------------------------
 */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct rig *g = arg;
	(void)fd, (void)what;
	hw_redis_tick(g->r);
	if (g->marking)
		hw_redis_seen(g->r, rig_now(), g->blind);
}

static void make_monitor(struct rig *g)
{
	static const uint8_t key[16] = {7};
	static const char *const plain[] = {"plain/{id}"}, *const fast[] = {"fast/{id}"}, *const mute[] = {"mute/{id}"},
				 *const slow[] = {"slow/{id}"};
	const int64_t day = 86400000;
	const struct hw_group_spec groups[] = {
		{.name = "plain",
	         .heartbeat = plain,
	         .n_heartbeat = 1,
	         .status = "plain/{id}/s",
	         .timeout_ms = 30000,
	         .timeout_max_ms = day},
		{.name = "fast",
	         .heartbeat = fast,
	         .n_heartbeat = 1,
	         .status = "fast/{id}/s",
	         .timeout_ms = 1000,
	         .timeout_max_ms = day},
		{.name = "mute", .heartbeat = mute, .n_heartbeat = 1, .timeout_ms = 30000, .timeout_max_ms = day},
		{.name = "slow",
	         .heartbeat = slow,
	         .n_heartbeat = 1,
	         .status = "slow/{id}/s",
	         .timeout_ms = HW_TIMEOUT_MAX_MS,
	         .timeout_max_ms = HW_TIMEOUT_MAX_MS},
	};
	const struct hw_monitor_conf conf = {.max_devices = 1000000,
	                                     .forget_after_ms = INT64_C(30) * 86400000,
	                                     .barrier_slow_ms = 250,
	                                     .barrier_timeout_ms = 5000,
	                                     .readers = 1,
	                                     .ttl_factor = 3};
	g->m = hw_monitor_new(&conf, groups, 4, key, rig_now());
	ck_assert_ptr_nonnull(g->m);
}

void rig_start(struct rig *g)
{
	struct timeval every = {0, TICK_MS * 1000};
	g->base = event_base_new();
	ck_assert_ptr_nonnull(g->base);
	g->tick = event_new(g->base, -1, EV_PERSIST, on_tick, g);
	ck_assert_ptr_nonnull(g->tick);
	ck_assert_int_eq(event_add(g->tick, &every), 0);
	make_monitor(g);
	g->r = hw_redis_new(g->base, &g->conf, g->m, g->several ? &ops_of_several : &ops, g);
	ck_assert_ptr_nonnull(g->r);
}

void rig_up(struct rig *g)
{
	rig_serve(g, NULL);
	rig_start(g);
	rig_until(g, rig_is_up, 5000);
}

void rig_stop(struct rig *g)
{
	hw_redis_free(g->r);
	hw_monitor_free(g->m);
	event_free(g->tick);
	event_base_free(g->base);
	rig_kill_server(g);
}

void rig_until(struct rig *g, bool (*done)(struct rig *g), int ms)
{
	ms = ms < PATIENCE_MS ? PATIENCE_MS : ms;
	int64_t end = rig_now().mono.ns + ms * HW_NS_PER_MS;
	while (!done(g)) {
		ck_assert_msg(rig_now().mono.ns < end, "not within %d ms; link: %s; trouble: %s", ms, g->why,
		              g->trouble);
		ck_assert_int_ge(event_base_loop(g->base, EVLOOP_ONCE), 0);
	}
}

bool rig_is_up(struct rig *g)
{
	return hw_redis_up(g->r);
}

bool rig_is_idle(struct rig *g)
{
	return hw_redis_up(g->r) && sink_is_idle(g->r);
}

bool rig_is_loaded(struct rig *g)
{
	return g->loaded;
}

/* --- looking -------------------------------------------------------------------------------------------------------
 */

static redisReply *ask(struct rig *g, const char *format, va_list args)
{
	redisReply *reply = redisvCommand(g->look, format, args);
	ck_assert_msg(reply, "%s: %s", format, g->look->errstr);
	return reply;
}

redisReply *rig_ask(struct rig *g, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	redisReply *reply = ask(g, format, args);
	va_end(args);
	return reply;
}

void rig_do(struct rig *g, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	redisReply *reply = ask(g, format, args);
	va_end(args);
	ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", format, reply->str);
	freeReplyObject(reply);
}

long long rig_number(struct rig *g, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	redisReply *reply = ask(g, format, args);
	va_end(args);
	ck_assert_msg(reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STRING, "%s: %s", format,
	              reply->str ? reply->str : "nothing");
	long long n = reply->type == REDIS_REPLY_INTEGER ? reply->integer : strtoll(reply->str, NULL, 10);
	freeReplyObject(reply);
	return n;
}

void rig_expect(struct rig *g, const char *want, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	redisReply *reply = ask(g, format, args);
	va_end(args);
	if (want) {
		ck_assert_msg(reply->str, "%s: nothing instead of %s", format, want);
		ck_assert_msg(strcmp(reply->str, want) == 0, "%s: %s instead of %s", format, reply->str, want);
	} else {
		ck_assert_msg(reply->type == REDIS_REPLY_NIL, "%s: %s instead of nothing", format,
		              reply->str ? reply->str : "something");
	}
	freeReplyObject(reply);
}

/* --- devices -------------------------------------------------------------------------------------------------------
 */

struct hw_device *rig_at(struct rig *g, uint32_t index)
{
	struct hw_device *d = hw_registry_at(hw_monitor_registry(g->m), index);
	ck_assert_ptr_nonnull(d);
	return d;
}

uint32_t rig_device(struct rig *g, uint16_t group, const char *id)
{
	unsigned budget = 100;
	struct hw_out out;
	hw_monitor_heartbeat(g->m, rig_now(), group, id, strlen(id), NULL);
	while (hw_monitor_next(g->m, rig_now(), &budget, &out))
		;
	uint32_t index = hw_registry_find(hw_monitor_registry(g->m), id, strlen(id));
	ck_assert_uint_ne(index, HW_NIL);
	ck_assert_int_eq(hw_device_state(rig_at(g, index)), HW_STATE_ONLINE);
	return index;
}

struct hw_transition rig_change(struct rig *g, uint32_t index, enum hw_state state, enum hw_reason reason)
{
	struct hw_device *d = rig_at(g, index);
	struct hw_now now = rig_now();
	uint64_t ms = (uint64_t)now.wall_ms;
	d->seq = (d->seq + 1 > ms ? d->seq + 1 : ms) & ((UINT64_C(1) << 48) - 1);
	d->since_ms = now.wall_ms & HW_SINCE_MAX;
	hw_device_set_state(d, state, reason);
	hw_device_set_source(d, HW_SOURCE_MQTT);
	return (struct hw_transition){.device = hw_registry_ref(hw_monitor_registry(g->m), index),
	                              .state = state,
	                              .reason = reason,
	                              .time_ms = d->since_ms,
	                              .last_seen_ms = hw_device_last_seen_ms(d, now),
	                              .seq = d->seq,
	                              .delay_ns = -1};
}

struct hw_transition rig_transit(struct rig *g, uint32_t index, enum hw_state state, enum hw_reason reason)
{
	struct hw_transition t = rig_change(g, index, state, reason);
	hw_redis_transition(g->r, rig_now(), &t);
	return t;
}
