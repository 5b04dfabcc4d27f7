/* SPDX-License-Identifier: MIT */
/*
 * The answers of Redis. The real client runs against a socket of this process. The input consists of records, each
 * ended by 0x1e; each is sent unchanged as the answer to the next command. An empty record stands for the answer of a
 * correct Redis, and so does the end of the input. So an empty input is a load, then transitions, refreshes, snapshots
 * and sight records, all of them successful. If a record ends with 0x1f, it is only a part of the answer, and the next
 * record follows without waiting for another command. Time passes when a timer that waits is fired.
 *
 * Whatever was answered, the client must end up idle with everything confirmed once Redis is correct again.
 */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../sink_state.h"
#include "fuzz.h"
#include "redis/inner.h"

#define RECORD_END  0x1e
#define RECORD_MORE 0x1f
#define TURNS_MAX   3000
#define STUCK_TURNS 5
#define DEVICES     5
#define STEPS       (4 * DEVICES)

static char dir[] = "/tmp/hw-fuzz-redis-XXXXXX";

struct world {
	struct event_base *base;
	struct hw_monitor *monitor;
	struct hw_redis *redis;
	struct hw_now now;
	int listener, fd; /* fd: -1, no connection */
	redisReader *commands;
	const uint8_t *at, *end; /* what is left of the input */
	unsigned stuck;          /* turns in which nothing happened, although something should */
	unsigned scripts;        /* SCRIPT LOADs on this connection */
	bool loaded;
};

/* --- a sound Redis, as far as this client asks it ---------------------------------------------------------------- */

