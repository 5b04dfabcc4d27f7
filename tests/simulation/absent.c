/* SPDX-License-Identifier: MIT */
/* See absent.h. */
#include "absent.h"

#include <stdarg.h>
#include <stdio.h>

#include "daemon/cluster/cluster_priv.h"
#include "daemon/config/reload.h"
#include "daemon/inventory/inventory.h"
#include "daemon/observe.h"
#include "daemon/store/keys.h"
#include "daemon/visibility/probes.h"
#include "http/metrics.h"
#include "http/server.h"
#include "http/socket.h"
#include "mqtt/mqtt.h"
#include "redis/redis.h"
#include "run/loop.h"
#include "run/manager.h"

/* --- the log ----------------------------------------------------------------------------------------------------- */

static void say(const char *format, va_list ap)
{
	char text[400];
	if (!absent_traces())
		return;
	vsnprintf(text, sizeof(text), format, ap);
	absent_trace(text);
}

void hw_log(struct hw_log *l, enum hw_log_level level, const char *format, ...)
{
	va_list ap;
	(void)l, (void)level;
	va_start(ap, format);
	say(format, ap);
	va_end(ap);
}

void hw_log_limited(struct hw_log *l, unsigned kind, enum hw_log_level level, const char *format, ...)
{
	va_list ap;
	(void)l, (void)kind, (void)level;
	va_start(ap, format);
	say(format, ap);
	va_end(ap);
}

int hw_log_reopen(struct hw_log *l)
{
	(void)l;
	return 0;
}

/* --- the configuration ------------------------------------------------------------------------------------------- */

static char empty[] = "", stderr_[] = "stderr", sim[] = "sim", prefix[] = "device:", ha[] = "homeassistant",
	    hw[] = "heartwheel", id_template[] = "{id}";

struct hw_settings_group absent_group(char *name, char *status)
{
	return (struct hw_settings_group){.name = name,
	                                  .status = status,
	                                  .id = id_template,
	                                  .id_prefix = empty,
	                                  .probe = empty,
	                                  .payload = HW_FORMAT_JSON,
	                                  .canary = true};
}

struct hw_settings absent_settings(void)
{
	return (struct hw_settings){.node_id = sim,
	                            .log = stderr_,
	                            .pid_file = empty,
	                            .user = empty,
	                            .stop_timeout_ms = 10000,
	                            .stall_after_ms = 500,
	                            .cluster_name = hw,
	                            .keyspace_group = empty,
	                            .http_socket = empty,
	                            .http_socket_group = empty,
	                            .http_listen = empty,
	                            .mqtt = {.host = sim,
	                                     .readers = 1,
	                                     .republish_rate = 5000,
	                                     .username = empty,
	                                     .password_file = empty,
	                                     .tls_ca = empty,
	                                     .tls_cert = empty,
	                                     .tls_key = empty,
	                                     .client_id_prefix = hw,
	                                     .homeassistant_prefix = ha},
	                            .redis = {.host = sim,
	                                      .unix_socket = empty,
	                                      .sentinels = empty,
	                                      .master = empty,
	                                      .username = empty,
	                                      .password_file = empty,
	                                      .key_prefix = prefix,
	                                      .ttl_factor = 3,
	                                      .events_max = 1000000}};
}

void hw_conf_free(void *conf)
{
	(void)conf;
}

char *hw_conf_read_secret(const char *path)
{
	(void)path;
	return NULL;
}

void hw_app_reload_on_signal(struct hw_app *a)
{
	(void)a;
}

bool hw_settings_is_url(const char *text)
{
	(void)text;
	return false;
}

bool hw_settings_no_whiles(const struct hw_settings_group *g)
{
	return g->n_whiles == 0;
}

int64_t hw_settings_probe_after_ms(const struct hw_settings_group *g)
{
	(void)g;
	return 0;
}

/* The simulated world begins each turn itself. */
void hw_loop_end_turn(struct hw_loop *l)
{
	(void)l;
}

const char *hw_socket_error(int error)
{
	(void)error;
	return "";
}

void hw_manager_notify(const char *state)
{
	(void)state;
}

/* --- clients ----------------------------------------------------------------------------------------------------- */

const struct hw_control_ops hw_app_control_ops, hw_app_control_ops_nodes, hw_app_control_ops_memory,
	hw_app_control_ops_standby;

int hw_control_new(struct hw_control **out, struct event_base *base, const char *path, const char *group,
                   const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	(void)out, (void)base, (void)path, (void)group, (void)m, (void)ops, (void)arg;
	return 0;
}

