/* SPDX-License-Identifier: MIT */
/* The query of GET /v1/devices: which devices are listed, in which order, and where the page begins. */
#ifndef HW_CONTROL_LIST_QUERY_H
#define HW_CONTROL_LIST_QUERY_H

#include "control/labels.h"
#include "control/rank.h"
#include "heartwheel/group.h"

struct hw_list_query {
	const struct hw_groups *groups;                    /* borrowed */
	int state;                                         /* enum hw_state, or -1: any */
	int group;                                         /* or -1: any */
	char prefix[HW_ID_MAX + 1], search[HW_ID_MAX + 1]; /* search: in lower case */
	size_t prefix_len, search_len;
	char parent[HW_ID_MAX]; /* one of its parents */
	size_t parent_len;
	struct hw_label_filter label;
	enum hw_order order;
	bool back;      /* reverse order */
	unsigned level; /* 0: the devices are listed; otherwise they are counted by this level of their ids */
	unsigned limit; /* the most devices of a page */
	char after[HW_ID_MAX + 1];
	size_t after_len;
};

/* Reads a query string into *q. An empty value counts as not given. Returns NULL, or what is wrong. */
const char *hw_list_query_read(struct hw_list_query *q, const struct hw_groups *groups, const char *query);

#endif
