/* SPDX-License-Identifier: MIT */
/* Replaces what the wiring needs and this world does not have: what is shown of the cluster, Sentinels, and the
 * check for other monitors with the same key_prefix. See also absent.h. */
#include <stdlib.h>

#include "absent.h"
#include "daemon/store/prefix_guard.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/pace.h"
#include "mqtt/mqtt.h"
#include "nodes_world.h"

bool absent_traces(void)
{
	return nw_running && nw_running->w->trace;
}

void absent_trace(const char *text)
{
	nw_trace(nw_running->w, "%s: \"%s\"", nw_names[nw_running->name], text);
}

/* No group has a `while`. */
void hw_reader_renew(struct hw_reader *r)
{
	(void)r;
	abort();
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

void hw_app_cluster_became_authoritative(struct hw_app *a, int64_t after_ns)
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
	struct hw_json j;
	(void)now, (void)o;
	hw_app_cluster_forms_update(a);
	hw_json_begin_text(&j, buf, NW_ENTRY);
	hw_json_open(&j, '{');
	hw_app_cluster_forms_write(a, true, true, &j);
	hw_json_close(&j, '}');
	if (hw_json_end_text(&j) < 0)
		nw_alloc(SIZE_MAX);
}

void hw_app_cluster_totals(const struct hw_app *a, struct hw_cluster_totals *out)
{
	(void)a;
	*out = (struct hw_cluster_totals){0};
}

/* A monitor that is alone. */
int hw_prefix_guard_new(struct hw_app *a)
{
	(void)a;
	return 0;
}

void hw_prefix_guard_start(struct hw_app *a)
{
	(void)a;
}

bool hw_prefix_guard_lets_join(const struct hw_app *a)
{
	(void)a;
	return true;
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

void hw_prefix_guard_linked(struct hw_app *a)
{
	(void)a;
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

/* --- time, and memory -------------------------------------------------------------------------------------------- */

/* The linker's --wrap calls these functions in place of the real ones. With NW_LIE_STALL, the loop does not notice
 * that it stood still. If the scene says so, there is no memory when all of the store must be read again. */
struct hw_pace_woke __real_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns,
                                        int64_t stall_after_ns);
struct hw_pace_woke __wrap_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns,
                                        int64_t stall_after_ns);
int __real_hw_monitor_reread_begin(struct hw_monitor *m, bool other);
int __wrap_hw_monitor_reread_begin(struct hw_monitor *m, bool other);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool starves;

struct hw_pace_woke __wrap_hw_pace_woke(struct hw_pace *p, struct hw_mono now, int64_t ahead_ns, int64_t stall_after_ns)
{
	return __real_hw_pace_woke(p, now, ahead_ns, nw_running->w->lie == NW_LIE_STALL ? INT64_MAX : stall_after_ns);
}

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
