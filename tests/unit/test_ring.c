/* SPDX-License-Identifier: MIT */
/*
 * The ring: first alone, step by step; then against a naive twin under random steps; then between two real threads that
 * sleep on it. A wake-up that got lost shows as a sleep that nothing ends.
 */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "mqtt/ring.h"

#define RING       4096
#define PATIENCE   60000 /* ms that a wake-up may take */
#define TWIN_STEPS 200000

#ifdef __has_feature /* clang's way of saying it */
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FEWER_RECORDS
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FEWER_RECORDS)
#define RECORDS 300000
#else
#define RECORDS 2000000
#endif

static uint64_t seed;

/* Valgrind runs one thread at a time, thirty times slower; sanitizers are three times slower. */
static uint64_t fewer_if_slow(uint64_t n)
{
	return getenv("HW_FEW_ROUNDS") ? n / 40 : n;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {fd, POLLIN, 0};
	return poll(&p, 1, timeout_ms) == 1;
}

static void put(struct hw_ring *r, const char *text)
{
	char *at = hw_ring_reserve(r, strlen(text));
	ck_assert_ptr_nonnull(at);
	memcpy(at, text, strlen(text));
	hw_ring_commit(r, strlen(text));
}

static void expect(struct hw_ring *r, const char *text)
{
	size_t size;
	const char *at = hw_ring_take(r, &size);
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_int_eq(memcmp(at, text, size), 0);
}

START_TEST(test_sizes)
{
	static const struct {
		size_t asked, got;
	} sizes[] = {{0, 4096}, {1, 4096}, {4096, 4096}, {4097, 8192}, {1 << 20, 1 << 20}, {(1 << 20) + 1, 2 << 20}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct hw_ring *r = hw_ring_new(sizes[i].asked);
		ck_assert_uint_eq(hw_ring_used(r), 0);
		while (hw_ring_reserve(r, sizes[i].got / 8 - 16))
			hw_ring_commit(r, sizes[i].got / 8 - 16);
		hw_ring_publish(r);
		ck_assert_uint_le(hw_ring_used(r), sizes[i].got);
		ck_assert_uint_gt(hw_ring_used(r), sizes[i].got / 4 * 3);
		hw_ring_free(r);
	}
	hw_ring_free(NULL);
}
END_TEST

START_TEST(test_order_and_visibility)
{
	struct hw_ring *r = hw_ring_new(RING);
	size_t size;
	put(r, "one");
	put(r, "");
	put(r, "three, which is longer than eight bytes");
	ck_assert_msg(!hw_ring_take(r, &size), "visible before it was published");
	hw_ring_publish(r);
	expect(r, "one");
	expect(r, "");
	expect(r, "three, which is longer than eight bytes");
	ck_assert(!hw_ring_take(r, &size));
	ck_assert_msg(hw_ring_used(r) > 0, "given back before it was released");
	hw_ring_release(r);
	ck_assert_uint_eq(hw_ring_used(r), 0);
	hw_ring_free(r);
}
END_TEST

START_TEST(test_reserved_and_not_committed)
{
	struct hw_ring *r = hw_ring_new(RING);
	ck_assert_ptr_nonnull(hw_ring_reserve(r, RING / 4));
	put(r, "kept"); /* in the place that was reserved and not used */
	char *more = hw_ring_reserve(r, 100);
	memcpy(more, "short", 5);
	hw_ring_commit(r, 5);
	hw_ring_publish(r);
	expect(r, "kept");
	expect(r, "short");
	hw_ring_release(r);
	ck_assert_uint_eq(hw_ring_used(r), 0);
	hw_ring_free(r);
}
END_TEST

START_TEST(test_full_and_room)
{
	struct hw_ring *r = hw_ring_new(RING);
	size_t size;
	int n = 0;
	while (hw_ring_reserve(r, 120)) {
		hw_ring_commit(r, 120);
		n++;
	}
	ck_assert_int_eq(n, RING / 128);
	hw_ring_wait_room(r); /* publishes too: else nobody could ever make room */
	ck_assert(!readable(hw_ring_room_fd(r), 0));
	for (int i = 0; i < n / 2; i++)
		ck_assert_ptr_nonnull(hw_ring_take(r, &size));
	ck_assert_msg(!hw_ring_reserve(r, 120), "taken, but not given back yet");
	hw_ring_release(r);
	ck_assert_msg(!readable(hw_ring_room_fd(r), 0), "woken for half a ring");
	while (hw_ring_take(r, &size))
		;
	hw_ring_release(r);
	ck_assert(readable(hw_ring_room_fd(r), 0));
	ck_assert_ptr_nonnull(hw_ring_reserve(r, RING / 4));
	hw_ring_wait_room(r);
	ck_assert_msg(!readable(hw_ring_room_fd(r), 0), "the descriptor is readable by an old wake-up");
	hw_ring_free(r);
}
END_TEST

