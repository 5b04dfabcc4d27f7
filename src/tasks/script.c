/* SPDX-License-Identifier: MIT */
/* See script.h. */
#include "tasks/script.h"

const char *const hw_tasks_script_texts[HW_TASKS_SCRIPTS] = {
	[HW_TASKS_SUBMIT] = hw_tasks_script_submit_text, [HW_TASKS_CLAIM] = hw_tasks_script_claim_text,
	[HW_TASKS_ANSWER] = hw_tasks_script_answer_text, [HW_TASKS_CANCEL] = hw_tasks_script_cancel_text,
	[HW_TASKS_ONLINE] = hw_tasks_script_online_text, [HW_TASKS_PAGE] = hw_tasks_script_page_text};
