/* SPDX-License-Identifier: MIT */
/* What the wiring knows and this world has not: a log, Sentinels, clients of the API, hooks, keys of other programs,
 * what is shown of the cluster, a configuration that is read again. */
#include <stdarg.h>

#include "daemon/hooks.h"
#include "daemon/keys.h"
#include "daemon/observe.h"
#include "daemon/prefix_guard.h"
#include "daemon/probes.h"
#include "daemon/reload.h"
#include "http/server.h"
#include "http/socket.h"
#include "nodes_world.h"
#include "run/loop.h"
#include "run/manager.h"

/* --- the log ----------------------------------------------------------------------------------------------------- */

static void say(const char *format, va_list ap)
{
	char text[400];
	struct nw_host *h = nw_running;
	if (!h || !h->w->trace)
		return;
	vsnprintf(text, sizeof(text), format, ap);
	nw_trace(h->w, "%s: \"%s\"", nw_names[h->name], text);
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

/* --- what is shown of the cluster -------------------------------------------------------------------------------- */

void hw_app_cluster_won(struct hw_app *a, const struct hw_partitions *set, const struct hw_partitions *unclean)
{
	(void)a;
	nw_trace(nw_running->w, "%s: owns %u more, %u unclean", nw_names[nw_running->name], hw_partitions_count(set),
	         hw_partitions_count(unclean));
	nw_oracle_moves(nw_running->w, nw_running, "owns");
}

void hw_app_cluster_lost(struct hw_app *a, const struct hw_partitions *set)
{
	(void)a;
	nw_trace(nw_running->w, "%s: loses %u", nw_names[nw_running->name], hw_partitions_count(set));
	nw_oracle_moves(nw_running->w, nw_running, "loses");
	nw_oracle_forgets(nw_running->w, nw_running, set);
}

void hw_app_cluster_asks(struct hw_app *a, const struct hw_nodes_order *o)
{
	(void)a;
	if (o->kind == HW_NODES_RELEASE)
		nw_oracle_forgets(nw_running->w, nw_running, &o->set);
	if (o->kind != HW_NODES_RENEW)
		nw_trace(nw_running->w, "%s: orders %d of %u", nw_names[nw_running->name], (int)o->kind,
		         hw_partitions_count(&o->set));
}

void hw_app_cluster_saw(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o,
                        const struct hw_cluster_answer *answer)
{
	(void)now, (void)o;
	for (size_t i = 0; i < answer->nodes.n_members; i++)
		hw_app_cluster_forms_saw(a, answer->nodes.members[i].node, answer->json[i]);
}

void hw_app_cluster_decides(struct hw_app *a, int64_t after_ns)
{
	(void)a, (void)after_ns;
	nw_trace(nw_running->w, "%s: decides", nw_names[nw_running->name]);
}

void hw_app_cluster_leaves(struct hw_app *a, const char *node)
{
	(void)a, (void)node;
}

void hw_app_cluster_publisher_id(struct hw_app *a, const char *node, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s-%s-pub", a->start->mqtt.client_id_prefix, node);
}

void hw_app_cluster_view_tick(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_view_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_json(struct hw_app *a, struct hw_now now, const struct hw_nodes_order *o, char buf[HW_CLUSTER_JSON])
{
	cJSON *entry = cJSON_CreateObject();
	(void)now, (void)o;
	hw_app_cluster_forms_add(a, entry);
	if (!cJSON_PrintPreallocated(entry, buf, NW_ENTRY, false))
		nw_alloc(SIZE_MAX);
	cJSON_Delete(entry);
}

void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len)
{
	(void)a, (void)text, (void)len;
}

void hw_app_hold_strangers(const struct hw_app *a, struct hw_cluster_answer *answer)
{
	(void)a, (void)answer;
}

void hw_app_tell_strangers(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_totals(const struct hw_app *a, struct hw_cluster_totals *out)
{
	(void)a;
	*out = (struct hw_cluster_totals){0};
}

/* A monitor that is alone. */
void hw_prefix_guard_start(struct hw_app *a)
{
	a->alone.joins = true;
}

bool hw_prefix_guard_is_waiting(const struct hw_app *a)
{
	(void)a;
	return false;
}

void hw_prefix_guard_rejoin(struct hw_app *a)
{
	(void)a;
}

bool hw_prefix_guard_blocks(const struct hw_app *a)
{
	(void)a;
	return false;
}

void hw_prefix_guard_check(struct hw_app *a)
{
	(void)a;
}

void hw_prefix_guard_tick(struct hw_app *a)
{
	(void)a;
}

void hw_prefix_guard_unlinked(struct hw_app *a)
{
	(void)a;
}

bool hw_prefix_guard_has_left(struct hw_app *a)
{
	(void)a;
	return true;
}

uint64_t hw_prefix_guard_host(const struct hw_app *a)
{
	(void)a;
	return 0;
}

/* --- Sentinels --------------------------------------------------------------------------------------------------- */

int hw_app_cluster_sentinel_start(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_app_cluster_sentinel_free(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_sentinel_linked(struct hw_app *a)
{
	(void)a;
}

void hw_app_cluster_sentinel_tick(struct hw_app *a)
{
	(void)a;
}

bool hw_app_cluster_confirmed(struct hw_app *a, struct hw_now now)
{
	(void)a, (void)now;
	return true;
}

/* --- the configuration ------------------------------------------------------------------------------------------- */

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
	(void)g;
	return true;
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

void hw_manager_tell(const char *state)
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

int hw_control_proxy_to(struct hw_control *c, const char *tasks, const char *history)
{
	(void)c, (void)tasks, (void)history;
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

void hw_control_missed(struct hw_control *c, struct hw_event_id upto)
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

/* --- hooks ------------------------------------------------------------------------------------------------------- */

struct hw_notifier {
	int none;
};

struct hw_notifier *hw_notifier_of_devices(struct event_base *base, const struct hw_monitor *m,
                                           hw_notifier_trouble *trouble, void *arg)
{
	static struct hw_notifier none;
	(void)base, (void)m, (void)trouble, (void)arg;
	return &none;
}

void hw_notifier_free(struct hw_notifier *n)
{
	(void)n;
}

void hw_notifier_transition(struct hw_notifier *n, struct hw_now now, const struct hw_transition *t)
{
	(void)n, (void)now, (void)t;
}

void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out)
{
	(void)n, (void)now;
	nw_trace(nw_running->w, "%s: %s (%s)", nw_names[nw_running->name], out->blind.begun ? "blind" : "sees",
	         hw_cause_name(out->blind.cause));
}

void hw_notifier_blind_tick(struct hw_notifier *n, struct hw_now now)
{
	(void)n, (void)now;
}

void hw_notifier_tick(struct hw_notifier *n)
{
	(void)n;
}

void hw_notifier_flush(struct hw_notifier *n)
{
	(void)n;
}

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n)
{
	static const struct hw_notifier_stats none;
	(void)n;
	return &none;
}

bool hw_notifier_idle(const struct hw_notifier *n)
{
	(void)n;
	return true;
}

int hw_app_configure_notifier(struct hw_app *a, const struct hw_settings *c)
{
	(void)a, (void)c;
	return 0;
}

void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text)
{
	(void)arg, (void)kind, (void)text;
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

int hw_redis_look_at_device(struct hw_redis *r, const char *id, size_t id_len)
{
	(void)r, (void)id, (void)id_len;
	return 0;
}

void hw_keyspace_check(struct hw_keyspace *ks, struct hw_ref device)
{
	(void)ks, (void)device;
}

/* --- probes ------------------------------------------------------------------------------------------------------ */

void hw_app_probes_init(struct hw_app *a)
{
	(void)a;
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

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The linker's --wrap: there is none while all of the store is to be read again, if the scene says so. */
int __real_hw_monitor_reread_begin(struct hw_monitor *m, bool other);
int __wrap_hw_monitor_reread_begin(struct hw_monitor *m, bool other);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool starves;

void *__wrap_calloc(size_t n, size_t size)
{
	return starves ? NULL : __real_calloc(n, size);
}

int __wrap_hw_monitor_reread_begin(struct hw_monitor *m, bool other)
{
	starves = nw_running->w->t < nw_running->w->starved;
	int rc = __real_hw_monitor_reread_begin(m, other);
	starves = false;
	return rc;
}
