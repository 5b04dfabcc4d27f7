/* SPDX-License-Identifier: MIT */
/* The notifier for devices: their transitions, and blindness. */
#ifndef HW_NOTIFY_DEVICES_H
#define HW_NOTIFY_DEVICES_H

#include "heartwheel/monitor.h"
#include "notify/notify.h"

/* Like hw_notifier_new(); `m` is borrowed. */
struct hw_notifier *hw_notifier_of_devices(struct event_base *base, const struct hw_monitor *m,
                                           hw_notifier_trouble *trouble, void *arg);
void hw_notifier_transition(struct hw_notifier *n, struct hw_now now, const struct hw_transition *t);
/* `out` has the kind HW_OUT_BLIND. */
void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out);

/* Call once a second: reports a blindness that has lasted long enough. */
void hw_notifier_blind_tick(struct hw_notifier *n, struct hw_now now);

#endif
