/* SPDX-License-Identifier: MIT */
/* The monitor's Lua scripts (scripts/NAME.lua, compiled in by embed.sh). */
#ifndef HW_REDIS_SCRIPT_H
#define HW_REDIS_SCRIPT_H

enum hw_script {
	HW_SCRIPT_SIGHT_RECORD,
	HW_SCRIPT_MONITORS,
	HW_SCRIPT_REFRESH,
	HW_SCRIPT_TRANSITION,
	HW_SCRIPT_INVENTORY,
	HW_SCRIPT_UNSEEN,
	HW_SCRIPT_PUBLISHED,
	HW_SCRIPTS
};

/* The scripts of a cluster: only its nodes load them. */
enum hw_cluster_script {
	HW_CLUSTER_RENEW,
	HW_CLUSTER_CLAIM,
	HW_CLUSTER_RELEASE,
	HW_CLUSTER_REMOVE,
	HW_CLUSTER_SCRIPTS
};

extern const char hw_script_sight_record_text[];
extern const char hw_script_monitors_text[];
extern const char hw_script_refresh_text[];
extern const char hw_script_transition_text[];
extern const char hw_script_inventory_text[];
extern const char hw_script_unseen_text[];
extern const char hw_script_published_text[];
extern const char hw_script_renew_text[];
extern const char hw_script_claim_text[];
extern const char hw_script_release_text[];
extern const char hw_script_remove_text[];

const char *hw_script_text(enum hw_script s);
const char *hw_cluster_script_text(enum hw_cluster_script s);

#endif
