/* SPDX-License-Identifier: MIT */
/* The notifier's place in the daemon: its configuration, what it has to complain of, and what the API is told of it. */
#include "hooks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "notify/show.h"

int hw_app_configure_notifier(struct hw_app *a, const struct hw_settings *c)
{
	/* Not an error: it may be put there later. */
	if (c->notify.exec[0] && access(c->notify.exec, X_OK))
		hw_log(a->log, HW_LOG_WARNING, "[notify] exec = %s cannot be run: %s", c->notify.exec, strerror(errno));
	return hw_notify_configure(a->notifier, &c->notify, c->node_id);
}

void hw_app_notify_trouble(void *arg, enum hw_notifier_kind kind, const char *text)
{
	struct hw_app *a = arg;
	/* The URL may hold a secret: it is not logged. */
	hw_log_limited(a->log, HW_LIMIT_NOTIFY, HW_LOG_WARNING, "[notify] %s: %s", hw_notifier_kind_name(kind), text);
}

/* --- the API ------------------------------------------------------------------ */

void hw_app_show_notify(void *arg, struct hw_json *j)
{
	const struct hw_app *a = arg;
	hw_notify_show(a->notifier, &a->conf->notify, j);
}

int hw_app_test_notify(void *arg, const char *channel, struct hw_json *j)
{
	struct hw_app *a = arg;
	return hw_notify_test(a->notifier, &a->conf->notify, channel, j);
}
