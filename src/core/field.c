/* SPDX-License-Identifier: MIT */
/* Parses the name and the path of a reported field, from its line in the configuration. See payload.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/payload.h"

static const char *check_path(const char *path)
{
	if (!*path)
		return "needs a path after the name, such as Wifi.RSSI";
	if (*path == '.' || path[strlen(path) - 1] == '.' || strstr(path, ".."))
		return "has an empty name in its path";
	return NULL;
}

int hw_field_compile(struct hw_field *f, const char *text, const char **why)
{
	size_t n = strcspn(text, " \t");
	const char *path = text + n + strspn(text + n, " \t");
	*f = (struct hw_field){.has = 0};
	for (int k = 0; k < HW_REPORT_FIELDS; k++)
		if (strlen(hw_report_fields[k].name) == n && memcmp(hw_report_fields[k].name, text, n) == 0)
			f->has = 1U << k;
	*why = f->has ? check_path(path) : "must begin with battery, rssi, ip, version, uptime or data";
	if (*why)
		return -EINVAL;
	f->path = strdup(path);
	if (f->path)
		return 0;
	*why = "finds no memory";
	return -ENOMEM;
}

void hw_field_fini(struct hw_field *f)
{
	free(f->path);
	memset(f, 0, sizeof(*f));
}
