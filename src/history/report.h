/* SPDX-License-Identifier: MIT */
/* The reports: each a question for the desk (query_worker.h), whose argument is a struct hw_report_asked. */
#ifndef HW_HISTORY_REPORT_H
#define HW_HISTORY_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "history/query_worker.h"

struct hw_report_asked {
	char device[256], group[256];  /* "": all */
	int64_t since_ms, until_ms;    /* [since, until) */
	bool since_given, until_given; /* they stood in the query */
	bool month, csv;               /* the window is a month, as far as it has come */
	int64_t after, after_dev;      /* of a page: behind this; INT64_MAX: the first */
	int64_t min_ms;                /* outages of at least this length */
	unsigned limit, offset;
	bool by_outages; /* the most outages first, not who was down longest */
	int64_t step_ms; /* of a bar; between two counts */
	bool live;       /* who asks sees now */
};

hw_query_fn hw_report_transitions, hw_report_outages, hw_report_uptime, hw_report_badge, hw_report_events,
	hw_report_bars, hw_report_counts;

#endif
