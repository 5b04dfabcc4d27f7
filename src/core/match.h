/* SPDX-License-Identifier: MIT */
/*
 * Matches topics with the groups' filters: hw_groups_match() and the other matching functions of group.h. If there are
 * many filters, an index finds those that match. Private to the core.
 */
#ifndef HW_MATCH_H
#define HW_MATCH_H

#include "heartwheel/group.h"

/* Makes g->index for the present groups, if they have many filters. Returns 0 or -ENOMEM. The caller calls
 * hw_match_index_free() in both cases. */
int hw_match_index_new(struct hw_groups *g);
void hw_match_index_free(struct hw_match_index *x);

#endif