int hw_control_proxy_to(struct hw_control *c, const char *tasks, const char *history, const char *alert)
{
	(void)c, (void)tasks, (void)history, (void)alert;
	return 0;
}

int hw_control_secure(struct hw_control *c, const struct hw_http_safety *s, hw_http_wrong *wrong, void *arg)
{
	(void)c, (void)s, (void)wrong, (void)arg;
	return 0;
}

int hw_control_plan(struct hw_control *c, const struct hw_http_safety *s, struct hw_http_plan *out,
                    hw_http_wrong *wrong, void *arg)
{
	(void)c, (void)s, (void)wrong, (void)arg;
	*out = (struct hw_http_plan){0};
	return 0;
}

struct hw_control_taken hw_control_take(struct hw_control *c, struct hw_http_plan *p)
{
	(void)c, (void)p;
	return (struct hw_control_taken){0};
}

void hw_http_plan_fini(struct hw_http_plan *p)
{
	(void)p;
}

struct hw_http_refused hw_control_refused(const struct hw_control *c)
{
	(void)c;
	return (struct hw_http_refused){0};
}

int hw_control_keep(struct hw_control *c, struct hw_http_kept *out)
{
	(void)c, (void)out;
	return 0;
}

int hw_control_resume(struct hw_control **out, struct event_base *base, struct hw_http_kept *kept,
                      const struct hw_monitor *m, const struct hw_control_ops *ops, void *arg)
{
	(void)out, (void)base, (void)kept, (void)m, (void)ops, (void)arg;
	return 0;
}

void hw_http_kept_fini(struct hw_http_kept *kept)
{
	(void)kept;
}

int hw_control_listen(struct hw_control *c, const char *address, bool *local)
{
	(void)c, (void)address, (void)local;
	return 0;
}

void hw_control_free(struct hw_control *c)
{
	(void)c;
}

void hw_control_store(struct hw_control *c, bool up)
{
	(void)c, (void)up;
}

void hw_control_begins(struct hw_control *c, struct hw_now now)
{
	(void)c, (void)now;
}

void hw_control_event(struct hw_control *c, const struct hw_event *e)
{
	(void)c, (void)e;
}

void hw_control_parent_heard(struct hw_control *c, struct hw_id id, uint64_t seq, struct hw_id parent,
                             int64_t settle_ms)
{
	(void)c, (void)id, (void)seq, (void)parent, (void)settle_ms;
}

void hw_control_pending(struct hw_control *c, const struct hw_event *e)
{
	(void)c, (void)e;
}

void hw_control_late(struct hw_control *c, bool late)
{
	(void)c, (void)late;
}

void hw_control_settled(struct hw_control *c)
{
	(void)c;
}

void hw_control_sight(struct hw_control *c)
{
	(void)c;
}

void hw_control_missed(struct hw_control *c, struct hw_stream_id upto)
{
	(void)c, (void)upto;
}

void hw_control_page(struct hw_control *c, const struct hw_event_page *page)
{
	(void)c, (void)page;
}

void hw_control_tick(struct hw_control *c, struct hw_now now)
{
	(void)c, (void)now;
}

void hw_control_detected(struct hw_control *c, int64_t delay_ns)
{
	(void)c, (void)delay_ns;
}

void hw_histogram_add(struct hw_histogram *h, double seconds)
{
	(void)h, (void)seconds;
}

/* --- keys of other programs -------------------------------------------------------------------------------------- */

const struct hw_keyspace_ops hw_app_keyspace_ops;

struct hw_keyspace *hw_keyspace_new(struct event_base *base, const struct hw_keyspace_conf *conf,
                                    struct hw_redis *store, const struct hw_monitor *m,
                                    const struct hw_keyspace_ops *ops, void *arg)
{
	(void)base, (void)conf, (void)store, (void)m, (void)ops, (void)arg;
	return NULL;
}

