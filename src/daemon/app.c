/* SPDX-License-Identifier: MIT */
/*
 * The context and the loop. See app.h. What is made in hw_app_new(), hw_app_listen() and hw_app_start() is freed in
 * hw_app_free() in the reverse order.
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

#include "broker.h"
#include "cluster.h"
#include "cluster_broker.h"
#include "cluster_priv.h"
#include "conf/file.h"
#include "context.h"
#include "deaf.h"
#include "dial.h"
#include "feed.h"
#include "hooks.h"
#include "http/attempts.h"
#include "http/server.h"
#include "keys.h"
#include "observe.h"
#include "pending.h"
#include "prefix_guard.h"
#include "presence.h"
#include "probes.h"
#include "reload.h"
#include "run/manager.h"
#include "sightings.h"
#include "specs.h"
#include "store.h"
#include "turn.h"
#include "unjudged.h"
#include "wake.h"
#include "wall_clock.h"

#define DISCOVERIES_A_SECOND 1000              /* Home Assistant makes an entity of each */
#define LOAD_PATIENCE_NS     (5 * HW_NS_PER_S) /* without Redis at the start, what is heard is news after this */
#define REFUSED_RETRY_MS     60000
#define ANEW_WITHIN_MS       2000 /* what is another node's now is not waited for */

static const double detection_bounds[] = {.01, .02, .033, .05, .1, .25, 1, 5};
static const double turn_bounds[] = {.0001, .0005, .001, .005, .01, .05, .1, .5, 1};
static const double cpu_bounds[] = {.0005, .001, .002, .003, .004, .005, .006, .008, .01, .02, .05, .1};

/* --- the end ----------------------------------------------------------------- */

/* What is owed is flushed, and what is owned released, for so long at most. */
static void begin_stop(struct hw_app *a, struct hw_now now, int64_t within_ms)
{
	a->stopping = true;
	a->presence_due = a->publisher_up;
	hw_notifier_flush(a->notifier);
	hw_retained_end_sweeps(&a->status);
	hw_retained_end_sweeps(&a->discovery);
	a->discovery.line.rate = 0; /* what is in line now goes as fast as it can */
	a->stop_by = hw_mono_add(now.mono, within_ms * HW_NS_PER_MS);
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].readable)
			event_del(a->reader[i].readable);
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
	if (a->anew && !a->stopping) {
		for (unsigned i = 0; i < a->n_readers && a->reader[i].reader; i++)
			hw_reader_end(a->reader[i].reader);
		begin_stop(a, hw_app_woke(a), ANEW_WITHIN_MS);
		return;
	}
	if (hw_app_read_on(a))
		return;
	hw_app_woke(a);
	hw_app_turn(a);
}

/* --- each second ------------------------------------------------------------- */

/* False: what was refused turned out well. */
static bool explain_refused(const struct hw_app *a, enum hw_refused k, char *text, size_t cap)
{
	const char *stranger = k == HW_REFUSED_STRANGER ? hw_app_cluster_stranger(a) : NULL;
	text[0] = '\0';
	if (k == HW_REFUSED_MAX_DEVICES)
		snprintf(text, cap, ": the table is full; raise [monitor] max_devices");
	else if (stranger)
		snprintf(text, cap,
		         ": '%.64s' is not a member of the nodes, and its presence is ignored; allow only the nodes to "
		         "write heartwheel/#",
		         stranger);
	else if (k == HW_REFUSED_STORED)
		snprintf(text, cap,
		         ": values in Redis that are out of bounds%s%s%s, which were replaced; check the programs that "
		         "write there, and their clocks",
		         *a->odd_id ? ", the first of '" : "", a->odd_id, *a->odd_id ? "'" : "");
	else if (k == HW_REFUSED_EPOCH)
		snprintf(text, cap, ": a token's epoch is more than a day ahead of Redis' clock, and is ignored");
	return k != HW_REFUSED_STRANGER || stranger;
}

/* Once: births are published so, and say no more than the heartbeats that follow. */
static void tell_flagged(struct hw_app *a, uint64_t fresh, bool first)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	const char *group = hw_monitor_groups(a->monitor)->all[s->flagged_group]->name;
	hw_log(a->log, first ? HW_LOG_WARNING : HW_LOG_DEBUG,
	       "group '%s': %llu message%s with the retain flag not counted; if its devices publish all their "
	       "heartbeats so, set retained = count in that group",
	       group, (unsigned long long)fresh, fresh == 1 ? "" : "s");
}

