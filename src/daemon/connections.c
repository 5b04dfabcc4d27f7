/* SPDX-License-Identifier: MIT */
/* See connections.h. */
#include "connections.h"

#include <string.h>

/* Every connection to a broker that is away says so: one line is enough. */
bool hw_app_is_told(const struct hw_app *a, const char *text)
{
	bool told = !a->publisher_up && strcmp(a->publisher_why, text) == 0;
	told |= !a->barriers.up && strcmp(a->barriers.why, text) == 0;
	for (unsigned i = 0; i < a->n_readers; i++)
		told |= !a->reader[i].up && strcmp(a->reader[i].why, text) == 0;
	return told;
}

void hw_app_tell_broker(struct hw_app *a, const char *text, bool taken)
{
	if (taken)
		hw_log_limited(a->log, HW_LIMIT_RIVAL, HW_LOG_ERROR, "broker: %s", text);
	else if (!hw_app_is_told(a, text))
		hw_log_limited(a->log, HW_LIMIT_BROKER, HW_LOG_WARNING, "broker: %s", text);
}

void hw_app_hurry(struct hw_app *a)
{
	hw_publisher_hurry(a->publisher);
	if (a->barriers.publisher)
		hw_publisher_hurry(a->barriers.publisher);
	for (unsigned i = 0; i < a->n_readers; i++)
		if (a->reader[i].reader)
			hw_reader_hurry(a->reader[i].reader);
}
