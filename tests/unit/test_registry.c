/* SPDX-License-Identifier: MIT */
/* The registry, case by case. prop_registry.c does the same at random. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../suite.h"
#include "heartwheel/registry.h"
#include "heartwheel/siphash.h"

#define COLLIDING 120

static const uint8_t key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t other_key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16};
static struct hw_registry *r;

static void setup(void)
{
	r = hw_registry_new(key);
	ck_assert_ptr_nonnull(r);
}

static void teardown(void)
{
	hw_registry_free(r);
}

static uint32_t add(const char *id)
{
	uint32_t index = HW_NIL;
	ck_assert_int_eq(hw_registry_add(r, id, strlen(id), &index), 0);
	return index;
}

static uint32_t find(const char *id)
{
	return hw_registry_find(r, id, strlen(id));
}

START_TEST(empty_registry)
{
	ck_assert_uint_eq(hw_registry_count(r), 0);
	ck_assert_uint_eq(hw_registry_bound(r), 0);
	ck_assert_uint_eq(find("a"), HW_NIL);
	ck_assert_ptr_null(hw_registry_at(r, 0));
	ck_assert_ptr_null(hw_registry_at(r, HW_NIL));
	hw_registry_find_prefetched(r, NULL, NULL, 0, NULL);
	hw_registry_free(NULL);
}
END_TEST

START_TEST(found_by_whole_id_only)
{
	uint32_t a = add("sensor-1"), b = add("sensor-10"), c = add("s");
	ck_assert_uint_eq(find("sensor-1"), a);
	ck_assert_uint_eq(find("sensor-10"), b);
	ck_assert_uint_eq(find("s"), c);
	ck_assert_uint_eq(find("sensor-"), HW_NIL);
	ck_assert_uint_eq(find("sensor-11"), HW_NIL);
	ck_assert_uint_eq(find(""), HW_NIL);
	struct hw_id id = hw_device_id(hw_registry_at(r, b));
	ck_assert_uint_eq(id.len, 9);
	ck_assert_mem_eq(id.text, "sensor-10", 9);
}
END_TEST

START_TEST(lengths_of_ids)
{
	char id[600];
	uint32_t index[256], none = 77;
	memset(id, 'x', sizeof(id));
	id[3] = '\0';
	ck_assert_int_eq(hw_registry_add(r, id, 0, &none), -EINVAL);
	ck_assert_int_eq(hw_registry_add(r, id, 256, &none), -EINVAL);
	ck_assert_uint_eq(none, 77);
	for (size_t len = 1; len <= 255; len++)
		ck_assert_int_eq(hw_registry_add(r, id, len, &index[len]), 0);
	for (size_t len = 1; len <= 255; len++)
		ck_assert_uint_eq(hw_registry_find(r, id, len), index[len]);
	/* 256 + n is not n. */
	for (size_t len = 256; len <= 520; len += 8)
		ck_assert_uint_eq(hw_registry_find(r, id, len), HW_NIL);
	ck_assert_uint_eq(hw_registry_count(r), 255);
}
END_TEST

START_TEST(new_record_is_clean)
{
	uint32_t i = add("a");
	struct hw_device *d = hw_registry_at(r, i);
	d->last_seen_ns = 5;
	d->seq = 6;
	d->flags = HW_FLAG_ONCE;
	d->node.user = 255;
	d->group = 9;
	d->node.due = 44;
	hw_registry_remove(r, i);
	ck_assert_uint_eq(add("b"), i);
	d = hw_registry_at(r, i);
	ck_assert_int_eq(d->node.place, HW_PLACE_NONE);
	ck_assert_uint_eq(d->gen, 1);
	struct hw_device clean = {.is.near = {1, 'b'}, .gen = 1};
	hw_node_init(&clean.node);
	ck_assert_mem_eq(d, &clean, sizeof(clean));
}
END_TEST

START_TEST(records_are_cache_lines)
{
	char id[16];
	for (int i = 0; i < 5000; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		uint32_t index = add(id);
		if ((uintptr_t)hw_registry_base(r) % 64 != 0 || hw_registry_at(r, index) != hw_registry_base(r) + index)
			ck_abort_msg("record %u is not where it should be", index);
	}
	for (int i = 0; i < 5000; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		struct hw_id is = hw_device_id(hw_registry_at(r, (uint32_t)i));
		if (find(id) != (uint32_t)i || is.len != strlen(id) || memcmp(is.text, id, is.len) != 0)
			ck_abort_msg("%s is lost", id);
	}
}
END_TEST

