/* SPDX-License-Identifier: MIT */
/* The reports. Each is a function for the query worker (query_worker.h) with a struct hw_report_asked as its argument.
 */
#ifndef HW_HISTORY_REPORT_H
#define HW_HISTORY_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "history/query_worker.h"

struct hw_report_asked {
	char device[256], group[256];  /* "": all devices, all groups */
	int64_t since_ms, until_ms;    /* [since, until) */
	bool since_given, until_given; /* the query has this parameter */
	bool month, csv;               /* the window is a month, or its part up to now if the month has not ended */
	int64_t after, after_dev;      /* pages: only rows after this position; INT64_MAX: the first page */
	char incident[40];             /* pages of incidents: only incidents older than this one; "": the first page */
	int64_t min_ms;                /* only outages of at least this length */
	unsigned limit, offset;
	bool by_outages; /* sort by the number of outages instead of by down time */
	int64_t step_ms; /* length of a bar; distance between two counts */
	bool live;       /* the client has a live view of the fleet */
};

hw_query_fn hw_report_transitions, hw_report_outages, hw_report_uptime, hw_report_badge, hw_report_events,
	hw_report_bars, hw_report_counts, hw_report_incidents;

#endif
