/* SPDX-License-Identifier: MIT */
/* The Lua scripts of heartwheel-alert, in the order that hw_scripts_init() takes. src/redis/embed.sh puts
 * scripts/NAME.lua into the program. */
#ifndef HW_ALERT_SCRIPT_H
#define HW_ALERT_SCRIPT_H

enum hw_alert_script { HW_ALERT_COMMIT, HW_ALERT_RENEW, HW_ALERT_TAKE, HW_ALERT_TRIM, HW_ALERT_SCRIPTS };

extern const char hw_alert_script_commit_text[];
extern const char hw_alert_script_renew_text[];
extern const char hw_alert_script_take_text[];
extern const char hw_alert_script_trim_text[];

/* HW_ALERT_SCRIPTS of them. */
extern const char *const hw_alert_script_texts[HW_ALERT_SCRIPTS];

#endif