START_TEST(refs_do_not_outlive_their_device)
{
	uint32_t i = add("a");
	struct hw_ref first = hw_registry_ref(r, i);
	ck_assert_ptr_eq(hw_registry_get(r, first), hw_registry_at(r, i));
	hw_registry_remove(r, i);
	ck_assert_ptr_null(hw_registry_get(r, first));
	ck_assert_ptr_null(hw_registry_at(r, i));
	ck_assert_uint_eq(find("a"), HW_NIL);
	ck_assert_uint_eq(add("a"), i);
	ck_assert_ptr_null(hw_registry_get(r, first));
	ck_assert_ptr_nonnull(hw_registry_get(r, hw_registry_ref(r, i)));
	ck_assert_ptr_null(hw_registry_get(r, (struct hw_ref){i + 1, 0}));
	ck_assert_ptr_null(hw_registry_get(r, (struct hw_ref){HW_NIL, 0}));
}
END_TEST

START_TEST(indices_are_used_again)
{
	uint32_t a = add("a"), b = add("b");
	ck_assert_uint_eq(hw_registry_bound(r), 2);
	hw_registry_remove(r, a);
	hw_registry_remove(r, b);
	ck_assert_uint_eq(hw_registry_count(r), 0);
	ck_assert_uint_eq(hw_registry_bound(r), 2);
	uint32_t c = add("c"), d = add("d");
	ck_assert(c != d && c < 2 && d < 2);
	ck_assert_uint_eq(add("e"), 2);
	ck_assert_uint_eq(hw_registry_count(r), 3);
}
END_TEST

static void report(uint32_t i, const struct hw_report *said)
{
	ck_assert_int_eq(hw_registry_report(r, i, said), 0);
}

START_TEST(side_block)
{
	static char ip[] = "192.0.2.1", data[] = "{}", version[] = "1.2";
	uint32_t i = add("a");
	ck_assert_ptr_null(hw_device_extra(hw_registry_at(r, i)));
	struct hw_extra *e = hw_registry_extra(r, i);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->own_timeout_ms, 0);
	ck_assert_uint_eq(hw_device_report(hw_registry_at(r, i)).has, 0);
	ck_assert_ptr_eq(hw_registry_extra(r, i), e);
	ck_assert_uint_eq(find("a"), i); /* its id stands elsewhere now */
	report(i, &(struct hw_report){.has = HW_HAS_IP | HW_HAS_DATA, .ip = ip, .data = data});
	hw_registry_remove(r, i); /* a leak checker sees whether the block goes with it */
	i = add("b");
	ck_assert_ptr_null(hw_device_extra(hw_registry_at(r, i)));
	report(i, &(struct hw_report){.has = HW_HAS_VERSION, .version = version});
	/* ... and with the registry */
}
END_TEST

/* The block moves when a report is longer than what is kept: all else in it goes along. */
START_TEST(reports)
{
	static char ip[] = "192.0.2.1", other[] = "192.0.2.9", version[] = "1.2";
	uint32_t i = add("a-very-long-id-of-a-device");
	bool made;
	hw_registry_extra(r, i)->own_timeout_ms = 31000;
	struct hw_key *key_of = hw_registry_key(r, i, &made);
	report(i, &(struct hw_report){.has = HW_HAS_BATTERY | HW_HAS_IP, .battery = 87, .ip = ip});
	struct hw_extra *x = hw_device_extra(hw_registry_at(r, i));
	report(i, &(struct hw_report){.has = HW_HAS_BATTERY | HW_HAS_IP, .battery = 86, .ip = other});
	ck_assert_ptr_eq(hw_device_extra(hw_registry_at(r, i)), x); /* as long: in its place */
	report(i, &(struct hw_report){.has = HW_HAS_VERSION, .version = version});
	struct hw_report is = hw_device_report(hw_registry_at(r, i));
	ck_assert_uint_eq(is.has, HW_HAS_BATTERY | HW_HAS_IP | HW_HAS_VERSION);
	ck_assert_double_eq(is.battery, 86);
	ck_assert_str_eq(is.ip, other);
	ck_assert_str_eq(is.version, version);
	ck_assert_int_eq(hw_device_own_timeout_ms(hw_registry_at(r, i)), 31000);
	ck_assert_ptr_eq(hw_device_key(hw_registry_at(r, i)), key_of);
	ck_assert_uint_eq(find("a-very-long-id-of-a-device"), i);
}
END_TEST

