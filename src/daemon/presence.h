/* SPDX-License-Identifier: MIT */
/* The monitor's own status. */
#ifndef HW_PRESENCE_H
#define HW_PRESENCE_H

#include "context.h"

/* Its payload; with `online` false the last will's. Returns its length, or -1 if it does not fit. */
int hw_app_presence_payload(struct hw_app *a, struct hw_now now, bool online, char *buf, size_t cap);
/* Publishes it if it is due. */
void hw_app_presence(struct hw_app *a, struct hw_now now);

#endif
