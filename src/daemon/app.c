/* SPDX-License-Identifier: MIT */
/*
 * The context and the loop. See app.h. What is made in hw_app_new(), hw_app_listen() and hw_app_start() is freed in
 * hw_app_free() in the reverse order.
 */
#include "app.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "process.h"

#define RING_BYTES           (8u << 20) /* of messages between a reader and the loop */
#define DISCOVERIES_A_SECOND 1000       /* Home Assistant makes an entity of each */
#define SUSPENDED_NS         (500 * HW_NS_PER_MS)
#define LOAD_PATIENCE_NS     (5 * HW_NS_PER_S) /* without Redis at the start, what is heard is news after this */
#define REFUSED_RETRY_MS     60000

static const double detection_bounds[] = {.01, .02, .033, .05, .1, .25, 1, 5};
static const double turn_bounds[] = {.0001, .0005, .001, .005, .01, .05, .1, .5, 1};
static const double cpu_bounds[] = {.0005, .001, .002, .003, .004, .005, .006, .008, .01, .02, .05, .1};

/* --- time -------------------------------------------------------------------- */

static int64_t read_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * HW_NS_PER_S + t.tv_nsec;
}

struct hw_now hw_app_now(void)
{
	return (struct hw_now){.mono = {read_clock(CLOCK_MONOTONIC)},
	                       .wall_ms = read_clock(CLOCK_REALTIME) / HW_NS_PER_MS};
}

/* A machine that slept has BOOTTIME run ahead of MONOTONIC. Looked at before anything is judged. */
static void check_suspend(struct hw_app *a, struct hw_now now)
{
	int64_t ahead = read_clock(CLOCK_BOOTTIME) - now.mono.ns;
	if (a->boot_checked.ns && ahead - a->boot_ahead_ns > SUSPENDED_NS) {
		hw_log(a->log, HW_LOG_WARNING, "the machine was suspended for %.1f s",
		       (double)(ahead - a->boot_ahead_ns) / 1e9);
		hw_monitor_suspended(a->monitor, now, a->boot_checked);
	}
	a->boot_ahead_ns = ahead;
	a->boot_checked = now.mono;
}

struct hw_now hw_app_woke(struct hw_app *a)
{
	struct hw_now now = hw_app_now();
	a->wakeups++;
	a->turn_began = now.mono;
	check_suspend(a, now);
	int64_t late_ns = now.mono.ns - a->planned.ns;
	if (a->planned.ns && late_ns > a->start->stall_after_ms * HW_NS_PER_MS) {
		hw_monitor_stall(a->monitor, now, a->planned);
		for (unsigned i = 0; i < a->n_readers; i++) {
			a->reader[i].behind = a->reader[i].stalled = true;
			hw_reader_drain(a->reader[i].reader);
			event_active(a->reader[i].readable, EV_READ, 0);
		}
	}
	a->planned.ns = 0;
	return now;
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hw_app_woke(arg);
	hw_app_turn(arg);
}

/* --- each second ------------------------------------------------------------- */

static void tell_refused(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	for (int k = 0; k < HW_REFUSED_KINDS; k++) {
		uint64_t fresh = s->refused[k] - a->refused_told[k];
		bool expected = k == HW_REFUSED_RETAINED || k == HW_REFUSED_MONITOR;
		if (fresh == 0)
			continue;
		if (a->refused_quiet_s[k] > 0) {
			a->refused_quiet_s[k]--;
			continue;
		}
		hw_log(a->log, expected ? HW_LOG_DEBUG : HW_LOG_WARNING, "refused %llu message%s (%s)%s",
		       (unsigned long long)fresh, fresh == 1 ? "" : "s", hw_refused_name((enum hw_refused)k),
		       k == HW_REFUSED_MAX_DEVICES ? ": the table is full; raise [monitor] max_devices" : "");
		a->refused_told[k] = s->refused[k];
		a->refused_quiet_s[k] = 10;
	}
}

