/* SPDX-License-Identifier: MIT */
/* See manager.h. */
#include "run/manager.h"

#include <stdint.h>

#ifdef HW_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

void hw_manager_notify(const char *state)
{
#ifdef HW_HAVE_SYSTEMD
	sd_notify(0, state);
#else
	(void)state;
#endif
}

long hw_manager_watchdog_ms(void)
{
#ifdef HW_HAVE_SYSTEMD
	uint64_t usec = 0;
	if (sd_watchdog_enabled(0, &usec) > 0)
		return (long)(usec / 1000 / 2);
#endif
	return 0;
}
