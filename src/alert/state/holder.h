/* SPDX-License-Identifier: MIT */
/*
 * The lease device:alert:lease decides which of several instances works. The holder renews the lease every 2 s. When
 * the lease has expired, another instance takes it, with a new epoch. The script refuses a commit with an older epoch,
 * so the previous holder cannot change anything: it is fenced.
 */
#ifndef HW_ALERT_HOLDER_H
#define HW_ALERT_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#define HW_ALERT_LEASE_MS 30000
#define HW_ALERT_RENEW_S  2
/* After a confirmed renewal of the lease, messages may be sent for this long (CLOCK_BOOTTIME). */
#define HW_ALERT_TRY_MS    10000
#define HW_ALERT_NODE_TEXT 128

struct hw_alert_app;
struct hw_alert_holder;

/* The answer of a script. FENCED: another run holds the lease. GONE: Redis was emptied. BEHIND: Redis has an older
 * state than the last commit, as after a failover. UNKNOWN: no answer of these scripts. */
enum hw_alert_verdict { HW_ALERT_OK, HW_ALERT_FENCED, HW_ALERT_GONE, HW_ALERT_BEHIND, HW_ALERT_UNKNOWN };
enum hw_alert_verdict hw_alert_verdict_of(const char *text);

struct hw_alert_holder *hw_alert_holder_new(struct hw_alert_app *app);
void hw_alert_holder_free(struct hw_alert_holder *h);
/* Called when the store becomes up or down. */
void hw_alert_holder_store(struct hw_alert_holder *h, bool up);
/* Called each second. Takes the lease if it has expired, or renews it. */
void hw_alert_holder_tick(struct hw_alert_holder *h);
/* Renews the lease now. hw_alert_on_renewed() follows, unless Redis was emptied or another run holds the lease. */
void hw_alert_holder_check(struct hw_alert_holder *h);
/* Called when a commit was refused. `text` is the name of the other run, or the number of the stored commit. */
void hw_alert_holder_refused(struct hw_alert_holder *h, enum hw_alert_verdict v, const char *text);
/* Gives the lease back at a clean stop. `done` is called once, also if Redis cannot be reached. */
void hw_alert_holder_release(struct hw_alert_holder *h, void (*done)(void *arg), void *arg);

bool hw_alert_holder_is(const struct hw_alert_holder *h);
/* Whether the lease was confirmed within HW_ALERT_TRY_MS. */
bool hw_alert_holder_is_sure(const struct hw_alert_holder *h);
/* Returns the node that holds the lease; "": this node, or none. */
const char *hw_alert_holder_other(const struct hw_alert_holder *h);
/* hw_alert_holder_name(): returns "NODE RUN". hw_alert_holder_epoch(): returns the epoch of this run. Scripts expect
 * both in this form. */
const char *hw_alert_holder_name(const struct hw_alert_holder *h);
const char *hw_alert_holder_epoch(const struct hw_alert_holder *h);
/* Returns the time of Redis' clock: wall clock, ms; 0: not known. */
int64_t hw_alert_holder_redis_ms(const struct hw_alert_holder *h);

#endif
