/* SPDX-License-Identifier: MIT */
/*
 * The payload of a barrier: "RUN_ID NUMBER". RUN_ID is the run id of the monitor, 16 hex digits. NUMBER is decimal.
 */
#ifndef HW_MQTT_BARRIER_H
#define HW_MQTT_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_BARRIER_MAX 40

struct hw_barrier {
	uint64_t run_id, number;
};

/* Returns the length written, without the NUL. */
size_t hw_barrier_print(const struct hw_barrier *b, char to[HW_BARRIER_MAX]);
/* Parses a payload. Returns false unless it is exactly as hw_barrier_print() writes it. */
bool hw_barrier_parse(const void *payload, size_t len, struct hw_barrier *b);

#endif
