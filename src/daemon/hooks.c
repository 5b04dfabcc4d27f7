/* SPDX-License-Identifier: MIT */
/* The notifier's place in the daemon: its configuration, and what it has to complain of. */
#include "hooks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 10000
#define RETRY_MS   1000

int hw_app_configure_notifier(struct hw_app *a, const struct hw_settings *c)
{
	struct hw_notifier_conf nc = {.node_id = c->node_id,
	                              .exec = c->notify_exec,
	                              .webhook = c->notify_webhook,
	                              .interval_ms = c->notify_interval_ms,
	                              .timeout_ms = TIMEOUT_MS,
	                              .retry_ms = RETRY_MS};
	/* Not an error: it may be put there later. */
	if (c->notify_exec[0] && access(c->notify_exec, X_OK))
		hw_log(a->log, HW_LOG_WARNING, "[notify] exec = %s cannot be run: %s", c->notify_exec, strerror(errno));
	return hw_notifier_configure(a->notifier, &nc);
}

void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text)
{
	struct hw_app *a = arg;
	/* The URL may hold a secret: it is not logged. */
	hw_log_limited(a->log, HW_LIMIT_NOTIFY, HW_LOG_WARNING, "[notify] %s: %s", hw_notifier_kind_name(kind), text);
}
