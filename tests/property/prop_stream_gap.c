/* SPDX-License-Identifier: MIT */
/*
 * A reader of a stream that is trimmed, emptied and restored, against a twin that knows of each entry whether it was
 * read. The reader must get every entry that it can get, and must report a gap if it has missed one.
 */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite.h"
#include "stream/gap.h"

#define ENTRIES 4000
#define ROUNDS  400
#define STEPS   60

struct entry {
	struct hw_stream_id id;
	bool *read; /* the twin's flag; a restored copy of an entry shares it */
};

struct stream {
	struct entry entry[ENTRIES];
	int first, end;
	int64_t added;
	struct hw_stream_id last;
};

static struct stream now, copy;
static struct hw_stream_id clock_id; /* Redis' clock: entries that are added to a restored copy have later ids */
static bool flags[ENTRIES];
static int n_flags;
static unsigned seed;

static int below(int n)
{
	return (int)((unsigned)rand() % (unsigned)n);
}

static void add(void)
{
	struct hw_stream_id id = hw_stream_id_next(clock_id);
	if (below(3) > 0)
		id = (struct hw_stream_id){clock_id.ms + 1 + (uint64_t)below(3), (uint64_t)below(2)};
	now.entry[now.end++] = (struct entry){id, &flags[n_flags++]};
	now.last = clock_id = id;
	now.added++;
}

static void trim(void)
{
	now.first += below(now.end - now.first + 1);
}

/* The entries are lost; their ids may be given again, but never to an entry at the cursor. */
static void empty(const struct hw_stream_cursor *c)
{
	now.first = now.end;
	now.added = 0;
	now.last = below(2) ? (struct hw_stream_id){c->id.ms + 1, 0} : (struct hw_stream_id){c->id.ms / 2, 7};
	copy.end = copy.first = 0;
	copy.last = clock_id = now.last;
	copy.added = 0;
}

static struct hw_stream_info info_of(bool old_redis)
{
	struct hw_stream_info s = {
		.last = now.last, .length = now.end - now.first, .added = old_redis ? -1 : now.added};
	if (s.length > 0)
		s.first = now.entry[now.first].id;
	return s;
}

static bool has(struct hw_stream_id id)
{
	for (int i = now.first; i < now.end; i++)
		if (hw_stream_id_compare(now.entry[i].id, id) == 0)
			return true;
	return false;
}

/* Entries that have left the stream, or were never in this one, and were not read; `from`: the entries known before. */
static int missed_since(int from)
{
	int n = 0;
	for (int i = from; i < n_flags; i++)
		n += !flags[i];
	for (int i = now.first; i < now.end; i++)
		n -= !*now.entry[i].read && now.entry[i].read >= flags + from;
	return n;
}

static void read_all(struct hw_stream_cursor *c, int known)
{
	for (int i = now.first; i < now.end; i++) {
		if (hw_stream_id_compare(now.entry[i].id, c->id) <= 0)
			continue;
		*now.entry[i].read = true;
		c->id = now.entry[i].id;
		c->added++;
	}
	for (int i = now.first; i < now.end; i++)
		ck_assert_msg(*now.entry[i].read, "seed %u: an entry was not read", seed);
	for (int i = known; i < n_flags; i++)
		flags[i] = true; /* what is missing now was reported */
}

static void read_on(struct hw_stream_cursor *c, int known, bool old_redis, bool other)
{
	struct hw_stream_gap gap = {.any = false};
	struct hw_stream_info s = info_of(old_redis);
	struct hw_stream_cursor was = *c;
	int missed = missed_since(known);
	bool begins = c->added < 0, found = has(c->id) || hw_stream_id_compare(now.last, c->id) == 0;
	if (!has(c->id))
		hw_stream_gap_find(c, &s, &gap);
	if (begins) {
		ck_assert_msg(!gap.any, "seed %u: a gap at the beginning", seed);
	} else if (!other && !old_redis) {
		ck_assert_msg(gap.any == (missed > 0) && !gap.other, "seed %u: missed %d", seed, missed);
		ck_assert_msg(!gap.any || gap.lost == missed, "seed %u: missed %d, not %d", seed, missed,
		              (int)gap.lost);
	} else if (!old_redis) {
		/* Three streams look like the stream that was read: a copy that ends with the last entry read, a
		 * copy that has this entry, and another stream that has got and lost as many entries as were read. */
		bool alike = found || s.added - s.length == was.added;
		ck_assert_msg(missed == 0 || gap.any || alike, "seed %u: missed %d of another", seed, missed);
	} else {
		ck_assert_msg(missed == 0 || gap.any || (other && found), "seed %u: missed %d", seed, missed);
		ck_assert_msg(!gap.any || gap.lost < 0, "seed %u: an old Redis does not count", seed);
	}
	if (gap.any)
		ck_assert_int_eq(hw_stream_id_compare(gap.after, was.id), 0);
	read_all(c, known);
}

static void one_round(bool old_redis)
{
	struct hw_stream_cursor c = {{0, 0}, -1};
	int known = 0;
	bool other = false;
	memset(&now, 0, sizeof(now));
	memset(flags, 0, sizeof(flags));
	copy = now;
	n_flags = 0;
	now.last = clock_id = (struct hw_stream_id){100000, 0};
	for (int step = 0; step < STEPS; step++) {
		int what = below(12);
		if (what < 5)
			for (int n = below(6); n > 0; n--)
				add();
		else if (what < 7)
			trim();
		else if (what == 7)
			copy = now;
		else if (what == 8 && step % 4 == 0 && c.added > 0)
			empty(&c), other = true;
		else if (what == 9 && step % 4 == 0 && copy.end > 0)
			now = copy, other = true;
		else {
			read_on(&c, known, old_redis, other);
			known = n_flags;
			other = false;
		}
	}
}

START_TEST(no_entry_is_missed_in_silence)
{
	const char *text = getenv("HW_SEED");
	seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
	printf("HW_SEED=%u\n", seed);
	srand(seed);
	for (int round = 0; round < ROUNDS; round++)
		one_round(round % 4 == 3);
}
END_TEST

START_TEST(trimmed_means_right_after)
{
	ck_assert(!hw_stream_is_trimmed((struct hw_stream_id){0, 0}, (struct hw_stream_id){9, 9}));
	ck_assert(!hw_stream_is_trimmed((struct hw_stream_id){5, 1}, (struct hw_stream_id){5, 1}));
	ck_assert(!hw_stream_is_trimmed((struct hw_stream_id){5, 1}, (struct hw_stream_id){5, 2}));
	ck_assert(hw_stream_is_trimmed((struct hw_stream_id){5, 1}, (struct hw_stream_id){5, 3}));
	ck_assert(!hw_stream_is_trimmed(HW_STREAM_ID_GREATEST, HW_STREAM_ID_GREATEST));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream_gap");
	TCase *t = tcase_create("all");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, no_entry_is_missed_in_silence);
	tcase_add_test(t, trimmed_means_right_after);
	suite_add_tcase(s, t);
	return suite_run(s);
}
