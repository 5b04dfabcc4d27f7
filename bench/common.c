/* SPDX-License-Identifier: MIT */
/* What the bench's programs share: see common.h. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

int64_t bench_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* xorshift64* (Vigna, 2016). */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static uint32_t below(uint32_t n, uint64_t *state)
{
	return (uint32_t)((next_random(state) >> 32) * n >> 32);
}

void bench_draw(uint32_t *out, size_t count, uint32_t n, uint64_t *state)
{
	for (size_t i = 0; i < count; i++)
		out[i] = below(n, state);
}

uint32_t *bench_order(uint32_t n, uint64_t seed)
{
	uint32_t *order = malloc(n * sizeof(*order));
	if (!order)
		abort();
	uint64_t state = seed * 2 + 1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = below(i + 1, &state);
		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

/* snprintf() would be most of what a device costs here. */
void bench_write_id(char *id, uint32_t device)
{
	memcpy(id, "device-0000000", BENCH_ID_LEN);
	for (char *digit = id + BENCH_ID_LEN; device > 0; device /= 10)
		*--digit = (char)('0' + device % 10);
}

void *bench_memory(size_t bytes)
{
	void *memory;
	if (posix_memalign(&memory, HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE))
		abort();
	madvise(memory, bytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < bytes; i++)
		((char *)memory)[i] = 0;
	return memory;
}

int64_t bench_rss(void)
{
	long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%lld %lld", &size, &resident) != 2)
		abort();
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

uint64_t bench_number(int argc, char **argv, int i)
{
	char *end = NULL;
	uint64_t n = i < argc ? strtoull(argv[i], &end, 10) : 0;
	if (i >= argc || end == argv[i] || *end) {
		fprintf(stderr, "%s: argument %d has to be a number\n", argv[0], i);
		exit(2);
	}
	return n;
}

void bench_say(const char *key, double value)
{
	printf("%s %.3f\n", key, value);
	fflush(stdout);
}

bool bench_round(void)
{
	char line[16];
	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) != NULL;
}
