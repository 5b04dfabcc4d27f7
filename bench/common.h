/* SPDX-License-Identifier: MIT */
/*
 * Shared by the bench's programs: a clock, a repeatable random order, the memory that all contenders use in the same
 * way, and a measure of how much memory is in use.
 */
#ifndef HEARTWHEEL_BENCH_COMMON_H
#define HEARTWHEEL_BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The monotonic clock. */
int64_t bench_ns(void);

/* Returns the numbers 0 .. n-1 in an order that depends only on `seed`. The caller frees the array. Ends the program
 * if there is no memory. */
uint32_t *bench_order(uint32_t n, uint64_t seed);

/* Fills `out` with `count` random numbers from 0 .. n-1, with repetitions. `*state` is the state of the generator,
 * and must not be 0. */
void bench_draw(uint32_t *out, size_t count, uint32_t n, uint64_t *state);

/* Writes the id of a device, such as "device-0000042": BENCH_ID_LEN bytes, without a NUL. */
#define BENCH_ID_LEN 14
void bench_write_id(char *id, uint32_t device);

/* Returns zeroed memory, in huge pages if the machine has them. The memory is never freed. Ends the program if there
 * is none. */
void *bench_memory(size_t bytes);

/* Resident memory of this process, in bytes. */
int64_t bench_rss(void);

/* Returns argument `i` as a number. Ends the program if the argument is missing or is no number. */
uint64_t bench_number(int argc, char **argv, int i);

/* Prints a line KEY VALUE. */
void bench_say(const char *key, double value);

/* Reports that a contender is ready for a round, and waits until its turn; false: there are no more rounds. */
bool bench_round(void);

#endif
