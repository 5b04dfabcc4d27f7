/* SPDX-License-Identifier: MIT */
/* See script.h. */
#include "redis/script.h"

const char *hw_script_text(enum hw_script s)
{
	switch (s) {
	case HW_SCRIPT_SIGHT_RECORD:
		return hw_script_sight_record_text;
	case HW_SCRIPT_MONITORS:
		return hw_script_monitors_text;
	case HW_SCRIPT_REFRESH:
		return hw_script_refresh_text;
	case HW_SCRIPT_INVENTORY:
		return hw_script_inventory_text;
	case HW_SCRIPT_UNSEEN:
		return hw_script_unseen_text;
	case HW_SCRIPT_PUBLISHED:
		return hw_script_published_text;
	default:
		return hw_script_transition_text;
	}
}

const char *hw_cluster_script_text(enum hw_cluster_script s)
{
	switch (s) {
	case HW_CLUSTER_RENEW:
		return hw_script_renew_text;
	case HW_CLUSTER_CLAIM:
		return hw_script_claim_text;
	case HW_CLUSTER_RELEASE:
		return hw_script_release_text;
	default:
		return hw_script_remove_text;
	}
}
