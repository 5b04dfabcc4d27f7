/* SPDX-License-Identifier: MIT */
/* What the daemon logs each second, with a limit on the lines: refused messages, payload errors, and addresses that
 * guess API tokens. Also the status line for the service manager. */
#ifndef HW_REPORTS_H
#define HW_REPORTS_H

#include "daemon/context.h"

/* Sets a->reports, which the caller frees. Returns 0 or -ENOMEM. */
int hw_app_reports_new(struct hw_app *a);
/* Called after a restart within the process, which keeps the API's counters. Marks the present values of the counters
 * as logged. */
void hw_app_reports_resume(struct hw_app *a);
/* Called after a device was loaded from the store. `refused_before` is the value of refused[HW_REFUSED_STORED]
 * before that. If the record was corrected, the next log line names the device. */
void hw_app_reports_stored(struct hw_app *a, const char *id, size_t id_len, uint64_t refused_before);
/* Counts a message that a reader has discarded (HW_READER_TOO_LONG). `text` is for the next log line. */
void hw_app_reports_too_long(struct hw_app *a, const char *text);
/* Called each second. */
void hw_app_reports_tick(struct hw_app *a);

#endif
