/* SPDX-License-Identifier: MIT */
/* See notification.h. */
#include "notify/notification.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>

int hw_fields_are_whole(const struct hw_fields *f)
{
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		if (!f->of[k])
			return -ENOMEM;
	return 0;
}

void hw_fields_fini(struct hw_fields *f)
{
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		free(f->of[k]);
	*f = (struct hw_fields){.bad = false};
}

int hw_notification_finish(struct hw_notification *m, int rc)
{
	if (m->json && rc == 0)
		return 0;
	hw_notification_fini(m);
	return -ENOMEM;
}

void hw_notification_fini(struct hw_notification *m)
{
	if (m->json)
		evbuffer_free(m->json);
	hw_fields_fini(&m->fields);
	*m = (struct hw_notification){0};
}
