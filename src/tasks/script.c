/* SPDX-License-Identifier: MIT */
/* See script.h. */
#include "tasks/script.h"

const char *const hw_tasks_script_texts[HW_TASKS_SCRIPTS] = {
	[HW_TASKS_SUBMIT] = hw_tasks_script_submit_text, [HW_TASKS_CLAIM] = hw_tasks_script_claim_text,
	[HW_TASKS_ANSWER] = hw_tasks_script_answer_text, [HW_TASKS_CANCEL] = hw_tasks_script_cancel_text,
	[HW_TASKS_ONLINE] = hw_tasks_script_online_text, [HW_TASKS_PAGE] = hw_tasks_script_page_text,
	[HW_TASKS_LIST] = hw_tasks_script_list_text,     [HW_TASKS_SHOW] = hw_tasks_script_show_text,
	[HW_TASKS_COUNT] = hw_tasks_script_count_text,   [HW_TASKS_WATCH] = hw_tasks_script_watch_text,
	[HW_TASKS_SWEEP] = hw_tasks_script_sweep_text,   [HW_TASKS_CALLBACK] = hw_tasks_script_callback_text};