static void put(struct world *w, const void *bytes, size_t len)
{
	if (send(w->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len) {
		close(w->fd); /* the client has closed, or there is more than a socket holds */
		w->fd = -1;
	}
}

static void put_text(struct world *w, const char *text)
{
	put(w, text, strlen(text));
}

static void answer_script(struct world *w)
{
	char text[64], sha[HW_SHA_LEN + 1];
	memset(sha, (int)('a' + w->scripts++ % HW_SCRIPTS), HW_SHA_LEN);
	sha[HW_SHA_LEN] = '\0';
	snprintf(text, sizeof(text), "$40\r\n%s\r\n", sha);
	put_text(w, text);
}

static void answer_eval(struct world *w, const redisReply *c)
{
	char text[HW_CALL_ITEMS * 4 + 16];
	size_t keys = c->elements > 2 ? strtoul(c->element[2]->str, NULL, 10) : 0, n = 0;
	switch (c->element[1]->str[0] - 'a') {
	case HW_SCRIPT_TRANSITION:
		n = (keys - 3) / 3;
		break;
	case HW_SCRIPT_REFRESH:
		n = (keys - 1) / 3;
		break;
	default:
		put_text(w, "$-1\r\n");
		return;
	}
	MUST(n <= HW_CALL_ITEMS);
	int len = snprintf(text, sizeof(text), "*%zu\r\n", n);
	for (; n > 0; n--)
		len += snprintf(text + len, sizeof(text) - (size_t)len, ":0\r\n");
	put_text(w, text);
}

static void answer_soundly(struct world *w, const redisReply *c)
{
	static const char device[] = "*15\r\n$6\r\nonline\r\n$13\r\n1700000000000\r\n$13\r\n1700000000000\r\n$-1\r\n"
				     "$9\r\nheartbeat\r\n$7\r\ndefault\r\n$4\r\nmqtt\r\n$13\r\n1700000000000\r\n"
				     "$-1\r\n$2\r\n87\r\n$-1\r\n$-1\r\n$8\r\n10.0.0.1\r\n$-1\r\n$7\r\n{\"a\":1}\r\n";
	const char *name = c->element[0]->str;
	if (strcmp(name, "SCRIPT") == 0)
		answer_script(w);
	else if (strcmp(name, "EVALSHA") == 0)
		answer_eval(w, c);
	else if (strcmp(name, "SCAN") == 0)
		put_text(w, "*2\r\n$1\r\n0\r\n*2\r\n$9\r\np:state:a\r\n$9\r\np:state:b\r\n");
	else if (strcmp(name, "HSCAN") == 0)
		put_text(w, "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$2\r\n{}\r\n");
	else if (strcmp(name, "HMGET") == 0)
		put_text(w, device);
	else if (strcmp(name, "PEXPIRE") == 0)
		put_text(w, ":1\r\n");
	else if (strcmp(name, "GET") == 0)
		put_text(w, "$30\r\n0123456789abcdef 1700000000000\r\n");
	else
		put_text(w, strcmp(name, "PING") == 0 ? "+PONG\r\n" : "+OK\r\n");
}

/* Answers a command with the input's next record. */
static void answer(struct world *w, const redisReply *c)
{
	bool more = true;
	if (w->at == w->end) {
		answer_soundly(w, c);
		return;
	}
	while (more && w->fd >= 0 && w->at != w->end) {
		const uint8_t *stop = w->at;
		while (stop != w->end && *stop != RECORD_END && *stop != RECORD_MORE)
			stop++;
		more = stop != w->end && *stop == RECORD_MORE;
		if (stop == w->at && !more)
			answer_soundly(w, c);
		else
			put(w, w->at, (size_t)(stop - w->at));
		w->at = stop == w->end ? stop : stop + 1;
		event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
}

static void take_connection(struct world *w)
{
	int fd = accept4(w->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->commands)
		redisReaderFree(w->commands);
	w->fd = fd;
	w->commands = redisReaderCreate();
	w->scripts = 0;
	MUST(w->commands);
}

/* One turn of the server. Returns whether anything happened. */
static bool serve(struct world *w)
{
	char bytes[65536];
	void *command = NULL;
	bool any = false;
	take_connection(w);
	ssize_t n = w->fd >= 0 ? recv(w->fd, bytes, sizeof(bytes), 0) : -1;
	if (n == 0) {
		close(w->fd);
		w->fd = -1;
	}
	if (n > 0)
		MUST(redisReaderFeed(w->commands, bytes, (size_t)n) == REDIS_OK);
	while (w->fd >= 0 && redisReaderGetReply(w->commands, &command) == REDIS_OK && command) {
		redisReply *c = command;
		MUST(c->type == REDIS_REPLY_ARRAY && c->elements > 0);
		answer(w, c);
		freeReplyObject(c);
		any = true;
	}
	return any || n >= 0;
}

/* --- the daemon's side ------------------------------------------------------------------------------------------- */

static void on_link(void *arg, bool up, const char *why)
{
	(void)arg, (void)up;
	MUST(why && *why);
}

static void on_device(void *arg, struct hw_stored *s)
{
	struct world *w = arg;
	struct hw_out out;
	MUST(s->down_ms >= 0);
	hw_monitor_load(w->monitor, w->now, s);
	while (hw_monitor_caused(w->monitor, &out))
		;
}

static void on_outbox(void *arg, const char *id, size_t id_len, bool status)
{
	(void)arg, (void)status;
	MUST(id_len > 0 && id_len <= HW_ID_MAX && memchr(id, '\0', id_len) == NULL);
}

static void on_loaded(void *arg, uint64_t devices, uint64_t unusable, const char *first, bool complete)
{
	struct world *w = arg;
	(void)devices, (void)complete;
	MUST(unusable > 0 || !*first);
	w->loaded = true;
	hw_monitor_loaded(w->monitor);
}

static void on_confirmed(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct world *w = arg;
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(w->monitor), ref);
	if (d) {
		struct hw_id id = hw_device_id(d);
		if (hw_device_state(d) == HW_STATE_FORGOTTEN)
			hw_redis_cleared(w->redis, id.text, id.len);
		hw_redis_write_published(w->redis, 0, seq);
	}
}

static void on_newer(void *arg, struct hw_ref ref, uint64_t seq)
{
	struct world *w = arg;
	if (hw_monitor_adopt_seq(w->monitor, ref, seq))
		sink_rewrite(w->redis, ref);
}

static void on_published(void *arg, const uint64_t *p)
{
	(void)arg;
	for (unsigned k = 0; p && k < HW_PARTITIONS; k++)
		MUST(p[k] == HW_PUBLISHED_UNKNOWN || p[k] <= HW_SINCE_MAX);
}

static void on_trouble(void *arg, const char *what)
{
	(void)arg;
	MUST(what && *what && !strpbrk(what, "\r\n"));
}

static void on_emptied(void *arg)
{
	(void)arg;
}

static const struct hw_redis_ops ops = {.on_link = on_link,
                                        .on_device = on_device,
                                        .on_outbox = on_outbox,
                                        .on_loaded = on_loaded,
                                        .on_confirmed = on_confirmed,
                                        .on_newer = on_newer,
                                        .on_published = on_published,
                                        .on_trouble = on_trouble,
                                        .on_emptied = on_emptied};

/* Passes the core's outputs on, as the daemon does. */
static void pump_core(struct world *w)
{
	struct hw_out out;
	unsigned budget = 10000;
	while (hw_monitor_next(w->monitor, w->now, &budget, &out))
		if (out.kind == HW_OUT_TRANSITION)
			hw_redis_transition(w->redis, w->now, &out.transition);
		else if (out.kind == HW_OUT_REFRESH)
			hw_redis_refresh(w->redis, out.device);
		else if (out.kind == HW_OUT_REFRESH_LIGHT)
			hw_redis_refresh_light(w->redis, w->now, out.device);
}

/* Causes each kind of write to the store. */
static void live(struct world *w, unsigned step)
{
	static const char ids[DEVICES][2] = {"a", "b", "c", "d", "e"};
	struct hw_registry *devices = hw_monitor_registry(w->monitor);
	struct hw_payload p;
	const char *id = ids[step % DEVICES];
	const char *text = *id == 'e' ? "" /* its refreshes become plain */
	                   : step % 2 ? "{\"online\":false}"
	                              : "{\"battery\":1,\"data\":[1]}";
	hw_payload_decode(&p, text, strlen(text));
	hw_monitor_heartbeat(w->monitor, w->now, 0, id, 1, &p);
	hw_payload_fini(&p);
	if (step == 3)
		hw_monitor_forget(w->monitor, w->now, "b", 1);
	pump_core(w);
	uint32_t index = hw_registry_find(devices, id, 1);
	if (index != HW_NIL) {
		hw_redis_refresh(w->redis, hw_registry_ref(devices, index));
		if (step == 4)
			sink_rewrite(w->redis, hw_registry_ref(devices, index));
	}
	hw_redis_seen(w->redis, w->now, false);
	w->now.mono.ns += HW_NS_PER_S;
	w->now.wall_ms += 1000;
}

/* --- one input --------------------------------------------------------------------------------------------------- */

static bool idle(const struct world *w)
{
	return w->loaded && hw_redis_up(w->redis) && sink_is_idle(w->redis);
}

static bool fire(struct event *e)
{
	if (!e || !event_pending(e, EV_TIMEOUT, NULL))
		return false;
	event_active(e, EV_TIMEOUT, 0);
	return true;
}

/* Fires the timers. If nothing happens for STUCK_TURNS turns nevertheless, closes the connection to Redis. */
static void pass_time(struct world *w)
{
	struct hw_redis *r = w->redis;
	bool any = fire(r->link.retry);
	any |= fire(r->sink.retry);
	any |= fire(r->sink.gather);
	any |= fire(r->load.again);
	fire(r->sink.sweep_timer); /* again and again */
	w->stuck = any || idle(w) || w->fd < 0 ? 0 : w->stuck + 1;
	if (w->stuck < STUCK_TURNS)
		return;
	close(w->fd);
	w->fd = -1;
}

/* Until the input is used up and all is quiet. */
static void run(struct world *w)
{
	unsigned step = 0;
	for (int turns = 0; turns < TURNS_MAX; turns++) {
		event_base_loop(w->base, EVLOOP_NONBLOCK);
		pump_core(w);
		if (serve(w))
			continue;
		if (idle(w) && step == STEPS && w->at == w->end)
			return;
		if (w->loaded && step < STEPS)
			live(w, step++);
		else if (w->at != w->end && idle(w))
			hw_redis_seen(w->redis, w->now, false); /* a question for the next record */
		pass_time(w);
	}
	/* The client may be busy only if it gets answers for ever that it did not ask for. */
	MUST(w->at != w->end || idle(w));
}

static void start(struct world *w, const char *path)
{
	static const char *const heartbeat[] = {"nodes/{id}/heartbeat"};
	const struct hw_group_spec group = {.name = "default",
	                                    .heartbeat = heartbeat,
	                                    .n_heartbeat = 1,
	                                    .timeout_ms = 30000,
	                                    .timeout_max_ms = 86400000};
	const struct hw_monitor_conf conf = {.max_devices = 100,
	                                     .barrier_slow_ms = 250,
	                                     .barrier_timeout_ms = 5000,
	                                     .readers = 1,
	                                     .ttl_factor = 3,
	                                     .loading = true};
	const struct hw_redis_conf redis = {.at.host = "",
	                                    .at.unix_socket = path,
	                                    .at.username = "u",
	                                    .at.password = "p",
	                                    .at.db = 1,
	                                    .key_prefix = "p:",
	                                    .node_id = "n",
	                                    .ttl_factor = 3,
	                                    .events_max = 100,
	                                    .run_id = 1};
	const uint8_t key[16] = "sixteen bytes..";
	w->monitor = hw_monitor_new(&conf, &group, 1, key, w->now);
	MUST(w->monitor);
	w->redis = hw_redis_new(w->base, &redis, w->monitor, &ops, w);
	MUST(w->redis);
	hw_redis_load(w->redis);
}

static int listen_on(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 8) == 0);
	return fd;
}

static void remove_dir(void)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/s", dir);
	unlink(path);
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int listener = -1; /* of the process, as the directory is */
	char path[64];
	if (listener < 0)
		MUST(mkdtemp(dir) && atexit(remove_dir) == 0);
	snprintf(path, sizeof(path), "%s/s", dir);
	if (listener < 0) {
		signal(SIGPIPE, SIG_IGN);
		listener = listen_on(path);
	}
	struct world w = {.listener = listener, .fd = -1, .at = data, .end = data + size};
	w.now = (struct hw_now){.mono = {1000 * HW_NS_PER_S}, .wall_ms = INT64_C(1700000000000)};
	w.base = event_base_new();
	MUST(w.base);
	start(&w, path);
	run(&w);
	hw_redis_free(w.redis);
	hw_monitor_free(w.monitor);
	event_base_free(w.base);
	take_connection(&w);
	if (w.fd >= 0)
		close(w.fd);
	if (w.commands)
		redisReaderFree(w.commands);
	return 0;
}
