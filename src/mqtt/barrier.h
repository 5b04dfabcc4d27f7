/* SPDX-License-Identifier: MIT */
/*
 * What a barrier looks like on the wire: "MARK NUMBER", the mark as 16 hex digits, the number in decimal.
 */
#ifndef HW_MQTT_BARRIER_H
#define HW_MQTT_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_BARRIER_MAX 40

struct hw_barrier {
	uint64_t mark, number;
};

/* The length written, without the NUL. */
size_t hw_barrier_print(const struct hw_barrier *b, char to[HW_BARRIER_MAX]);
/* Exactly what hw_barrier_print() writes, or false. */
bool hw_barrier_parse(const void *payload, size_t len, struct hw_barrier *b);

#endif