/* Redis that is not there at the start must not keep the monitor from its work for long. */
static void check_loading(struct hw_app *a, struct hw_now now)
{
	if (!a->loading || a->redis_ever_up || now.mono.ns - a->started.ns < LOAD_PATIENCE_NS)
		return;
	hw_log(a->log, HW_LOG_WARNING,
	       "Redis is not there: going on with what is heard; devices that died before the start are found when it "
	       "returns");
	a->loading = false;
	hw_monitor_loaded(a->monitor);
	hw_app_republish(a, now);
}

static void tell_manager(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	const struct hw_blind *b = hw_monitor_blind(a->monitor);
	char text[sizeof a->manager_told];
	snprintf(text, sizeof text, "STATUS=%u online, %u offline%s%s", s->count[HW_STATE_ONLINE],
	         s->count[HW_STATE_OFFLINE], hw_blind_now(b) ? ", blind: " : "",
	         hw_blind_now(b) ? hw_cause_name(b->first) : "");
	if (strcmp(text, a->manager_told) == 0)
		return;
	memcpy(a->manager_told, text, sizeof text);
	hw_notify(text);
}

static void check_stop(struct hw_app *a, struct hw_now now)
{
	bool written = !a->redis || hw_redis_stats(a->redis)->edges_waiting == 0;
	bool idle = written && hw_owed_idle(&a->status) && hw_owed_idle(&a->discovery) && !a->presence_due &&
	            hw_notifier_idle(a->notifier);
	if (!a->stopping || (!idle && now.mono.ns < a->stop_by.ns))
		return;
	if (!idle) {
		int64_t oldest;
		hw_log(a->log, HW_LOG_WARNING,
		       "stopping with %llu devices still owed: stop_timeout is over; Redis keeps what was written",
		       (unsigned long long)hw_app_owed(a, now, &oldest));
	}
	event_base_loopbreak(a->base);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	hw_notify("WATCHDOG=1");
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	(void)fd;
	(void)what;
	check_loading(a, now);
	hw_app_release(a, now);
	tell_refused(a);
	tell_manager(a);
	hw_control_tick(a->control, now);
	if (a->redis && !a->loading)
		hw_redis_seen(a->redis, now, hw_blind_now(hw_monitor_blind(a->monitor)));
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	if (a->status.refused_since_ms && now_ms - a->status.refused_since_ms > REFUSED_RETRY_MS)
		hw_owed_republish(&a->status, now_ms);
	if (a->discovery.refused_since_ms && now_ms - a->discovery.refused_since_ms > REFUSED_RETRY_MS)
		hw_owed_republish(&a->discovery, now_ms);
	hw_app_turn(a);
	check_stop(a, now);
}

/* --- signals ----------------------------------------------------------------- */

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	(void)what;
	if (a->stopping) {
		event_base_loopbreak(a->base);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_notify("STOPPING=1");
	a->stopping = true;
	a->presence_due = a->publisher_up;
	hw_notifier_flush(a->notifier);
	a->status.sweeping = a->discovery.sweeping = false;
	a->discovery.line.rate = 0; /* what is in line now goes as fast as it can */
	a->stop_by = hw_mono_add(now.mono, a->start->stop_timeout_ms * HW_NS_PER_MS);
	for (unsigned i = 0; i < a->n_readers; i++) {
		event_del(a->reader[i].readable);
		event_del(a->reader[i].again);
	}
	struct timeval soon = {0, 20000};
	event_add(a->tick, &soon);
	hw_app_turn(a);
}

static void on_reload(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hw_app_woke(arg);
	hw_app_reload_on_signal(arg);
	hw_app_turn(arg);
}

static void on_reopen(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	int rc = hw_log_reopen(a->log);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot reopen %s: %s; logging goes on where it was", a->conf->log,
		       strerror(-rc));
	else
		hw_log(a->log, HW_LOG_NOTICE, "log reopened");
}

