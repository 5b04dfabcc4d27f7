/* SPDX-License-Identifier: MIT */
/* The id of a task: 16 bytes, as text a UUID. */
#ifndef HW_TASKS_TASK_ID_H
#define HW_TASKS_TASK_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_TASK_TEXT 36 /* bytes of the text */

struct hw_task_id {
	uint8_t bytes[16];
};

/* Writes the 36 characters, lower case, and a NUL. */
void hw_task_id_text(const struct hw_task_id *id, char text[HW_TASK_TEXT + 1]);
/* Returns false unless the text is exactly these 36 characters. */
bool hw_task_id_parse(struct hw_task_id *id, const char *text, size_t len);

#endif
