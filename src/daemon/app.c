/* SPDX-License-Identifier: MIT */
/* The daemon's context and its loop. See app.h. hw_app_free() frees all parts in the reverse order of their creation.
 */
#include "app.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "conf/file.h"
#include "context.h"
#include "daemon/broker/broker.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/reload.h"
#include "daemon/config/specs.h"
#include "daemon/inventory/inventory.h"
#include "daemon/loop/reports.h"
#include "daemon/loop/turn.h"
#include "daemon/loop/wall_clock.h"
#include "daemon/retained/presence.h"
#include "daemon/retained/published.h"
#include "daemon/retained/retained.h"
#include "daemon/store/keys.h"
#include "daemon/store/pending.h"
#include "daemon/store/prefix_guard.h"
#include "daemon/store/store.h"
#include "daemon/visibility/probes.h"
#include "daemon/visibility/sightings.h"
#include "daemon/visibility/unjudged.h"
#include "daemon/visibility/visibility.h"
#include "http/server.h"
#include "observe.h"
#include "run/manager.h"

/* at a start without Redis, the daemon waits this long for the store, and makes no transition meanwhile */
#define LOAD_PATIENCE_NS  (5 * HW_NS_PER_S)
#define RESTART_WITHIN_MS 2000 /* another node owns the fleet now, so the wait is short */

/* --- stop -------------------------------------------------------------------- */

/* Begins a clean stop: sends the pending writes and publishes, and releases the partitions. The stop takes at most
 * `within_ms`. */
static void begin_stop(struct hw_app *a, struct hw_now now, int64_t within_ms)
{
	a->life.stopping = true;
	hw_app_presence_set_due(a, hw_app_publisher_is_up(a));
	hw_app_retained_end(a);
	a->life.stop_by = hw_mono_add(now.mono, within_ms * HW_NS_PER_MS);
	hw_app_feed_stop(a);
	hw_app_sightings_end(a, now);
	hw_app_cluster_stop(a, now);
	hw_loop_tick_every(&a->loop, 20);
	hw_app_turn(a);
}

static void on_due(evutil_socket_t fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	if (a->life.restarts && !a->life.stopping) {
		hw_app_readers_end(a);
		begin_stop(a, hw_app_woke(a), RESTART_WITHIN_MS);
		return;
	}
	if (hw_app_read_on(a))
		return;
	hw_app_woke(a);
	hw_app_turn(a);
}

/* --- each second ------------------------------------------------------------- */

/* Called each second. If Redis was not reached within LOAD_PATIENCE_NS of the start, the daemon begins without the
 * stored devices. */
static void check_loading(struct hw_app *a, struct hw_now now)
{
	if (!a->life.loading || hw_app_redis_was_up(a) || a->start->cluster_mode == HW_CLUSTER_STANDBY ||
	    now.mono.ns - a->life.started.ns < LOAD_PATIENCE_NS)
		return;
	hw_log(a->log, HW_LOG_WARNING,
	       "Redis cannot be reached; each device is watched from its first heartbeat on; a device that stopped "
	       "before this start is detected only after Redis returns; check Redis");
	a->life.loading = false;
	hw_monitor_loaded(a->monitor);
	hw_app_republish(a, now);
}

/* Ends a stop when no write and no publish is pending, or when its time is over. The stop also waits until Redis has
 * stored which statuses the broker has acknowledged. Otherwise the next run would publish these statuses again, before
 * all others. */