/* A report that is longer than what is put together on the stack. */
START_TEST(long_reports)
{
	char data[HW_REPORT_DATA_MAX + 1];
	uint32_t i = add("a");
	memset(data, '1', sizeof(data));
	data[HW_REPORT_DATA_MAX] = '\0';
	for (char c = '1'; c <= '3'; c++) {
		data[0] = c;
		report(i, &(struct hw_report){.has = HW_HAS_DATA, .data = data});
		ck_assert_str_eq(hw_device_report(hw_registry_at(r, i)).data, data);
	}
}
END_TEST

static void find_many(const struct hw_id *ids, size_t n, uint32_t *out)
{
	uint32_t asked[100];
	ck_assert_uint_le(n, 100);
	for (size_t i = 0; i < n; i++)
		asked[i] = hw_registry_prefetch(r, ids[i].text, ids[i].len);
	hw_registry_find_prefetched(r, ids, asked, n, out);
}

START_TEST(many_at_once)
{
	enum { N = 100 };
	static char text[N][8];
	struct hw_id ids[N];
	uint32_t out[N + 1];
	for (int i = 0; i < N; i++) {
		ids[i] = (struct hw_id){text[i], (size_t)snprintf(text[i], sizeof(text[i]), "m%d", i)};
		if (i % 3 != 0)
			add(text[i]);
	}
	out[N] = 12345;
	find_many(ids, N, out);
	for (int i = 0; i < N; i++) {
		ck_assert_uint_eq(out[i], find(text[i]));
		ck_assert_int_eq(out[i] == HW_NIL, i % 3 == 0);
	}
	ck_assert_uint_eq(out[N], 12345);
}
END_TEST

/* The tables grow in small steps: between two of them is a state like any other, also to be freed in. */
START_TEST(half_moved_tables)
{
	char id[16];
	for (int i = 0; i < 100; i++) { /* 96 fill the first table as far as it may be; each addition moves 8 slots */
		snprintf(id, sizeof(id), "h%d", i);
		add(id);
	}
	for (int i = 0; i < 100; i += 2) {
		snprintf(id, sizeof(id), "h%d", i);
		hw_registry_remove(r, find(id));
		ck_assert_uint_eq(find(id), HW_NIL);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "h%d", i);
		ck_assert_int_eq(find(id) == HW_NIL, i % 2 == 0);
	}
}
END_TEST

/* Ids whose 32 bits of hash are the same under `key`, found by trying: only their text tells them apart. */
START_TEST(same_hash_is_not_same_id)
{
	char shorter[100], longer[143];
	snprintf(longer, sizeof(longer), "0304515%0135d", 0);
	for (char *c = longer + 7; *c != '\0'; c++)
		*c = 'x';
	snprintf(shorter, sizeof(shorter), "%.99s", longer);
	const char *const pairs[][2] = {
		{"node-016276", "node-079275"}, {"node-015905", "node-163656"}, {longer, shorter}, {shorter, longer}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *in = pairs[i][0], *out = pairs[i][1];
		ck_assert_uint_eq((uint32_t)hw_siphash(1, 3, key, in, strlen(in)),
		                  (uint32_t)hw_siphash(1, 3, key, out, strlen(out)));
		uint32_t index = add(in), found[2];
		ck_assert_uint_eq(find(in), index);
		ck_assert_uint_eq(find(out), HW_NIL);
		struct hw_id ids[] = {{in, strlen(in)}, {out, strlen(out)}};
		find_many(ids, 2, found);
		ck_assert_uint_eq(found[0], index);
		ck_assert_uint_eq(found[1], HW_NIL);
		uint32_t second = add(out);
		ck_assert_uint_ne(second, index);
		ck_assert_uint_eq(find(out), second);
		hw_registry_remove(r, index);
		ck_assert_uint_eq(find(in), HW_NIL);
		ck_assert_uint_eq(find(out), second);
		hw_registry_remove(r, second);
	}
}
END_TEST