int hw_app_start_keyspace(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_keyspace_free(struct hw_keyspace *ks)
{
	(void)ks;
}

void hw_keyspace_loaded(struct hw_keyspace *ks)
{
	(void)ks;
}

void hw_keyspace_emptied(struct hw_keyspace *ks)
{
	(void)ks;
}

void hw_keyspace_compare(struct hw_keyspace *ks)
{
	(void)ks;
}

void hw_keyspace_check(struct hw_keyspace *ks, struct hw_ref device)
{
	(void)ks, (void)device;
}

/* --- probes ------------------------------------------------------------------------------------------------------ */

int hw_app_probes_new(struct hw_app *a)
{
	(void)a;
	return 0;
}

const char *hw_app_probe_answers(const struct hw_app *a)
{
	(void)a;
	return NULL;
}

void hw_app_probes_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_probe(struct hw_app *a, struct hw_now now, const struct hw_out *out)
{
	(void)a, (void)now, (void)out;
}

void hw_app_probe_refused(struct hw_app *a, const char *why)
{
	(void)a, (void)why;
}

/* --- what a node asks of the others, and strangers ---------------------------------------------------------------- */

void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len)
{
	(void)a, (void)text, (void)len;
}

void hw_app_hold_strangers(const struct hw_app *a, struct hw_cluster_answer *answer)
{
	(void)a, (void)answer;
}

void hw_app_log_strangers(struct hw_app *a)
{
	(void)a;
}

/* --- of src/mqtt: both models connect by themselves, and no daemon is made again in its process */

void hw_reader_path(const struct hw_mqtt_conf *conf, char *text, size_t size)
{
	(void)conf;
	snprintf(text, size, "read from a model");
}

void hw_reader_end(struct hw_reader *r)
{
	(void)r;
}

bool hw_reader_ended(struct hw_reader *r)
{
	(void)r;
	return true;
}

int hw_reader_set_filters(struct hw_reader *r, const struct hw_mqtt_filter *filters, size_t n_filters)
{
	(void)r, (void)filters, (void)n_filters;
	return 0;
}

struct hw_reader_stats hw_reader_stats(const struct hw_reader *r)
{
	(void)r;
	return (struct hw_reader_stats){0};
}

void hw_publisher_end(struct hw_publisher *p, int64_t timeout_ms)
{
	(void)p, (void)timeout_ms;
}

bool hw_publisher_ended(struct hw_publisher *p)
{
	(void)p;
	return true;
}

void hw_publisher_flush(struct hw_publisher *p)
{
	(void)p;
}

bool hw_publisher_is_without_qos(const struct hw_publisher *p)
{
	(void)p;
	return false;
}

void hw_publisher_set_broker(struct hw_publisher *p, bool lacks_qos)
{
	(void)p;
	(void)lacks_qos;
}

/* --- of src/redis: no model refuses writes or tells its time */

void hw_redis_refresh_light(struct hw_redis *r, struct hw_now now, struct hw_ref device)
{
	(void)r, (void)now, (void)device;
}

void hw_redis_rewrite(struct hw_redis *r, struct hw_ref device)
{
	hw_redis_refresh(r, device); /* each says all */
}

void hw_redis_parent_heard(struct hw_redis *r, struct hw_id id, uint64_t seq, struct hw_id parent, int64_t settle_ms)
{
	(void)r, (void)id, (void)seq, (void)parent, (void)settle_ms;
}

void hw_redis_groups(struct hw_redis *r, struct hw_now now)
{
	(void)r, (void)now;
}

const char *hw_redis_refusal(const struct hw_redis *r)
{
	(void)r;
	return NULL;
}

void hw_redis_sighting(struct hw_redis *r, const struct hw_sighting *e)
{
	(void)r, (void)e;
}

bool hw_redis_sightings_idle(const struct hw_redis *r)
{
	(void)r;
	return true;
}

void hw_redis_tick(struct hw_redis *r)
{
	(void)r;
}

void hw_redis_keep_canaries(struct hw_redis *r, const struct hw_canaries *canaries)
{
	(void)r, (void)canaries;
}

const struct hw_canaries *hw_redis_old_canaries(const struct hw_redis *r)
{
	static const struct hw_canaries none;
	(void)r;
	return &none;
}

int64_t hw_redis_clock(const struct hw_redis *r, struct hw_mono *at)
{
	(void)r;
	*at = (struct hw_mono){0};
	return 0;
}

void hw_redis_reconfigured(struct hw_redis *r)
{
	(void)r; /* each of its refreshes says all */
}

/* --- of src/daemon/inventory: no simulated world has expected devices */

int hw_app_inventory_new(struct hw_app *a)
{
	(void)a;
	return 0;
}

int hw_app_inventory_start(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_app_inventory_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_inventory_tick(struct hw_app *a, struct hw_now now)
{
	(void)a, (void)now;
}

void hw_app_inventory_emptied(struct hw_app *a)
{
	(void)a;
}

void hw_app_inventory_state(struct hw_app *a, struct hw_id id, enum hw_state state)
{
	(void)a, (void)id, (void)state;
}
