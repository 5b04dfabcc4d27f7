/* SPDX-License-Identifier: MIT */
/* The Lua scripts of tasks, in the order for hw_scripts_init(). src/redis/embed.sh compiles scripts/NAME.lua into the
 * program. */
#ifndef HW_TASKS_SCRIPT_H
#define HW_TASKS_SCRIPT_H

enum hw_tasks_script {
	HW_TASKS_SUBMIT,
	HW_TASKS_CLAIM,
	HW_TASKS_ANSWER,
	HW_TASKS_CANCEL,
	HW_TASKS_ONLINE,
	HW_TASKS_PAGE,
	HW_TASKS_LIST,
	HW_TASKS_SHOW,
	HW_TASKS_COUNT,
	HW_TASKS_WATCH,
	HW_TASKS_SWEEP,
	HW_TASKS_CALLBACK,
	HW_TASKS_SCRIPTS
};

extern const char hw_tasks_script_submit_text[];
extern const char hw_tasks_script_claim_text[];
extern const char hw_tasks_script_answer_text[];
extern const char hw_tasks_script_cancel_text[];
extern const char hw_tasks_script_online_text[];
extern const char hw_tasks_script_page_text[];
extern const char hw_tasks_script_list_text[];
extern const char hw_tasks_script_show_text[];
extern const char hw_tasks_script_count_text[];
extern const char hw_tasks_script_watch_text[];
extern const char hw_tasks_script_sweep_text[];
extern const char hw_tasks_script_callback_text[];

/* HW_TASKS_SCRIPTS of them. */
extern const char *const hw_tasks_script_texts[HW_TASKS_SCRIPTS];

#endif
