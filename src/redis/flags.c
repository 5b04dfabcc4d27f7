/* SPDX-License-Identifier: MIT */
#include "redis/flags.h"

#include <stdio.h>
#include <string.h>

#include "heartwheel/print.h"

bool hw_flags_complete(const char *have, char buf[HW_FLAGS_MAX])
{
	size_t len = hw_print(buf, HW_FLAGS_MAX - sizeof(HW_FLAGS_NEEDED), "%.40s", have);
	bool all = strchr(have, 'A') != NULL, missing = false;
	for (const char *f = HW_FLAGS_NEEDED; *f; f++) {
		if (strchr(have, *f) || (all && *f != 'E'))
			continue;
		buf[len++] = *f;
		buf[len] = '\0';
		missing = true;
	}
	return missing;
}
