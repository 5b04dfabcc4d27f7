/* SPDX-License-Identifier: MIT */
/*
 * The names of states and reasons in the store, the API and the events. Other programs read them, so a name never
 * changes.
 */
#include "heartwheel/transition.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const states[] = {
	[HW_STATE_PROVISIONAL] = "provisional", [HW_STATE_ONLINE] = "online", [HW_STATE_OFFLINE] = "offline",
	[HW_STATE_FORGOTTEN] = "forgotten",     [HW_STATE_UNSEEN] = "unseen",
};

static const char *const reasons[] = {
	[HW_REASON_HEARTBEAT] = "heartbeat", [HW_REASON_TIMEOUT] = "timeout",
	[HW_REASON_WILL] = "will",           [HW_REASON_KEYSPACE] = "keyspace",
	[HW_REASON_OPERATOR] = "operator",   [HW_REASON_FORGET_AFTER] = "forget_after",
	[HW_REASON_PARENT] = "parent",       [HW_REASON_NEVER_SEEN] = "never_seen",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int look_up(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -EINVAL;
}

const char *hw_state_name(enum hw_state s)
{
	return (size_t)s < COUNT(states) ? states[s] : "unknown";
}

const char *hw_reason_name(enum hw_reason r)
{
	return (size_t)r < COUNT(reasons) ? reasons[r] : "unknown";
}

int hw_state_parse(const char *name, enum hw_state *out)
{
	int i = look_up(states, COUNT(states), name);
	if (i < 0)
		return i;
	*out = (enum hw_state)i;
	return 0;
}

int hw_reason_parse(const char *name, enum hw_reason *out)
{
	int i = look_up(reasons, COUNT(reasons), name);
	if (i < 0)
		return i;
	*out = (enum hw_reason)i;
	return 0;
}
