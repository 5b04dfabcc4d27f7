/* SPDX-License-Identifier: MIT */
/* See keys.h: the commands that read. Cost: O(1) for each item of the answer; a zset is sorted for each request. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alert/memory/keys_priv.h"

/* --- answers ------------------------------------------------------------------------------------------------------ */

void hw_keys_answer_text(FILE *out, const char *text)
{
	if (out && text)
		fprintf(out, "$%zu\r\n%s\r\n", strlen(text), text);
	else if (out)
		fputs("$-1\r\n", out);
}

void hw_keys_answer_count(FILE *out, size_t n)
{
	if (out)
		fprintf(out, "*%zu\r\n", n);
}

void hw_keys_answer_int(FILE *out, long long n)
{
	if (out)
		fprintf(out, ":%lld\r\n", n);
}

/* --- hashes, sets ------------------------------------------------------------------------------------------------- */

void hw_keys_hgetall(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	size_t items = o ? o->items.n : 0;
	(void)n;
	hw_keys_answer_count(out, 2 * items);
	for (size_t i = 0; i < items; i++) {
		hw_keys_answer_text(out, o->items.items[i].name);
		hw_keys_answer_text(out, o->items.items[i].value);
	}
}

/* Carries out HSCAN and ZSCAN: KEY CURSOR COUNT N. The cursor is the number of items that are left. 0: the scan
 * begins, or has ended. */
void hw_keys_scan(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	size_t left = o ? o->items.n : 0, from = strtoull(words[2], NULL, 10), count = strtoull(words[4], NULL, 10);
	char cursor[24];
	(void)n;
	if (from > 0 && from < left)
		left = from;
	if (count > left)
		count = left;
	snprintf(cursor, sizeof(cursor), "%zu", left - count);
	hw_keys_answer_count(out, 2);
	hw_keys_answer_text(out, cursor);
	hw_keys_answer_count(out, 2 * count);
	for (size_t i = left; i > left - count; i--) {
		hw_keys_answer_text(out, o->items.items[i - 1].name);
		hw_keys_answer_text(out, o->items.items[i - 1].value);
	}
}

void hw_keys_smembers(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	size_t items = o ? o->items.n : 0;
	(void)n;
	hw_keys_answer_count(out, items);
	for (size_t i = 0; i < items; i++)
		hw_keys_answer_text(out, o->items.items[i].name);
}

void hw_keys_mget(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	hw_keys_answer_count(out, n - 1);
	for (size_t i = 1; i < n; i++)
		hw_keys_answer_text(out, hw_keys_text(k, words[i]));
}

/* --- zsets -------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct hw_key_member *x = a, *y = b;
	return x->score != y->score ? (x->score > y->score) - (x->score < y->score) : strcmp(x->name, y->name);
}

struct hw_key_member *hw_keys_sorted(struct hw_keys *k, const struct hw_key *o)
{
	size_t n = o ? o->items.n : 0;
	struct hw_key_member *m = calloc(n + 1, sizeof(*m));
	k->failed |= !m;
	for (size_t i = 0; m && i < n; i++)
		m[i] = (struct hw_key_member){strtod(o->items.items[i].value, NULL), o->items.items[i].name};
	if (m && n > 1)
		qsort(m, n, sizeof(*m), compare);
	return m;
}

/* Answers the members at the places `from` to `to` of a sorted zset, counted from its end if `back`. */
static void range(struct hw_keys *k, const char *const *words, bool back, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	struct hw_key_member *m = hw_keys_sorted(k, o);
	long long n = o ? (long long)o->items.n : 0, from = atoll(words[2]), to = atoll(words[3]);
	from = from < 0 ? from + n : from;
	to = to < 0 ? to + n : to;
	from = from < 0 ? 0 : from;
	to = to >= n ? n - 1 : to;
	hw_keys_answer_count(out, m && from <= to ? (size_t)(to - from + 1) : 0);
	for (long long i = from; m && i <= to; i++)
		hw_keys_answer_text(out, m[back ? n - 1 - i : i].name);
	free(m);
}

void hw_keys_zrange(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	(void)n;
	range(k, words, false, out);
}

void hw_keys_zrevrange(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	(void)n;
	range(k, words, true, out);
}

void hw_keys_zrevrank(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	struct hw_key_member *m = hw_keys_sorted(k, o);
	size_t left = m && o ? o->items.n : 0, all = left;
	(void)n;
	while (left > 0 && strcmp(m[left - 1].name, words[2]) != 0)
		left--;
	if (left > 0)
		hw_keys_answer_int(out, (long long)(all - left));
	else
		hw_keys_answer_text(out, NULL);
	free(m);
}

/* ZRANGEBYSCORE KEY FROM TO LIMIT 0 N */
void hw_keys_zrangebyscore(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct hw_key *o = hw_keys_find(k, words[1]);
	struct hw_key_member *m = hw_keys_sorted(k, o);
	double from = strtod(words[2], NULL), to = strtod(words[3], NULL); /* "-inf", "+inf" too */
	size_t first = 0, items = m && o ? o->items.n : 0, limit = strtoull(words[6], NULL, 10);
	(void)n;
	while (first < items && m[first].score < from)
		first++;
	size_t last = first;
	while (last < items && last - first < limit && m[last].score <= to)
		last++;
	hw_keys_answer_count(out, last - first);
	for (size_t i = first; i < last; i++)
		hw_keys_answer_text(out, m[i].name);
	free(m);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static struct hw_stream_id read_id(const char *text)
{
	struct hw_stream_id id = {0, 0};
	if (strcmp(text, "+") == 0)
		return HW_STREAM_ID_GREATEST;
	(void)hw_stream_id_parse_loose(text, strlen(text), &id);
	return id;
}

static void answer_entry(const struct hw_key_entry *e, FILE *out)
{
	char id[HW_STREAM_ID_TEXT];
	hw_keys_answer_count(out, 2);
	hw_keys_answer_text(out, hw_stream_id_print(e->id, id));
	hw_keys_answer_count(out, e->n);
	for (size_t i = 0; i < e->n; i++)
		hw_keys_answer_text(out, e->words[i]);
}

/* Answers at most `count` entries with ids from `from` to `to`, the newest first if `back`. */
static void entries(const struct hw_key *o, struct hw_stream_id from, struct hw_stream_id to, size_t count, bool back,
                    FILE *out)
{
	size_t first = o ? hw_key_first_entry(o, from) : 0, end = o ? hw_key_first_entry(o, to) : 0;
	if (o && end < o->n && hw_stream_id_compare(o->entries[o->first + end].id, to) == 0)
		end++;
	size_t n = end > first ? end - first : 0;
	n = n > count ? count : n;
	hw_keys_answer_count(out, n);
	for (size_t i = 0; i < n; i++)
		answer_entry(&o->entries[o->first + (back ? end - 1 - i : first + i)], out);
}

void hw_keys_xrange(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	(void)n;
	entries(hw_keys_find(k, words[1]), read_id(words[2]), read_id(words[3]), strtoull(words[5], NULL, 10), false,
	        out);
}

void hw_keys_xrevrange(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	(void)n;
	entries(hw_keys_find(k, words[1]), read_id(words[3]), read_id(words[2]), strtoull(words[5], NULL, 10), true,
	        out);
}