static void tell_refused(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	char why[512];
	for (int k = 0; k < HW_REFUSED_KINDS; k++) {
		uint64_t fresh = s->refused[k] - a->refused_told[k];
		bool expected = k == HW_REFUSED_RETAINED || k == HW_REFUSED_MONITOR || k == HW_REFUSED_PROBE;
		if (fresh == 0)
			continue;
		if (a->refused_quiet_s[k] > 0) {
			a->refused_quiet_s[k]--;
			continue;
		}
		bool first = a->refused_told[k] == 0;
		a->refused_told[k] = s->refused[k];
		if (!explain_refused(a, (enum hw_refused)k, why, sizeof(why)))
			continue;
		if (k == HW_REFUSED_FLAGGED)
			tell_flagged(a, fresh, first);
		else
			hw_log(a->log, expected ? HW_LOG_DEBUG : HW_LOG_WARNING, "refused %llu message%s (%s)%s",
			       (unsigned long long)fresh, fresh == 1 ? "" : "s", hw_refused_name((enum hw_refused)k),
			       why);
		a->refused_quiet_s[k] = 10;
		if (k == HW_REFUSED_STORED)
			a->odd_id[0] = '\0';
	}
}

static const char *fault_words(const char *fault)
{
	if (!fault)
		return "no JSON, though it begins like it";
	return fault[0] == '$' ? " is no state of Homie, and counts as a heartbeat"
	                       : " is of a wrong type or length, and was left out";
}

/* Names one of the devices: mostly all of them have the same fault. */
static void tell_faults(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	uint64_t fresh = s->payload_errors - a->faults_told;
	if (a->faults_quiet_s > 0) {
		a->faults_quiet_s--;
		return;
	}
	if (fresh == 0)
		return;
	hw_log(a->log, HW_LOG_WARNING, "%llu payload error%s, the last of %s%s%s: %s%s%s%s", (unsigned long long)fresh,
	       fresh == 1 ? "" : "s", s->fault_id[0] ? "device '" : "an unknown device", s->fault_id,
	       s->fault_id[0] ? "'" : "", s->fault ? "'" : "", s->fault ? s->fault : "", s->fault ? "'" : "",
	       fault_words(s->fault));
	a->faults_told = s->payload_errors;
	a->faults_quiet_s = 10;
}

static void tell_closings(struct hw_app *a)
{
	struct hw_http_refused r = hw_control_refused(a->control);
	if (r.closings == a->closings_told)
		return;
	a->closings_told = r.closings;
	hw_log_limited(a->log, HW_LIMIT_GUESSES, HW_LOG_WARNING,
	               "%d wrong tokens came from %s: it is closed for a minute; see [http] users", HW_ATTEMPTS_MAX,
	               r.last_closed);
}

/* Redis that is not there at the start must not keep the monitor from its work for long. */
static void check_loading(struct hw_app *a, struct hw_now now)
{
	if (!a->loading || a->redis_ever_up || a->start->cluster_mode == HW_CLUSTER_STANDBY ||
	    now.mono.ns - a->started.ns < LOAD_PATIENCE_NS)
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
	struct hw_blindness b = hw_monitor_blindness(a->monitor);
	char text[sizeof(a->manager_told)], stands[sizeof(text) - sizeof("STATUS=")];
	snprintf(text, sizeof(text), "STATUS=%u online, %u offline%s%s", s->count[HW_STATE_ONLINE],
	         s->count[HW_STATE_OFFLINE], b.blind ? ", blind: " : "", b.blind ? hw_cause_name(b.cause) : "");
	if (hw_app_stands_by(a)) {
		hw_app_standby_text(a, stands, sizeof(stands));
		snprintf(text, sizeof(text), "STATUS=%s", stands);
	}
	if (strcmp(text, a->manager_told) == 0)
		return;
	memcpy(a->manager_told, text, sizeof(text));
	hw_manager_tell(text);
}

/* Acknowledgements that Redis has not taken count too: what the outbox still holds is published again by the next run.
 */
