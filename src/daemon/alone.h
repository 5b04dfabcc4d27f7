/* SPDX-License-Identifier: MIT */
/*
 * A monitor by itself ([cluster] mode = off) does not work on a prefix on which nodes of a cluster live: it would write
 * over what they own. Before it loads, it looks whether there are any; if there are, whether they do anything within
 * the time in which the slowest renews its entry. One command at the start where there are none.
 */
#ifndef HW_ALONE_H
#define HW_ALONE_H

#include "context.h"

/* Loads the store once it is known that nobody else works on it. */
void hw_app_alone_start(struct hw_app *a);
/* The link to Redis is there; and each second. */
void hw_app_alone_look(struct hw_app *a);

#endif
