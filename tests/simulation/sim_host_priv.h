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
void sim_host_read_acks(struct sim *s);
void sim_host_note_empty(struct sim *s);

/* sim_feed.c */
void sim_feed_init(struct sim *s);
void sim_feed_fini(struct sim *s);
/* What a reader has gathered is gone with its connection. */
void sim_feed_forget(struct sim *s, uint32_t reader);
/* Whether the core has not worked off all that it was to be given in the last turn. */
bool sim_feed_has_left(const struct sim *s, uint32_t reader);

/* A connection is lost; it is opened again after a while. */
void sim_host_down(struct sim *s, uint32_t link);
/* The publisher leaves for an eighth of a timeout, or is not there yet. */
void sim_host_rest_publisher(struct sim *s);

#endif