static void check_stop(struct hw_app *a, struct hw_now now)
{
	bool written = !a->redis || (hw_redis_stats(a->redis)->waiting == 0 && hw_redis_sightings_idle(a->redis));
	bool idle = written && hw_retained_idle(&a->status) && hw_retained_idle(&a->discovery) && !a->presence_due &&
	            (hw_notifier_idle(a->notifier) || a->anew) && hw_app_cluster_stopped(a);
	if (a->anew && a->stopping && hw_app_standby_is_ending(a)) {
		if (hw_app_standby_ended(a, now))
			hw_loop_stop(&a->loop);
		return;
	}
	if (!a->stopping || (!(idle && hw_prefix_guard_has_left(a)) && now.mono.ns < a->stop_by.ns))
		return;
	if (!idle && !a->anew) {
		int64_t oldest;
		hw_log(a->log, HW_LOG_WARNING,
		       "stopping with %llu devices still owed: stop_timeout is over; Redis keeps what was written",
		       (unsigned long long)hw_app_pending(a, now, &oldest));
	}
	hw_app_presence_end(a, now);
	if (a->anew)
		hw_app_standby_end(a, now);
	else
		hw_loop_stop(&a->loop);
}

static void each_second(struct hw_app *a, struct hw_now now)
{
	a->second = now.mono;
	check_loading(a, now);
	hw_share_tick(a, now);
	hw_app_release(a, now);
	tell_refused(a);
	hw_app_upstream_tick(a, hw_app_now());
	tell_faults(a);
	tell_closings(a);
	tell_manager(a);
	hw_app_wall_clock_tick(a);
	hw_control_tick(a->control, now);
	hw_notifier_tick(a->notifier);
	hw_notifier_blind_tick(a->notifier, now);
	if (a->redis)
		hw_redis_tick(a->redis);
	hw_prefix_guard_tick(a);
	if (a->redis && !a->loading) {
		hw_redis_keep_canaries(a->redis, hw_monitor_canaries(a->monitor));
		hw_redis_seen(a->redis, now, hw_monitor_blindness(a->monitor).blind);
	}
	hw_app_sightings_tick(a, now);
	hw_app_cluster_tick(a, now);
	hw_app_unjudged_tick(a, now);
	int64_t now_ms = now.mono.ns / HW_NS_PER_MS;
	if (a->status.refused_since_ms && now_ms - a->status.refused_since_ms > REFUSED_RETRY_MS)
		hw_retained_republish(&a->status, now_ms);
	if (a->discovery.refused_since_ms && now_ms - a->discovery.refused_since_ms > REFUSED_RETRY_MS)
		hw_retained_republish(&a->discovery, now_ms);
}

/* A stop ticks faster, so that its end is not noticed late; what counts seconds goes on each second. */
static void on_tick(void *arg)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	if (!a->stopping || now.mono.ns - a->second.ns >= HW_NS_PER_S)
		each_second(a, now);
	/* Without memory for the timer, the tick is what the loop goes on by. */
	if (!hw_app_read_on(a))
		hw_app_turn(a);
	check_stop(a, now);
}

/* --- signals ----------------------------------------------------------------- */

