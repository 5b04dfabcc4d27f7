/* SPDX-License-Identifier: MIT */
/*
 * A task's name: a UUID (version 8, RFC 9562) made of HMAC-SHA256(task:secret, sender, msg_id), so that a repeated
 * submission has the same, on every instance, and nobody can guess one.
 */
#ifndef HW_TASKS_NAME_H
#define HW_TASKS_NAME_H

#include "tasks/task.h"

#define HW_TASKS_SECRET_LEN 32

/* The name of the task that `sender` calls `msg_id`. 0, or -ENOMEM if libcrypto cannot. */
int hw_task_name(struct hw_task_id *id, const unsigned char secret[HW_TASKS_SECRET_LEN], struct hw_text sender,
                 struct hw_text msg_id);

#endif