/* --- making and ending ------------------------------------------------------- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hw_app_on_reader(arg);
}

static void on_publisher(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hw_app_on_publisher(arg);
}

/* errno says why not: libevent leaves it as it is where memory is short. */
static bool make_events(struct hw_app *a)
{
	errno = ENOMEM;
	struct event_config *c = event_config_new();
	if (!c)
		return false;
	event_config_set_flag(c, EVENT_BASE_FLAG_PRECISE_TIMER);
	a->base = event_base_new_with_config(c);
	event_config_free(c);
	if (!a->base)
		return false;
	errno = ENOMEM;
	a->due = evtimer_new(a->base, on_due, a);
	a->tick = event_new(a->base, -1, EV_PERSIST, on_tick, a);
	a->watchdog = event_new(a->base, -1, EV_PERSIST, on_watchdog, NULL);
	a->on_term = evsignal_new(a->base, SIGTERM, on_stop, a);
	a->on_int = evsignal_new(a->base, SIGINT, on_stop, a);
	a->on_hup = evsignal_new(a->base, SIGHUP, on_reload, a);
	a->on_usr1 = evsignal_new(a->base, SIGUSR1, on_reopen, a);
	return a->due && a->tick && a->watchdog && a->on_term && a->on_int && a->on_hup && a->on_usr1;
}

static bool make_monitor(struct hw_app *a)
{
	uint8_t key[16];
	if (getrandom(key, sizeof key, 0) != sizeof key ||
	    getrandom(&a->run_mark, sizeof a->run_mark, 0) != sizeof a->run_mark)
		return false;
	errno = ENOMEM;
	struct hw_group_spec *specs = hw_app_group_specs(a->conf);
	struct hw_monitor_conf mc = hw_app_monitor_conf(a->conf);
	if (specs)
		a->monitor = hw_monitor_new(&mc, specs, a->conf->n_groups, key, hw_app_now());
	free(specs);
	return a->monitor != NULL;
}

struct hw_app *hw_app_new(struct hw_log *log, struct hw_conf *conf)
{
	struct hw_app *a = calloc(1, sizeof *a);
	if (!a) {
		hw_conf_free(conf);
		goto failed;
	}
	a->log = log;
	a->conf = a->start = conf;
	a->started = hw_app_now().mono;
	a->n_readers = (unsigned)conf->readers;
	a->loading = conf->store == HW_STORE_REDIS;
	a->blind_told = true;
	a->blind_cause = HW_CAUSE_LINK;
	a->detection = (struct hw_histogram){.bounds = detection_bounds,
	                                     .n = sizeof detection_bounds / sizeof *detection_bounds};
	a->turn = (struct hw_histogram){.bounds = turn_bounds, .n = sizeof turn_bounds / sizeof *turn_bounds};
	a->turn_cpu = (struct hw_histogram){.bounds = cpu_bounds, .n = sizeof cpu_bounds / sizeof *cpu_bounds};
	hw_owed_init(&a->status, &hw_status_kind);
	hw_owed_init(&a->discovery, &hw_discovery_kind);
	snprintf(a->barrier_topic, sizeof a->barrier_topic, "heartwheel/%s/barrier", conf->node_id);
	snprintf(a->presence_topic, sizeof a->presence_topic, "heartwheel/%s/status", conf->node_id);
	if (!make_events(a) || !make_monitor(a))
		goto failed;
	a->notifier = hw_notifier_new(a->base, a->monitor, hw_app_notify_trouble, a);
	if (!a->notifier)
		goto failed;
	a->status.m = a->monitor;
	a->status.node_id = conf->node_id;
	a->status.sweep.rate = conf->republish_rate;
	a->status.on_published = hw_app_published;
	a->status.arg = a;
	a->discovery.m = a->monitor;
	a->discovery.sweep.rate = a->discovery.line.rate = DISCOVERIES_A_SECOND;
	a->discovery.on_published = hw_app_discovered;
	a->discovery.arg = a;
	return a;
failed:
	hw_log(log, HW_LOG_ERROR, "cannot start: %s", strerror(errno ? errno : ENOMEM));
	hw_app_free(a);
	return NULL;
}

static void free_event(struct event *e)
{
	if (e)
		event_free(e);
}