START_TEST(test_no_wake_up_unasked)
{
	struct hw_ring *r = hw_ring_new(RING);
	put(r, "x");
	hw_ring_publish(r);
	expect(r, "x");
	hw_ring_release(r);
	ck_assert(!readable(hw_ring_room_fd(r), 0));
	hw_ring_free(r);
}
END_TEST

/* Wherever the ring wraps, the largest record fits once the producer has been woken. */
START_TEST(test_largest_fits_when_woken)
{
	for (size_t at = 0; at < RING; at += 8) {
		struct hw_ring *r = hw_ring_new(RING);
		size_t size;
		for (size_t moved = 0; moved < at; moved += 8) {
			ck_assert_ptr_nonnull(hw_ring_reserve(r, 0));
			hw_ring_commit(r, 0);
			hw_ring_publish(r);
			ck_assert_ptr_nonnull(hw_ring_take(r, &size));
			hw_ring_release(r);
		}
		while (hw_ring_reserve(r, 8))
			hw_ring_commit(r, 8);
		hw_ring_wait_room(r);
		while (!readable(hw_ring_room_fd(r), 0)) {
			ck_assert_ptr_nonnull(hw_ring_take(r, &size));
			hw_ring_release(r);
		}
		ck_assert_ptr_nonnull(hw_ring_reserve(r, RING / 4));
		hw_ring_free(r);
	}
}
END_TEST

START_TEST(test_rest)
{
	struct hw_ring *r = hw_ring_new(RING);
	put(r, "a");
	hw_ring_publish(r);
	ck_assert_msg(readable(hw_ring_fd(r), 0), "a consumer that has never rested is woken too");
	ck_assert_msg(!hw_ring_rest(r), "may not sleep on records");
	expect(r, "a");
	hw_ring_release(r);
	ck_assert(hw_ring_rest(r));
	ck_assert(!readable(hw_ring_fd(r), 0));
	put(r, "b");
	ck_assert(!readable(hw_ring_fd(r), 0));
	hw_ring_publish(r);
	ck_assert(readable(hw_ring_fd(r), 0));
	expect(r, "b");
	put(r, "c");
	hw_ring_publish(r);
	ck_assert(!hw_ring_rest(r));
	put(r, "d");
	hw_ring_publish(r);
	ck_assert_msg(!readable(hw_ring_fd(r), 0), "woken although it was awake");
	expect(r, "c");
	expect(r, "d");
	hw_ring_free(r);
}
END_TEST

/* --- against a queue of numbers */