/* If the hash key is known, ids can be chosen that collide. Under another key these ids do not collide. */
START_TEST(chosen_ids_do_not_collide_under_another_key)
{
	struct hw_registry *other = hw_registry_new(other_key);
	char id[32];
	uint32_t unused;
	int chosen = 0;
	for (int i = 0; chosen < COLLIDING; i++) {
		int len = snprintf(id, sizeof(id), "chosen-%d", i);
		if ((hw_siphash(1, 3, key, id, (size_t)len) & 1023) != 300)
			continue;
		add(id);
		ck_assert_int_eq(hw_registry_add(other, id, (size_t)len, &unused), 0);
		chosen++;
	}
	ck_assert_uint_ge(hw_registry_longest_probe(r), COLLIDING - 10);
	ck_assert_uint_lt(hw_registry_longest_probe(other), COLLIDING / 3);
	hw_registry_free(other);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static bool limited_memory_is_possible(void)
{
	const char *preload = getenv("LD_PRELOAD"); /* valgrind does not survive it */
	return !SANITIZED && (preload == NULL || strstr(preload, "vgpreload") == NULL);
}

/* Adds until nothing more is to be had. Returns how many there are then. */
static int fill(void)
{
	char id[16];
	for (int i = 0; i < 10000000; i++) {
		uint32_t index = 4711;
		snprintf(id, sizeof(id), "%d", i);
		int err = hw_registry_add(r, id, strlen(id), &index);
		if (err == 0)
			continue;
		ck_assert_int_eq(err, -ENOMEM);
		ck_assert_uint_eq(index, 4711);
		return i;
	}
	return -1;
}

START_TEST(no_memory_changes_nothing)
{
	struct rlimit before, tight;
	char id[16];
	if (!limited_memory_is_possible())
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	tight = before;
	tight.rlim_cur = 64 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
	int n = fill();
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
	ck_assert_int_gt(n, 1000);
	ck_assert_uint_eq(hw_registry_count(r), (uint32_t)n);
	snprintf(id, sizeof(id), "%d", n);
	ck_assert_uint_eq(find(id), HW_NIL);
	for (int i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "%d", i);
		if (find(id) != (uint32_t)i)
			ck_abort_msg("%s is lost", id);
	}
	snprintf(id, sizeof(id), "%d", n);
	ck_assert_uint_eq(add(id), (uint32_t)n); /* and it goes on when there is memory again */
	ck_assert_uint_eq(find(id), (uint32_t)n);
}
END_TEST

static rlim_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (rlim_t)pages * 4096;
}

/* There is memory for records and ids, but neither beforehand nor in the end for the table that has to double: 2 MiB.
 */
START_TEST(no_memory_for_the_table)
{
	enum { SIZE = 65536, FULL = SIZE / 4 * 3, EARLY = SIZE / 16 * 11 - 1 };
	struct rlimit before, tight;
	char id[16];
	uint32_t index = 4711, n = 0;
	int err = 0;
	if (!limited_memory_is_possible())
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	while (n <= FULL && err == 0) {
		if (n == EARLY) {
			tight = before;
			tight.rlim_cur = address_space() + (1 << 20);
			ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
		}
		snprintf(id, sizeof(id), "%06u", n);
		err = hw_registry_add(r, id, 6, &index);
		n += err == 0;
	}
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
	ck_assert_int_eq(err, -ENOMEM);
	ck_assert_uint_eq(n, FULL);
	ck_assert_uint_eq(hw_registry_count(r), FULL);
	ck_assert_uint_eq(find(id), HW_NIL);
	ck_assert_uint_eq(find("049151"), FULL - 1);
	add(id);
}
END_TEST

static Suite *registry_suite(void)
{
	Suite *suite = suite_create("registry");
	TCase *tc = tcase_create("registry");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, empty_registry);
	tcase_add_test(tc, found_by_whole_id_only);
	tcase_add_test(tc, lengths_of_ids);
	tcase_add_test(tc, new_record_is_clean);
	tcase_add_test(tc, records_are_cache_lines);
	tcase_add_test(tc, refs_do_not_outlive_their_device);
	tcase_add_test(tc, indices_are_used_again);
	tcase_add_test(tc, side_block);
	tcase_add_test(tc, reports);
	tcase_add_test(tc, long_reports);
	tcase_add_test(tc, many_at_once);
	tcase_add_test(tc, half_moved_tables);
	tcase_add_test(tc, same_hash_is_not_same_id);
	tcase_add_test(tc, chosen_ids_do_not_collide_under_another_key);
	tcase_add_test(tc, no_memory_changes_nothing);
	tcase_add_test(tc, no_memory_for_the_table);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return suite_run(registry_suite());
}
