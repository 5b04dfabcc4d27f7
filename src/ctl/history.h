/* SPDX-License-Identifier: MIT */
/* The commands that ask heartwheel-history: what is asked, and how an answer's rows are shown to people. */
#ifndef HW_CTL_HISTORY_H
#define HW_CTL_HISTORY_H

#include "ctl/ctl.h"

/* What follows `history`, `outages` or `uptime`; NULL or 0: not given. */
struct hw_history_args {
	const char *id, *group, *since, *until, *month, *min;
	uint64_t limit;
	bool json, csv;
};

/* A page of transitions or outages. `before_ms` is the time of the row above, 0: there is none. */
void hw_show_device_head(const struct hw_ctl *ctl, const cJSON *answer);
void hw_show_transitions(const struct hw_ctl *ctl, const cJSON *rows, int64_t *before_ms);
void hw_show_outages(const struct hw_ctl *ctl, const cJSON *rows, bool first);
/* A whole report on uptime. */
void hw_show_uptime(const struct hw_ctl *ctl, const cJSON *report, bool one_device);
/* What `history status` says. */
void hw_show_history_status(const struct hw_ctl *ctl, const cJSON *status);

#endif
