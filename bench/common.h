/* SPDX-License-Identifier: MIT */
/*
 * What the bench's programs share: a clock, a repeatable random order, memory that all contenders get alike, and how
 * much of it is in use.
 */
#ifndef HEARTWHEEL_BENCH_COMMON_H
#define HEARTWHEEL_BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The monotonic clock. */
int64_t bench_ns(void);

/* 0 .. n-1 in an order that depends on `seed` alone. The caller frees it. Ends the program without memory. */
uint32_t *bench_order(uint32_t n, uint64_t seed);

/* Fills `out` with `count` of 0 .. n-1, drawn at random (repetitions included). `*state` is not 0, and moves on. */
void bench_draw(uint32_t *out, size_t count, uint32_t n, uint64_t *state);

/* The id of a device, "device-0000042": BENCH_ID_LEN bytes, without a NUL. */
#define BENCH_ID_LEN 14
void bench_write_id(char *id, uint32_t device);

/* Zeroed memory, which is never freed, in huge pages if the machine has them. Ends the program if there is none. */
void *bench_memory(size_t bytes);

/* Resident memory of this process, in bytes. */
int64_t bench_rss(void);

/* The argument `i` as a number; ends the program if it is missing or none. */
uint64_t bench_number(int argc, char **argv, int i);

/* Prints a line KEY VALUE. */
void bench_say(const char *key, double value);

/* Reports that a contender is ready for a round, and waits until its turn; false: there are no more rounds. */
bool bench_round(void);

#endif