static void check_stop(struct hw_app *a, struct hw_now now)
{
	bool written = !a->redis || (hw_redis_stats(a->redis)->waiting == 0 && hw_redis_sightings_idle(a->redis) &&
	                             hw_app_published_idle(a));
	bool idle = written && hw_app_retained_idle(a) && hw_app_cluster_stopped(a);
	if (a->life.restarts && a->life.stopping && hw_app_standby_is_ending(a)) {
		if (hw_app_standby_ended(a, now))
			hw_loop_stop(&a->loop);
		return;
	}
	if (!a->life.stopping || (!(idle && hw_prefix_guard_has_left(a)) && now.mono.ns < a->life.stop_by.ns))
		return;
	if (!idle && !a->life.restarts) {
		int64_t oldest;
		hw_log(a->log, HW_LOG_WARNING,
		       "stop_timeout is over: heartwheeld stops although Redis or the broker has not confirmed the "
		       "states of %llu devices; the next start "
		       "publishes them from Redis",
		       (unsigned long long)hw_app_pending(a, now, &oldest));
	}
	hw_app_presence_end(a, now);
	if (a->life.restarts)
		hw_app_standby_end(a, now);
	else
		hw_loop_stop(&a->loop);
}

static void each_second(struct hw_app *a, struct hw_now now)
{
	a->life.second = now.mono;
	check_loading(a, now);
	hw_app_broker_tick(a, now);
	hw_app_release(a, now);
	hw_app_upstream_tick(a, hw_app_now());
	hw_app_reports_tick(a);
	hw_app_wall_clock_tick(a);
	hw_control_tick(a->control, now);
	if (a->redis)
		hw_redis_tick(a->redis);
	hw_prefix_guard_tick(a);
	if (a->redis && !a->life.loading) {
		hw_app_keep_canaries(a);
		hw_redis_seen(a->redis, now, hw_monitor_blindness(a->monitor).blind);
	}
	hw_app_groups_tick(a, now);
	hw_app_sightings_tick(a, now);
	hw_app_cluster_tick(a, now);
	hw_app_unjudged_tick(a, now);
	hw_app_left_out_tick(a, now);
	hw_app_retained_tick(a, now);
	hw_app_inventory_tick(a, now);
}

/* Called at each tick. During a stop the ticks are shorter, so that the daemon ends soon after the last confirmation.
 * Work that is due each second is still done once a second. */
static void on_tick(void *arg)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	if (!a->life.stopping || now.mono.ns - a->life.second.ns >= HW_NS_PER_S)
		each_second(a, now);
	/* If the timer could not be set for lack of memory, this tick does the loop's work. */
	if (!hw_app_read_on(a))
		hw_app_turn(a);
	check_stop(a, now);
}

/* --- signals ----------------------------------------------------------------- */

static void on_stop(void *arg, int number)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	if (a->life.stopping && !a->life.restarts) {
		hw_loop_stop(&a->loop);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_notify("STOPPING=1");
	a->life.restarts = false;
	begin_stop(a, now, a->start->stop_timeout_ms);
}

static void on_reload(void *arg)
{
	hw_app_woke(arg);
	hw_app_reload_on_signal(arg);
	hw_app_turn(arg);
}

static void on_reopen(void *arg)
{
	hw_log_reopen(((struct hw_app *)arg)->log);
}

/* --- new and free ------------------------------------------------------------ */

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick,
	.on_stop = on_stop,
	.on_reload = on_reload,
	.on_reopen = on_reopen,
	.on_turn = hw_app_turn_begins,
	.on_turned = hw_app_turned,
};

static int make_monitor(struct hw_app *a)
{
	uint8_t key[16];
	if (getrandom(key, sizeof(key), 0) != sizeof(key) ||
	    getrandom(&a->life.run_id, sizeof(a->life.run_id), 0) != sizeof(a->life.run_id))
		return -errno;
	struct hw_group_spec *specs = hw_app_group_specs(a->conf);
	struct hw_monitor_conf mc = hw_app_monitor_conf(a->conf, hw_app_probe_answers(a));
	if (specs)
		a->monitor = hw_monitor_new(&mc, specs, a->conf->n_groups, key, hw_app_now());
	free(specs);
	return a->monitor ? 0 : -ENOMEM;
}

/* Returns 0 or -errno. */
static int make_parts(struct hw_app *a)
{
	static int (*const makes[])(struct hw_app *) = {
		hw_app_broker_new,     hw_app_store_new,      hw_app_probes_new,   hw_app_reports_new,
		hw_app_visibility_new, hw_app_wall_clock_new, hw_prefix_guard_new, make_monitor,
		hw_app_retained_new,   hw_app_inventory_new};
	int rc = hw_loop_init(&a->loop, &loop_ops, a);
	if (!rc)
		rc = hw_app_turn_new(a, on_due);
	for (size_t k = 0; k < sizeof(makes) / sizeof(*makes) && !rc; k++)
		rc = makes[k](a);
	return rc;
}

