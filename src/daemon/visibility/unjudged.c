/* SPDX-License-Identifier: MIT */
#include "unjudged.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/loop/turn.h"
#include "heartwheel/json_writer.h"
#include "visibility_priv.h"

#define RECORDS_A_SECOND 65536
#define RECORDS_A_TURN   4096
#define GROUPS_SHOWN     8

static void report(struct hw_app *a, size_t g, uint32_t n)
{
	const struct hw_group *group = hw_monitor_groups(a->monitor)->all[g];
	if (n == 0)
		hw_log(a->log, HW_LOG_NOTICE, "group '%s': all its devices are judged again", group->name);
	else if (hw_monitor_left_out_of(a->monitor, g))
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s': unjudged: %u device%s; the table of this node has no room for %u of them; the "
		       "devices keep their state; raise [monitor] max_devices, or forget devices",
		       group->name, n, n == 1 ? "" : "s", hw_monitor_left_out_of(a->monitor, g));
	else if (group->unheard)
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s' is not configured, and this node knows no other group that receives its devices' "
		       "heartbeats; its %u device%s cannot be judged; each state stays as it is until a heartbeat "
		       "arrives; configure the group, or forget the devices",
		       group->name, n, n == 1 ? "" : "s");
	else
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s': unjudged: %u device%s; they, or their children, were last heard by filters that "
		       "this node does not have; the devices keep their state until this node receives a heartbeat, or "
		       "a node with those filters owns them; give all nodes the same groups, or forget the devices",
		       group->name, n, n == 1 ? "" : "s");
}

/* Logs once when a group gets unjudged devices, and once when it has no more. */
static void report_changes(struct hw_app *a)
{
	size_t n = hw_monitor_groups(a->monitor)->n;
	if (n > a->visibility->unjudged.n) {
		bool *reported = realloc(a->visibility->unjudged.reported, n * sizeof(*reported));
		if (!reported)
			return;
		memset(reported + a->visibility->unjudged.n, 0, (n - a->visibility->unjudged.n) * sizeof(*reported));
		a->visibility->unjudged.reported = reported;
		a->visibility->unjudged.n = n;
	}
	for (size_t g = 0; g < n; g++) {
		uint32_t count = hw_monitor_unjudged_of(a->monitor, g);
		if (a->visibility->unjudged.reported[g] != (count > 0))
			report(a, g, count);
		a->visibility->unjudged.reported[g] = count > 0;
	}
}

void hw_app_unjudged_tick(struct hw_app *a, struct hw_now now)
{
	if (a->life.loading || hw_app_stands_by(a))
		return;
	if (hw_monitor_count_unjudged(a->monitor, now, RECORDS_A_SECOND))
		report_changes(a);
}

bool hw_app_unjudged_known(struct hw_app *a, struct hw_now now)
{
	if (a->visibility->unjudged.known || a->life.loading)
		return a->visibility->unjudged.known;
	a->visibility->unjudged.known = hw_monitor_count_unjudged(a->monitor, now, RECORDS_A_TURN);
	if (!a->visibility->unjudged.known)
		hw_app_schedule_turn(a);
	return a->visibility->unjudged.known;
}

bool hw_app_unjudged_counted(const struct hw_app *a)
{
	return a->visibility->unjudged.known;
}

void hw_app_unjudged_write(const struct hw_app *a, struct hw_json *j)
{
	const struct hw_groups *groups = hw_monitor_groups(a->monitor);
	hw_json_uint(j, "unjudged", hw_monitor_unjudged(a->monitor));
	if (hw_monitor_unjudged(a->monitor) == 0)
		return;
	hw_json_open_member(j, "unjudged_groups", '[');
	for (size_t g = 0, shown = 0; g < groups->n && shown < GROUPS_SHOWN; g++) {
		if (!hw_monitor_unjudged_of(a->monitor, g))
			continue;
		hw_json_item(j, groups->all[g]->name);
		shown++;
	}
	hw_json_close(j, ']');
}
