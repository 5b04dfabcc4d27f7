/* SPDX-License-Identifier: MIT */
/* Builds the calls of scripts. Cost: each byte is copied twice. Once the buffers have grown, nothing is allocated. */
#include "link/eval.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/print.h"

/* Returns the end of the buffer, with room for `more` bytes; NULL if there is no memory. */
static char *room(struct hw_eval *e, struct hw_bytes *b, size_t more)
{
	if (b->cap - b->len < more) {
		size_t cap = b->cap ? b->cap : 4096;
		while (cap - b->len < more)
			cap *= 2;
		char *at = realloc(b->at, cap);
		if (!at) {
			e->failed = true;
			return NULL;
		}
		b->at = at;
		b->cap = cap;
	}
	return b->at + b->len;
}

/* Writes a number in decimal and returns the end of the text. snprintf() takes ten times as long, and a call has
 * some thousand numbers. */
static char *put_number(char *to, uint64_t n)
{
	char text[20];
	size_t at = sizeof(text);
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	memcpy(to, text + at, sizeof(text) - at);
	return to + sizeof(text) - at;
}

static void append(struct hw_eval *e, struct hw_bytes *b, const char *data, size_t len)
{
	char *begin = room(e, b, len + 32), *to = begin;
	if (!to)
		return;
	*to++ = '$';
	to = put_number(to, len);
	to = mempcpy(to, "\r\n", 2);
	if (len)
		to = mempcpy(to, data, len);
	to = mempcpy(to, "\r\n", 2);
	b->len += (size_t)(to - begin);
}

void hw_eval_begin(struct hw_eval *e)
{
	e->keys.len = e->args.len = e->whole.len = 0;
	e->n_keys = e->n_args = 0;
	e->item = -1;
	e->failed = false;
}

void hw_eval_item(struct hw_eval *e)
{
	e->item = (int)e->n_args;
}

void hw_eval_key(struct hw_eval *e, const char *key, size_t len)
{
	append(e, &e->keys, key, len);
	e->n_keys++;
}

void hw_eval_arg(struct hw_eval *e, const char *arg, size_t len)
{
	append(e, &e->args, arg, len);
	e->n_args++;
}

void hw_eval_arg_text(struct hw_eval *e, const char *arg)
{
	hw_eval_arg(e, arg, strlen(arg));
}

void hw_eval_arg_int(struct hw_eval *e, int64_t arg)
{
	char text[24], *to = text;
	if (arg < 0)
		*to++ = '-';
	to = put_number(to, arg < 0 ? 0 - (uint64_t)arg : (uint64_t)arg);
	hw_eval_arg(e, text, (size_t)(to - text));
}

void hw_eval_put(struct hw_eval *e, unsigned place, const char *arg, size_t len)
{
	assert((int)e->n_args - e->item == (int)place);
	hw_eval_arg(e, arg, len);
}

void hw_eval_put_text(struct hw_eval *e, unsigned place, const char *arg)
{
	hw_eval_put(e, place, arg, strlen(arg));
}

void hw_eval_put_int(struct hw_eval *e, unsigned place, int64_t arg)
{
	assert((int)e->n_args - e->item == (int)place);
	hw_eval_arg_int(e, arg);
}

size_t hw_eval_put_count(struct hw_eval *e, unsigned place)
{
	hw_eval_put(e, place, "000", HW_EVAL_COUNT_LEN);
	return e->args.len - HW_EVAL_COUNT_LEN - 2;
}

void hw_eval_set_count(struct hw_eval *e, size_t at, unsigned n)
{
	if (e->failed)
		return;
	for (size_t i = HW_EVAL_COUNT_LEN; i-- > 0; n /= 10)
		e->args.at[at + i] = (char)('0' + n % 10);
}

size_t hw_eval_put_room(struct hw_eval *e, unsigned place, size_t len)
{
	static const char zeroes[] = "0000000000000000000000000000000000000000000000000000000000000000";
	assert(len < sizeof(zeroes));
	hw_eval_put(e, place, zeroes, len);
	return e->args.len - len - 2;
}

void hw_eval_fill(struct hw_eval *e, size_t at, const char *text, size_t len)
{
	if (!e->failed)
		memcpy(e->args.at + at, text, len);
}

size_t hw_eval_args(const struct hw_eval *e)
{
	return e->args.len;
}

void hw_eval_take_back(struct hw_eval *e, size_t at, unsigned n)
{
	e->args.len = at;
	e->n_args = n;
}

bool hw_eval_same(const struct hw_eval *e, size_t a, size_t b, size_t len)
{
	return !e->failed && memcmp(e->args.at + a, e->args.at + b, len) == 0;
}

size_t hw_eval_size(const struct hw_eval *e)
{
	return e->keys.len + e->args.len;
}

const char *hw_eval_end(struct hw_eval *e, const char sha[HW_SHA_LEN], size_t *len)
{
	char count[16];
	size_t count_len = hw_print(count, sizeof(count), "%u", e->n_keys);
	char *to = e->failed ? NULL : room(e, &e->whole, hw_eval_size(e) + 160);
	if (!to)
		return NULL;
	size_t head = hw_print(to, 160, "*%u\r\n$7\r\nEVALSHA\r\n$%d\r\n%.*s\r\n$%d\r\n%s\r\n",
	                       3 + e->n_keys + e->n_args, HW_SHA_LEN, HW_SHA_LEN, sha, (int)count_len, count);
	memcpy(to + head, e->keys.at, e->keys.len);
	if (e->args.len)
		memcpy(to + head + e->keys.len, e->args.at, e->args.len);
	*len = head + hw_eval_size(e);
	return to;
}

void hw_eval_fini(struct hw_eval *e)
{
	free(e->keys.at);
	free(e->args.at);
	free(e->whole.at);
	memset(e, 0, sizeof(*e));
}
