/* SPDX-License-Identifier: MIT */
/* What the two files of the host share. */
#ifndef SIM_HOST_PRIV_H
#define SIM_HOST_PRIV_H

#include <stdbool.h>

#include "sim_host.h"

/* Takes what the core has to say; whether the budget was used up. */
bool sim_host_drain(struct sim *s, unsigned budget);
/* The loop woke: perhaps late. */
struct hw_now sim_host_woke(struct sim *s);
/* Ends a turn of the loop. */
void sim_host_turn(struct sim *s);
void sim_host_tick(struct sim *s);
void sim_host_republish(struct sim *s);
void sim_host_read(struct sim *s, uint32_t reader);
void sim_host_note_empty(struct sim *s);
/* A connection is lost; it is opened again after a while. */
void sim_host_down(struct sim *s, uint32_t link);
/* The publisher leaves for an eighth of a timeout, or is not there yet. */
void sim_host_rest_publisher(struct sim *s);

#endif
