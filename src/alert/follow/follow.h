/* SPDX-License-Identifier: MIT */
/*
 * Reads the streams device:events, device:parent_heard and task:events for the engine, in order and without a gap. If
 * entries of device:events were trimmed before they were read, the state is loaded again.
 *
 * While a commit is unconfirmed, at most HW_ALERT_PAGE entries are read that it does not contain. The readers then wait
 * for the end of the commit.
 */
#ifndef HW_ALERT_FOLLOW_H
#define HW_ALERT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/id.h"

#define HW_ALERT_PAGE 1000

struct hw_alert_app;
struct hw_alert_follow;

enum hw_alert_stream { HW_ALERT_EVENTS, HW_ALERT_HEARD, HW_ALERT_TASKS, HW_ALERT_STREAMS };
/* Returns "events", "parent_heard" or "tasks": the NAME in the field `at:NAME` of device:alert. */
const char *hw_alert_stream_name(enum hw_alert_stream s);
/* Returns the stream's key, in a buffer of HW_ALERT_KEY_MAX bytes. */
const char *hw_alert_stream_key(const struct hw_alert_app *a, enum hw_alert_stream s, char *buf);

struct hw_alert_offset {
	struct hw_stream_id id;
	bool known;
};

struct hw_alert_follow *hw_alert_follow_new(struct hw_alert_app *app);
void hw_alert_follow_free(struct hw_alert_follow *f);
void hw_alert_follow_store(struct hw_alert_follow *f, bool up);

/* Begins to read after these offsets, or stops. While reading, the engine exists. */
void hw_alert_follow_begin(struct hw_alert_follow *f, const struct hw_alert_offset offsets[HW_ALERT_STREAMS]);
void hw_alert_follow_end(struct hw_alert_follow *f);
/* Called when Redis was emptied or failed over. Reads again all entries since `ms` (Redis' clock), even if some are
 * missing. */
void hw_alert_follow_again(struct hw_alert_follow *f, int64_t ms);
/* Called when a commit has ended. Readers that have waited for its end continue. */
void hw_alert_follow_resume(struct hw_alert_follow *f);

void hw_alert_follow_offsets(const struct hw_alert_follow *f, struct hw_alert_offset out[HW_ALERT_STREAMS]);
/* Returns for how many ms the oldest unread entry has waited; 0: there is none. `redis_ms`: Redis' clock. */
int64_t hw_alert_follow_lag_ms(const struct hw_alert_follow *f, int64_t redis_ms);
/* Whether Redis refuses to read a stream, and why. */
bool hw_alert_follow_is_refused(const struct hw_alert_follow *f, char *why, size_t cap);
/* Called for a new entry of device:events, with [store] type = memory. Reads it soon. */
void hw_alert_follow_entry(struct hw_alert_follow *f);
/* Called each second. */
void hw_alert_follow_tick(struct hw_alert_follow *f);

#endif
