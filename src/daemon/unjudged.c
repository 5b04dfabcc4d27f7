/* SPDX-License-Identifier: MIT */
/* See unjudged.h. */
#include "unjudged.h"

#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "wake.h"

#define RECORDS_A_SECOND 65536
#define RECORDS_A_TURN   4096
#define GROUPS_SHOWN     8

static void tell(struct hw_app *a, size_t g, uint32_t n)
{
	const struct hw_group *group = hw_monitor_groups(a->monitor)->all[g];
	if (n == 0)
		hw_log(a->log, HW_LOG_NOTICE, "group '%s': all its devices are judged again", group->name);
	else if (group->unheard)
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s': unjudged: %u device%s: the configuration has no such group, so this node does not "
		       "hear them; they keep their state; configure the group, or forget the devices",
		       group->name, n, n == 1 ? "" : "s");
	else
		hw_log(a->log, HW_LOG_WARNING,
		       "group '%s': unjudged: %u device%s: heard with other filters of the group, and not with those "
		       "of this node; they keep their state until this node hears them, or a node with those filters "
		       "owns them; give all nodes the same groups, or forget the devices",
		       group->name, n, n == 1 ? "" : "s");
}

/* Says of each group once that it has some, and once that it has none any more. */
static void tell_changes(struct hw_app *a)
{
	size_t n = hw_monitor_groups(a->monitor)->n;
	if (n > a->unjudged.n) {
		bool *told = realloc(a->unjudged.told, n * sizeof(*told));
		if (!told)
			return;
		memset(told + a->unjudged.n, 0, (n - a->unjudged.n) * sizeof(*told));
		a->unjudged.told = told;
		a->unjudged.n = n;
	}
	for (size_t g = 0; g < n; g++) {
		uint32_t count = hw_monitor_unjudged_of(a->monitor, g);
		if (a->unjudged.told[g] != (count > 0))
			tell(a, g, count);
		a->unjudged.told[g] = count > 0;
	}
}

void hw_app_unjudged_tick(struct hw_app *a, struct hw_now now)
{
	if (a->loading || hw_app_stands_by(a))
		return;
	if (hw_monitor_count_unjudged(a->monitor, now, RECORDS_A_SECOND))
		tell_changes(a);
}

bool hw_app_unjudged_known(struct hw_app *a, struct hw_now now)
{
	if (a->unjudged.known || a->loading)
		return a->unjudged.known;
	a->unjudged.known = hw_monitor_count_unjudged(a->monitor, now, RECORDS_A_TURN);
	if (!a->unjudged.known)
		hw_app_soon(a);
	return a->unjudged.known;
}

void hw_app_unjudged_add(const struct hw_app *a, cJSON *entry)
{
	const struct hw_groups *groups = hw_monitor_groups(a->monitor);
	cJSON_AddNumberToObject(entry, "unjudged", hw_monitor_unjudged(a->monitor));
	if (hw_monitor_unjudged(a->monitor) == 0)
		return;
	cJSON *names = cJSON_AddArrayToObject(entry, "unjudged_groups");
	for (size_t g = 0; g < groups->n && cJSON_GetArraySize(names) < GROUPS_SHOWN; g++)
		if (hw_monitor_unjudged_of(a->monitor, g))
			cJSON_AddItemToArray(names, cJSON_CreateString(groups->all[g]->name));
}

void hw_app_unjudged_free(struct hw_app *a)
{
	free(a->unjudged.told);
}
