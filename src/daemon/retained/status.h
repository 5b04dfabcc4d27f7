/* SPDX-License-Identifier: MIT */
/* The retained status of a device, as a kind of the retained sink (retained_sink.h). */
#ifndef HW_STATUS_H
#define HW_STATUS_H

#include "retained_sink.h"

extern const struct hw_retained_kind hw_status_kind;

/* Writes the payload of a device's retained status, with a NUL. Returns its length; 0 for a clearing (forgotten); -1 if
 * the group publishes no status, or `buf` is too small. */
int hw_status_payload(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
                      size_t cap);

#endif
