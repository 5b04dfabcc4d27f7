/* SPDX-License-Identifier: MIT */
/* Work that takes too long for the loop: a function that runs in a thread of its own, one at a time. */
#ifndef HW_RUN_JOB_H
#define HW_RUN_JOB_H

struct event_base;
struct hw_job; /* opaque */

typedef void hw_job_fn(void *arg);

/* `done` is called on the loop after each work. NULL if there is no memory or no descriptor. */
struct hw_job *hw_job_new(struct event_base *base, hw_job_fn *done, void *arg);
/* Runs `work` in a thread. Until `done` is called, the loop must not touch what the thread uses. Must not be called
 * while a thread runs. Returns 0, or -EAGAIN if no thread can be started. */
int hw_job_start(struct hw_job *j, hw_job_fn *work);
/* Waits for the thread if one runs; `done` is not called. */
void hw_job_free(struct hw_job *j);

#endif