void hw_app_free(struct hw_app *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->n_readers; i++) {
		free_event(a->reader[i].readable);
		free_event(a->reader[i].again);
		if (a->reader[i].reader)
			hw_reader_stop(a->reader[i].reader);
	}
	free_event(a->publisher_readable);
	if (a->publisher)
		hw_publisher_stop(a->publisher, 1000);
	if (a->control)
		hw_control_free(a->control);
	if (a->redis)
		hw_redis_free(a->redis);
	hw_keyspace_free(a->keyspace);
	hw_notifier_free(a->notifier);
	hw_owed_fini(&a->status);
	hw_owed_fini(&a->discovery);
	hw_monitor_free(a->monitor);
	free_event(a->due);
	free_event(a->tick);
	free_event(a->watchdog);
	free_event(a->on_term);
	free_event(a->on_int);
	free_event(a->on_hup);
	free_event(a->on_usr1);
	if (a->base)
		event_base_free(a->base);
	free(a->mqtt_password);
	free(a->redis_password);
	if (a->conf != a->start)
		hw_conf_free(a->conf);
	hw_conf_free(a->start);
	free(a);
}

/* A password from its file. 0, or -errno after logging. */
static int read_secret(struct hw_app *a, const char *key, const char *path, char **out)
{
	if (!path[0])
		return 0;
	*out = hw_conf_read_secret(path);
	if (*out)
		return 0;
	int error = errno;
	hw_log(a->log, HW_LOG_ERROR, "cannot read %s %s: %s", key, path, strerror(error));
	return error ? -error : -EIO;
}

/* The address for reading alone, where one is set. */
static int listen_remote(struct hw_app *a)
{
	const char *address = a->start->http_listen;
	bool local;
	if (!*address)
		return 0;
	int rc = hw_control_listen(a->control, address, &local);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot listen on %s: %s; see [http] listen", address, strerror(-rc));
	else if (!local)
		hw_log(a->log, HW_LOG_WARNING,
		       "%s is not a loopback address: whoever reaches it can read every device's state, unencrypted; "
		       "see "
		       "[http] listen",
		       address);
	return rc;
}

int hw_app_listen(struct hw_app *a)
{
	const struct hw_conf *c = a->start;
	int rc = read_secret(a, "[mqtt] password_file", c->mqtt_password_file, &a->mqtt_password);
	if (!rc)
		rc = read_secret(a, "[redis] password_file", c->redis_password_file, &a->redis_password);
	if (rc)
		return rc;
	const struct hw_control_ops *ops =
		c->store == HW_STORE_REDIS ? &hw_app_control_ops : &hw_app_control_ops_memory;
	rc = hw_control_new(&a->control, a->base, c->http_socket, c->http_socket_group, a->monitor, ops, a);
	if (rc == -EADDRINUSE)
		hw_log(a->log, HW_LOG_ERROR,
		       "control socket %s is in use by another process: stop it, or set [http] socket", c->http_socket);
	else if (rc)
		hw_log(a->log, HW_LOG_ERROR,
		       "cannot open the control socket %s: %s; see [http] socket and socket_group", c->http_socket,
		       strerror(-rc));
	return rc ? rc : listen_remote(a);
}

static struct hw_mqtt_conf mqtt_conf(const struct hw_app *a, const char *client_id)
{
	const struct hw_conf *c = a->start;
	return (struct hw_mqtt_conf){.host = c->mqtt_host,
	                             .port = (int)c->mqtt_port,
	                             .protocol = c->protocol,
	                             .keepalive_s = (int)((c->keepalive_ms + 999) / 1000),
	                             .username = c->mqtt_username,
	                             .password = a->mqtt_password ? a->mqtt_password : "",
	                             .tls_ca = c->tls_ca,
	                             .tls_cert = c->tls_cert,
	                             .tls_key = c->tls_key,
	                             .client_id = client_id,
	                             .barrier_topic = a->barrier_topic,
	                             .qos = (int)c->qos};
}