struct hw_app *hw_app_new(struct hw_log *log, struct hw_settings *conf)
{
	struct hw_app *a = calloc(1, sizeof(*a));
	int rc = -ENOMEM;
	if (a) {
		a->log = log;
		a->conf = a->start = conf;
		a->life.started = hw_app_now().mono;
		a->life.stands_by = conf->cluster_mode == HW_CLUSTER_STANDBY;
		a->life.loading = conf->store == HW_STORE_REDIS;
		rc = make_parts(a);
	} else {
		hw_conf_free(conf);
	}
	if (!rc)
		return a;
	hw_log(log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	hw_app_free(a);
	return NULL;
}

/* Frees everything except the running configuration, which it returns. */
static struct hw_settings *take_apart(struct hw_app *a)
{
	struct hw_settings *conf = a->conf;
	hw_app_broker_close(a);
	hw_app_cluster_free(a);
	if (a->control)
		hw_control_free(a->control);
	if (a->redis)
		hw_redis_free(a->redis);
	hw_keyspace_free(a->keyspace);
	hw_app_inventory_free(a);
	hw_app_probes_free(a);
	hw_app_visibility_free(a);
	hw_app_retained_free(a);
	hw_monitor_free(a->monitor);
	hw_app_broker_free(a);
	hw_app_turn_free(a);
	hw_loop_fini(&a->loop);
	free(a->reports);
	free(a->store);
	free(a->wall_clock);
	free(a->guard);
	free(a->life.mqtt_password);
	free(a->life.redis_password);
	if (a->start != conf)
		hw_conf_free(a->start);
	free(a);
	return conf;
}

void hw_app_free(struct hw_app *a)
{
	if (a)
		hw_conf_free(take_apart(a));
}

/* Reads a password from its file. Returns 0, or -errno after logging. */
static int read_secret(struct hw_app *a, const char *key, const char *path, char **out)
{
	if (!path[0])
		return 0;
	*out = hw_conf_read_secret(path);
	if (*out)
		return 0;
	int error = errno;
	hw_log(a->log, HW_LOG_ERROR, "cannot read %s %s: %s", key, path, hw_file_error(error));
	return error ? -error : -EIO;
}

static void on_wrong_safety(void *arg, const char *key, unsigned line, const char *what)
{
	const struct hw_app *a = arg;
	if (line)
		hw_log(a->log, HW_LOG_ERROR, "%s:%u: %s; see [http] %s", a->start->http_users, line, what, key);
	else
		hw_log(a->log, HW_LOG_ERROR, "%s; see [http] %s", what, key);
}

static int listen_remote(struct hw_app *a)
{
	const char *address = a->start->http_listen;
	struct hw_http_safety safety = HW_SETTINGS_SAFETY(a->start);
	bool local;
	if (!*address)
		return 0;
	int rc = hw_control_secure(a->control, &safety, on_wrong_safety, a);
	if (rc)
		return rc;
	rc = hw_control_listen(a->control, address, &local);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot listen on %s: %s; see [http] listen", address, strerror(-rc));
	else if (!local && !*safety.users)
		hw_log(a->log, HW_LOG_WARNING,
		       "%s is not a loopback address: anybody who can reach it reads each device's state%s; see [http] "
		       "listen and users",
		       address, *safety.tls_cert ? "" : ", unencrypted");
	return rc;
}

static const struct hw_control_ops *control_ops(const struct hw_settings *c)
{
	if (c->store != HW_STORE_REDIS)
		return &hw_app_control_ops_memory;
	return c->cluster_mode == HW_CLUSTER_OFF      ? &hw_app_control_ops
	       : c->cluster_mode == HW_CLUSTER_MIRROR ? &hw_app_control_ops_nodes
	                                              : &hw_app_control_ops_standby;
}

int hw_app_listen(struct hw_app *a)
{
	const struct hw_settings *c = a->start;
	int rc = read_secret(a, "[mqtt] password_file", c->mqtt.password_file, &a->life.mqtt_password);
	if (!rc)
		rc = read_secret(a, "[redis] password_file", c->redis.password_file, &a->life.redis_password);
	if (rc)
		return rc;
	rc = hw_control_new(&a->control, a->loop.base, c->http_socket, c->http_socket_group, a->monitor, control_ops(c),
	                    a);
	if (rc == -EADDRINUSE)
		hw_log(a->log, HW_LOG_ERROR,
		       "control socket %s is in use by another process: stop it, or set [http] socket", c->http_socket);
	else if (rc)
		hw_log(a->log, HW_LOG_ERROR,
		       "cannot open the control socket %s: %s; see [http] socket and socket_group", c->http_socket,
		       hw_socket_error(-rc));
	if (!rc)
		rc = hw_control_proxy_to(a->control, c->tasks_socket, c->history_socket, c->alert_socket);
	return rc ? rc : listen_remote(a);
}

int hw_app_start(struct hw_app *a)
{
	hw_app_wall_clock_tick(a);
	int rc = hw_loop_start(&a->loop);
	if (!rc)
		rc = hw_app_store_start(a);
	if (!rc)
		rc = hw_app_inventory_start(a);
	if (!rc)
		rc = hw_app_cluster_start(a);
	if (!rc && !a->cluster && !hw_prefix_guard_is_waiting(a)) /* a node of a cluster joins first */
		rc = hw_app_dial(a);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	hw_control_tick(a->control, hw_app_now()); /* takes the first sample before the first request */
	return rc;
}

/* --- start over within the process -------------------------------------------- */

bool hw_app_is_restarting(const struct hw_app *a)
{
	return a->life.restarts && !a->life.failed;
}

/* What the next daemon in this process takes over. */
struct kept {
	struct hw_log *log;
	struct hw_mono started;
	char *mqtt_password, *redis_password;
	struct hw_http_kept http;
	struct hw_cluster_kept cluster;
};

/* Returns 0; or -errno, and the sockets are closed. */
static int keep(struct hw_app *a, struct kept *k)
{
	*k = (struct kept){.log = a->log,
	                   .started = a->life.started,
	                   .mqtt_password = a->life.mqtt_password,
	                   .redis_password = a->life.redis_password};
	a->life.mqtt_password = a->life.redis_password = NULL;
	hw_app_cluster_keep(a, &k->cluster);
	return hw_control_keep(a->control, &k->http);
}

static int start_again(struct hw_app *a, struct kept *k)
{
	a->life.started = k->started;
	int rc = hw_control_resume(&a->control, a->loop.base, &k->http, a->monitor, control_ops(a->start), a);
	if (!rc)
		hw_app_reports_resume(a);
	if (!rc)
		rc = hw_control_proxy_to(a->control, a->start->tasks_socket, a->start->history_socket,
		                         a->start->alert_socket);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot reopen the control socket: %s", strerror(-rc));
	else
		rc = hw_app_start(a);
	if (rc)
		return rc;
	hw_prefix_guard_rejoin(a);
	hw_app_cluster_go_on(a, &k->cluster);
	return 0;
}

/* Signals stay blocked until the new daemon can handle them. */
struct hw_app *hw_app_restart(struct hw_app *old)
{
	struct kept k;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int rc = keep(old, &k);
	struct hw_settings *conf = take_apart(old);
	struct hw_app *a = hw_app_new(k.log, conf);
	if (!a) {
		free(k.mqtt_password);
		free(k.redis_password);
	} else {
		a->life.mqtt_password = k.mqtt_password;
		a->life.redis_password = k.redis_password;
	}
	if (!a || rc || start_again(a, &k)) {
		hw_http_kept_fini(&k.http);
		hw_app_free(a);
		a = NULL;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return a;
}