static void on_stop(void *arg, int number)
{
	struct hw_app *a = arg;
	struct hw_now now = hw_app_woke(a);
	if (a->stopping && !a->anew) {
		hw_loop_stop(&a->loop);
		return;
	}
	hw_log(a->log, HW_LOG_NOTICE, "stopping on %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
	hw_manager_tell("STOPPING=1");
	a->anew = false;
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

/* --- making and ending ------------------------------------------------------- */

static bool may_publish(void *arg, const struct hw_device *d)
{
	return hw_app_may_publish(arg, d);
}

static const struct hw_loop_ops loop_ops = {
	.on_tick = on_tick,
	.on_stop = on_stop,
	.on_reload = on_reload,
	.on_reopen = on_reopen,
	.on_turn = hw_app_turn_begins,
	.on_turned = hw_app_turned,
};

/* errno says why not. */
static bool make_events(struct hw_app *a)
{
	int rc = hw_loop_init(&a->loop, &loop_ops, a);
	errno = rc ? -rc : ENOMEM;
	if (rc)
		return false;
	a->due = evtimer_new(a->loop.base, on_due, a);
	return a->due != NULL;
}

static bool make_monitor(struct hw_app *a)
{
	uint8_t key[16];
	if (getrandom(key, sizeof(key), 0) != sizeof(key) ||
	    getrandom(&a->run_mark, sizeof(a->run_mark), 0) != sizeof(a->run_mark))
		return false;
	errno = ENOMEM;
	struct hw_group_spec *specs = hw_app_group_specs(a->conf);
	struct hw_monitor_conf mc = hw_app_monitor_conf(a->conf, a->probe_answers);
	if (specs)
		a->monitor = hw_monitor_new(&mc, specs, a->conf->n_groups, key, hw_app_now());
	free(specs);
	return a->monitor != NULL;
}

struct hw_app *hw_app_new(struct hw_log *log, struct hw_settings *conf)
{
	struct hw_app *a = calloc(1, sizeof(*a));
	if (!a) {
		hw_conf_free(conf);
		goto failed;
	}
	a->log = log;
	a->conf = a->start = conf;
	a->started = hw_app_now().mono;
	a->n_readers = (unsigned)conf->mqtt.readers;
	a->stands_by = conf->cluster_mode == HW_CLUSTER_STANDBY;
	a->loading = conf->store == HW_STORE_REDIS;
	hw_share_init(a);
	hw_app_sightings_init(a, hw_app_now());
	a->fleet_blind = a->blind_told = true;
	a->fleet_cause = a->blind_cause = HW_CAUSE_LINK;
	a->detection = (struct hw_histogram){.bounds = detection_bounds,
	                                     .n = sizeof(detection_bounds) / sizeof(*detection_bounds)};
	a->turn = (struct hw_histogram){.bounds = turn_bounds, .n = sizeof(turn_bounds) / sizeof(*turn_bounds)};
	a->turn_cpu = (struct hw_histogram){.bounds = cpu_bounds, .n = sizeof(cpu_bounds) / sizeof(*cpu_bounds)};
	hw_retained_init(&a->status, &hw_status_kind);
	hw_retained_init(&a->discovery, &hw_discovery_kind);
	snprintf(a->barrier_topic, sizeof(a->barrier_topic), "heartwheel/%s/barrier", conf->node_id);
	snprintf(a->presence_topic, sizeof(a->presence_topic), "heartwheel/%s/status", conf->node_id);
	hw_app_probes_init(a);
	if (!make_events(a) || !make_monitor(a))
		goto failed;
	a->notifier = hw_notifier_of_devices(a->loop.base, a->monitor, hw_app_notify_trouble, a);
	if (!a->notifier)
		goto failed;
	a->status.m = a->monitor;
	a->status.node_id = conf->node_id;
	a->status.sweep.rate = conf->mqtt.republish_rate;
	a->status.on_published = hw_app_published;
	a->status.on_dropped = a->discovery.on_dropped = hw_app_dropped;
	a->status.arg = a;
	a->discovery.m = a->monitor;
	a->discovery.sweep.rate = a->discovery.line.rate = DISCOVERIES_A_SECOND;
	a->discovery.on_published = hw_app_discovered;
	a->discovery.arg = a;
	a->status.may_go = a->discovery.may_go = may_publish;
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

/* Frees all but the running configuration, and returns that. */
static struct hw_settings *take_apart(struct hw_app *a)
{
	struct hw_settings *conf = a->conf;
	for (unsigned i = 0; i < a->n_readers; i++) {
		free_event(a->reader[i].readable);
		hw_copies_of_fini(&a->reader[i].copies);
		if (a->reader[i].reader)
			hw_reader_stop(a->reader[i].reader);
	}
	free_event(a->publisher_readable);
	if (a->publisher)
		hw_publisher_stop(a->publisher, 1000);
	free_event(a->barriers.readable);
	if (a->barriers.publisher)
		hw_publisher_stop(a->barriers.publisher, 0);
	hw_app_cluster_free(a);
	if (a->control)
		hw_control_free(a->control);
	if (a->redis)
		hw_redis_free(a->redis);
	hw_keyspace_free(a->keyspace);
	hw_notifier_free(a->notifier);
	hw_app_probes_free(a);
	hw_app_unjudged_free(a);
	hw_retained_fini(&a->status);
	hw_retained_fini(&a->discovery);
	hw_monitor_free(a->monitor);
	hw_copies_fini(&a->copies);
	free_event(a->due);
	hw_loop_fini(&a->loop);
	free(a->mqtt_password);
	free(a->redis_password);
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

/* A password from its file. 0, or -errno after logging. */
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

/* The address, where one is set. */
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
		       "%s is not a loopback address: whoever reaches it can read every device's state%s; see [http] "
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
	int rc = read_secret(a, "[mqtt] password_file", c->mqtt.password_file, &a->mqtt_password);
	if (!rc)
		rc = read_secret(a, "[redis] password_file", c->redis.password_file, &a->redis_password);
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
		rc = hw_control_proxy_to(a->control, c->tasks_socket, c->history_socket);
	return rc ? rc : listen_remote(a);
}

static int start_redis(struct hw_app *a)
{
	const struct hw_settings *c = a->start;
	bool several = c->cluster_mode != HW_CLUSTER_OFF, standby = c->cluster_mode == HW_CLUSTER_STANDBY;
	if (c->store != HW_STORE_REDIS)
		return 0;
	a->redis_conf = (struct hw_redis_conf){.at = hw_redis_address_of(&c->redis, a->redis_password),
	                                       .key_prefix = c->redis.key_prefix,
	                                       .node_id = c->node_id,
	                                       .ttl_factor = (int)c->redis.ttl_factor,
	                                       .refresh_last_seen = c->redis.refresh_last_seen,
	                                       .events_max = c->redis.events_max,
	                                       .run_mark = a->run_mark,
	                                       .place = hw_prefix_guard_host(a),
	                                       .ttl_more_ms = several ? 2 * c->cluster_lease_ms : 0,
	                                       .keyspace = c->keyspace_enabled};
	const struct hw_redis_ops *ops = standby   ? &hw_app_redis_ops_standby
	                                 : several ? &hw_app_redis_ops_several
	                                           : &hw_app_redis_ops;
	a->redis = hw_redis_new(a->loop.base, &a->redis_conf, a->monitor, ops, a);
	if (!a->redis)
		return -ENOMEM;
	hw_prefix_guard_start(a);
	return standby ? 0 : hw_app_start_keyspace(a);
}

int hw_app_start(struct hw_app *a)
{
	hw_app_wall_clock_tick(a);
	int rc = hw_loop_start(&a->loop);
	if (!rc)
		rc = hw_app_configure_notifier(a, a->start);
	if (!rc)
		rc = start_redis(a);
	if (!rc)
		rc = hw_app_cluster_start(a);
	if (!rc && !a->cluster && !hw_prefix_guard_is_waiting(a)) /* a node joins first */
		rc = hw_app_dial(a);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot start: %s", strerror(-rc));
	hw_control_tick(a->control, hw_app_now()); /* the first sample is there before anybody can ask */
	return rc;
}

/* --- once more --------------------------------------------------------------- */

bool hw_app_is_anew(const struct hw_app *a)
{
	return a->anew && !a->failed;
}

/* What outlives the daemon within its process. */
struct kept {
	struct hw_log *log;
	struct hw_mono started;
	char *mqtt_password, *redis_password;
	struct hw_http_kept http;
	struct hw_cluster_totals totals;
	bool was_blind;
};

/* 0 or -errno: then the sockets are gone. */
static int keep(struct hw_app *a, struct kept *k)
{
	*k = (struct kept){.log = a->log,
	                   .started = a->started,
	                   .mqtt_password = a->mqtt_password,
	                   .redis_password = a->redis_password,
	                   .was_blind = a->cluster->standby.goes_blind};
	a->mqtt_password = a->redis_password = NULL;
	hw_app_cluster_totals(a, &k->totals);
	return hw_control_keep(a->control, &k->http);
}

static int start_anew(struct hw_app *a, struct kept *k)
{
	a->started = k->started;
	int rc = hw_control_resume(&a->control, a->loop.base, &k->http, a->monitor, control_ops(a->start), a);
	if (!rc)
		a->closings_told = hw_control_refused(a->control).closings;
	if (!rc)
		rc = hw_control_proxy_to(a->control, a->start->tasks_socket, a->start->history_socket);
	if (rc)
		hw_log(a->log, HW_LOG_ERROR, "cannot go on with the control socket: %s", strerror(-rc));
	else
		rc = hw_app_start(a);
	if (rc)
		return rc;
	hw_prefix_guard_rejoin(a);
	a->cluster->seen.before = k->totals;
	hw_app_standby_after(a, k->was_blind);
	return 0;
}

/* A signal waits until there is somebody to take it. */
struct hw_app *hw_app_anew(struct hw_app *old)
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
		a->mqtt_password = k.mqtt_password;
		a->redis_password = k.redis_password;
	}
	if (!a || rc || start_anew(a, &k)) {
		hw_http_kept_fini(&k.http);
		hw_app_free(a);
		a = NULL;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return a;
}