static void fill(unsigned char *at, size_t size, uint64_t number)
{
	uint64_t state = number;
	for (size_t i = 0; i < size; i++)
		at[i] = (unsigned char)((state += UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static size_t size_of(uint64_t number, size_t most)
{
	uint64_t state = seed ^ number, roll = next_random(&state);
	return (size_t)(roll % 8 == 0 ? (roll >> 8) % (most + 1) : (roll >> 8) % 100);
}

static void check_record(const unsigned char *at, size_t size, uint64_t number, size_t most)
{
	static _Thread_local unsigned char want[RING * 4];
	if (size != size_of(number, most))
		ck_abort_msg("record %llu has %zu bytes", (unsigned long long)number, size);
	if ((uintptr_t)at % 8)
		ck_abort_msg("record %llu is not aligned", (unsigned long long)number);
	fill(want, size, number);
	if (memcmp(at, want, size) != 0)
		ck_abort_msg("record %llu is damaged", (unsigned long long)number);
}

START_TEST(test_twin)
{
	struct hw_ring *r = hw_ring_new(RING);
	uint64_t state = seed, made = 0, shown = 0, taken = 0, refused = 0;
	for (int step = 0; step < TWIN_STEPS; step++) {
		uint64_t what = next_random(&state) % 10;
		if (what < 5) {
			size_t size = size_of(made, RING / 4), given;
			unsigned char *at = hw_ring_reserve(r, size);
			refused += !at;
			if (!at && made == taken) { /* empty, at most not given back */
				hw_ring_release(r);
				ck_assert_ptr_nonnull(hw_ring_reserve(r, size));
			}
			if (!at)
				continue;
			given = size;
			fill(at, given, made++);
			hw_ring_commit(r, given);
		} else if (what < 6) {
			hw_ring_publish(r);
			shown = made;
		} else if (what < 9) {
			size_t size;
			const unsigned char *at = hw_ring_take(r, &size);
			ck_assert_int_eq(at != NULL, taken < shown);
			if (at)
				check_record(at, size, taken++, RING / 4);
		} else {
			hw_ring_release(r);
		}
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(taken, TWIN_STEPS / 10);
	hw_ring_free(r);
}
END_TEST

/* --- between two threads */

struct pair {
	struct hw_ring *ring;
	uint64_t records, sleeps;
	size_t most;
	bool lost_wakeup;
};

static void *produce(void *arg)
{
	struct pair *p = arg;
	uint64_t state = seed + 1;
	for (uint64_t n = 0; n < p->records && !p->lost_wakeup; n++) {
		size_t size = size_of(n, p->most);
		unsigned char *at = hw_ring_reserve(p->ring, size);
		while (!at) {
			hw_ring_wait_room(p->ring);
			at = hw_ring_reserve(p->ring, size);
			if (at)
				break;
			p->sleeps++;
			if (!readable(hw_ring_room_fd(p->ring), PATIENCE)) {
				p->lost_wakeup = true;
				return NULL;
			}
			at = hw_ring_reserve(p->ring, size);
		}
		fill(at, size, n);
		hw_ring_commit(p->ring, size);
		if (next_random(&state) % 16 == 0)
			hw_ring_publish(p->ring);
	}
	hw_ring_publish(p->ring);
	return NULL;
}

struct sleeps {
	uint64_t consumer, producer;
};

static struct sleeps run_pair(size_t ring, uint64_t records, bool slow_consumer)
{
	struct pair p = {.ring = hw_ring_new(ring), .records = records, .most = ring / 4 < RING ? ring / 4 : RING};
	uint64_t state = seed + 2, n = 0, slept = 0;
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, produce, &p), 0);
	while (n < records) {
		size_t size;
		const unsigned char *at = hw_ring_take(p.ring, &size);
		if (at) {
			check_record(at, size, n++, p.most);
			if (next_random(&state) % (slow_consumer ? 512 : 8) == 0)
				hw_ring_release(p.ring);
			continue;
		}
		hw_ring_release(p.ring);
		if (!hw_ring_rest(p.ring))
			continue;
		slept++;
		ck_assert_msg(readable(hw_ring_fd(p.ring), PATIENCE), "a wake-up was lost after record %llu",
		              (unsigned long long)n);
	}
	pthread_join(thread, NULL);
	ck_assert_msg(!p.lost_wakeup, "the producer was not woken");
	ck_assert_uint_eq(hw_ring_used(p.ring) == 0 || n == records, 1);
	printf("  ring %zu: %llu records, consumer slept %llu times, producer %llu times\n", ring,
	       (unsigned long long)n, (unsigned long long)slept, (unsigned long long)p.sleeps);
	hw_ring_free(p.ring);
	return (struct sleeps){slept, p.sleeps};
}

/* Who sleeps is the scheduler's affair: until both sides have, nothing was tested. */
static void run_until_both_slept(size_t ring, uint64_t records, bool slow_consumer)
{
	struct sleeps all = {0, 0};
	for (int round = 0; round < 20 && !(all.consumer && all.producer); round++) {
		struct sleeps s = run_pair(ring, records, slow_consumer);
		all.consumer += s.consumer;
		all.producer += s.producer;
	}
	ck_assert_msg(all.consumer && all.producer, "one side never had to wait (%llu, %llu)",
	              (unsigned long long)all.consumer, (unsigned long long)all.producer);
}

START_TEST(test_threads_small)
{
	run_until_both_slept(RING, fewer_if_slow(RECORDS / 4), false);
}
END_TEST

START_TEST(test_threads_large)
{
	run_until_both_slept(RING * 16, fewer_if_slow(RECORDS), true);
}
END_TEST

int main(void)
{
	const char *given = getenv("HW_SEED");
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("HW_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	Suite *s = suite_create("ring");
	TCase *steps = tcase_create("steps"), *threads = tcase_create("threads");
	tcase_add_test(steps, test_sizes);
	tcase_add_test(steps, test_order_and_visibility);
	tcase_add_test(steps, test_reserved_and_not_committed);
	tcase_add_test(steps, test_full_and_room);
	tcase_add_test(steps, test_no_wake_up_unasked);
	tcase_add_test(steps, test_largest_fits_when_woken);
	tcase_add_test(steps, test_rest);
	tcase_add_test(steps, test_twin);
	tcase_set_timeout(steps, 60);
	tcase_set_timeout(threads, 300);
	tcase_add_test(threads, test_threads_small);
	tcase_add_test(threads, test_threads_large);
	suite_add_tcase(s, steps);
	suite_add_tcase(s, threads);
	return suite_run(s);
}