static int start_reader(struct hw_app *a, unsigned i, const struct hw_mqtt_filter *filters, size_t n)
{
	struct hw_app_reader *r = &a->reader[i];
	r->app = a;
	r->number = i;
	snprintf(r->client_id, sizeof r->client_id, "%s-%s-r%u", a->start->client_id_prefix, a->start->node_id, i);
	r->conf = mqtt_conf(a, r->client_id);
	snprintf(a->share_group, sizeof a->share_group, "heartwheel-%s", a->start->node_id);
	int rc = hw_reader_start(&r->reader, &r->conf, filters, n, a->n_readers > 1 ? a->share_group : NULL, RING_BYTES,
	                         a->start->stall_after_ms);
	if (rc)
		return rc;
	r->readable = event_new(a->base, hw_reader_fd(r->reader), EV_READ | EV_PERSIST, on_readable, r);
	r->again = evtimer_new(a->base, on_readable, r);
	return r->readable && r->again && event_add(r->readable, NULL) == 0 ? 0 : -ENOMEM;
}

static int start_mqtt(struct hw_app *a)
{
	char will[1024];
	snprintf(a->publisher_id, sizeof a->publisher_id, "%s-%s-pub", a->start->client_id_prefix, a->start->node_id);
	a->publisher_conf = mqtt_conf(a, a->publisher_id);
	int len = hw_app_presence_payload(a, hw_app_now(), false, will, sizeof will);
	if (len < 0)
		return -EINVAL;
	int rc = hw_publisher_start(&a->publisher, &a->publisher_conf, a->presence_topic, will, (size_t)len);
	if (rc)
		return rc;
	a->status.publisher = a->publisher;
	a->discovery.publisher = a->publisher;
	a->publisher_readable =
		event_new(a->base, hw_publisher_fd(a->publisher), EV_READ | EV_PERSIST, on_publisher, a);
	if (!a->publisher_readable || event_add(a->publisher_readable, NULL))
		return -ENOMEM;
	struct hw_mqtt_filter *filters;
	size_t n;
	rc = hw_app_filters(a, &filters, &n);
	if (rc)
		return rc;
	for (unsigned i = 0; i < a->n_readers && !rc; i++)
		rc = start_reader(a, i, filters, n);
	free(filters);
	return rc;
}

static int start_redis(struct hw_app *a)
{
	const struct hw_conf *c = a->start;
	if (c->store != HW_STORE_REDIS)
		return 0;
	a->redis_conf = (struct hw_redis_conf){.host = c->redis_host,
	                                       .port = (int)c->redis_port,
	                                       .unix_socket = c->redis_unix_socket,
	                                       .db = (int)c->redis_db,
	                                       .username = c->redis_username,
	                                       .password = a->redis_password ? a->redis_password : "",
	                                       .key_prefix = c->key_prefix,
	                                       .node_id = c->node_id,
	                                       .ttl_factor = (int)c->ttl_factor,
	                                       .events_max = c->events_max,
	                                       .run_mark = a->run_mark,
	                                       .keyspace = c->keyspace_enabled};
	a->redis = hw_redis_new(a->base, &a->redis_conf, a->monitor, &hw_app_redis_ops, a);
	if (!a->redis)
		return -ENOMEM;
	hw_redis_load(a->redis);
	if (!c->keyspace_enabled)
		return 0;
	const struct hw_keyspace_conf keyspace = {.redis = &a->redis_conf, .configure = c->keyspace_configure};
	a->keyspace = hw_keyspace_new(a->base, &keyspace, a->redis, a->monitor, &hw_app_keyspace_ops, a);
	return a->keyspace ? 0 : -ENOMEM;
}

int hw_app_start(struct hw_app *a)
{
	struct timeval second = {1, 0};
	int rc = 0;
	long feed_ms = hw_watchdog_ms();
	struct timeval feed = {feed_ms / 1000, feed_ms % 1000 * 1000};
	if (feed_ms > 0 && event_add(a->watchdog, &feed))
		rc = -ENOMEM;
	if (event_add(a->tick, &second) || event_add(a->on_term, NULL) || event_add(a->on_int, NULL) ||
	    event_add(a->on_hup, NULL) || event_add(a->on_usr1, NULL))
		rc = -ENOMEM;
	if (!rc)
		rc = hw_app_configure_notifier(a, a->start);
	if (!rc)
		rc = start_redis(a);
	if (!rc)
		rc = start_mqtt(a);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	hw_control_tick(a->control, hw_app_now()); /* the first sample is there before anybody can ask */
	return rc;
}
