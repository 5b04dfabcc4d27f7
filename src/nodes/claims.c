/* SPDX-License-Identifier: MIT */
#include "nodes/claims.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "heartwheel/print.h"

#define EPOCH_MAX (UINT64_MAX / 2)

/* Writes "7:" for one partition or "7-9:" for several. `sep` precedes it unless it is the first. */
static size_t put_range(char *at, size_t cap, unsigned from, unsigned to, const char *sep)
{
	if (from == to)
		return hw_print(at, cap, "%s%u:", sep, from);
	return hw_print(at, cap, "%s%u-%u:", sep, from, to);
}

size_t hw_claims_text(const uint64_t epochs[HW_PARTITIONS], char buf[HW_CLAIMS_TEXT])
{
	size_t len = 0;
	buf[0] = '\0';
	for (unsigned from = 0, to; from < HW_PARTITIONS; from = to + 1) {
		for (to = from; to + 1 < HW_PARTITIONS && epochs[to + 1] == epochs[from]; to++)
			;
		if (epochs[from] == 0)
			continue;
		len += put_range(buf + len, HW_CLAIMS_TEXT - len, from, to, len > 0 ? "," : "");
		len += hw_print(buf + len, HW_CLAIMS_TEXT - len, "%" PRIu64, epochs[from]);
	}
	return len;
}

size_t hw_known_text(const struct hw_fencing_token tokens[HW_PARTITIONS], char buf[HW_KNOWN_TEXT])
{
	size_t len = 0;
	buf[0] = '\0';
	for (unsigned from = 0, to; from < HW_PARTITIONS; from = to + 1) {
		const struct hw_fencing_token *t = &tokens[from];
		for (to = from; to + 1 < HW_PARTITIONS && hw_fencing_token_compare(&tokens[to + 1], t) == 0; to++)
			;
		if (t->epoch == 0)
			continue;
		len += put_range(buf + len, HW_KNOWN_TEXT - len, from, to, len > 0 ? " " : "");
		len += hw_print(buf + len, HW_KNOWN_TEXT - len, "%" PRIu64 ":%s", t->epoch, t->node);
	}
	return len;
}

int hw_claims_number(const char **at, const char *end, uint64_t max, uint64_t *out)
{
	const char *p = *at;
	uint64_t n = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (n > (max - digit) / 10)
			return -EINVAL;
		n = 10 * n + digit;
	}
	if (p == *at || (**at == '0' && p - *at > 1))
		return -EINVAL;
	*at = p;
	*out = n;
	return 0;
}

/* Reads "7:N" or "7-9:N". The first partition must be at least `least`. */
static int range(const char **at, const char *end, uint64_t least, uint64_t *from, uint64_t *to, uint64_t *epoch)
{
	if (hw_claims_number(at, end, HW_PARTITIONS - 1, from) < 0 || *from < least)
		return -EINVAL;
	*to = *from;
	if (*at < end && **at == '-') {
		++*at;
		if (hw_claims_number(at, end, HW_PARTITIONS - 1, to) < 0 || *to <= *from)
			return -EINVAL;
	}
	if (*at == end || **at != ':')
		return -EINVAL;
	++*at;
	return hw_claims_number(at, end, EPOCH_MAX, epoch) < 0 || *epoch == 0 ? -EINVAL : 0;
}

int hw_claims_parse(const char *text, size_t len, uint64_t epochs[HW_PARTITIONS])
{
	const char *at = text, *end = text + len;
	uint64_t from, to = 0, epoch;
	memset(epochs, 0, HW_PARTITIONS * sizeof(*epochs));
	for (uint64_t least = 0; at < end; least = to + 1) {
		if (range(&at, end, least, &from, &to, &epoch) < 0 || (at < end && *at != ','))
			return -EINVAL;
		for (uint64_t p = from; p <= to; p++)
			epochs[p] = epoch;
		if (at < end && ++at == end)
			return -EINVAL;
	}
	return 0;
}

/* Reads ":NODE" up to a space or the end. */
static int node(const char **at, const char *end, struct hw_fencing_token *t)
{
	if (*at == end || **at != ':')
		return -EINVAL;
	const char *from = ++*at;
	while (*at < end && **at != ' ' && **at != '\0')
		++*at;
	size_t len = (size_t)(*at - from);
	if (len == 0 || len > HW_NODE_ID_MAX || (*at < end && **at != ' '))
		return -EINVAL;
	memset(t->node, 0, sizeof(t->node));
	memcpy(t->node, from, len);
	return 0;
}

int hw_known_parse(const char *text, size_t len, struct hw_fencing_token tokens[HW_PARTITIONS])
{
	const char *at = text, *end = text + len;
	uint64_t from, to = 0;
	struct hw_fencing_token t;
	memset(tokens, 0, HW_PARTITIONS * sizeof(*tokens));
	for (uint64_t least = 0; at < end; least = to + 1) {
		if (range(&at, end, least, &from, &to, &t.epoch) < 0 || node(&at, end, &t) < 0)
			return -EINVAL;
		for (uint64_t p = from; p <= to; p++)
			tokens[p] = t;
		if (at < end && ++at == end)
			return -EINVAL;
	}
	return 0;
}

bool hw_claims_is_node(const char *text, size_t len)
{
	return len > 0 && len <= HW_NODE_ID_MAX && !memchr(text, ' ', len) && !memchr(text, '\0', len);
}

size_t hw_record_text(const struct hw_record *r, char buf[HW_RECORD_TEXT])
{
	const char *suffix = !r->released ? "" : r->clean ? " -" : " ~";
	buf[0] = '\0';
	if (r->token.epoch == 0)
		return 0;
	return hw_print(buf, HW_RECORD_TEXT, "%" PRIu64 " %s%s", r->token.epoch, r->token.node, suffix);
}

int hw_record_parse(const char *text, size_t len, struct hw_record *out)
{
	const char *at = text, *end = text + len;
	struct hw_record r = {0};
	*out = r;
	if (hw_claims_number(&at, end, EPOCH_MAX, &r.token.epoch) < 0 || r.token.epoch == 0 || at == end ||
	    *at++ != ' ')
		return -EINVAL;
	if (end - at > 2 && end[-2] == ' ' && (end[-1] == '-' || end[-1] == '~')) {
		r.released = true;
		r.clean = end[-1] == '-';
		end -= 2;
	}
	if (!hw_claims_is_node(at, (size_t)(end - at)))
		return -EINVAL;
	memcpy(r.token.node, at, (size_t)(end - at));
	*out = r;
	return 0;
}

void hw_partitions_text(const struct hw_partitions *set, char buf[HW_PARTITIONS_TEXT])
{
	for (unsigned k = 0; k < HW_PARTITIONS / 4; k++)
		buf[k] = "0123456789abcdef"[set->bits[k / 16] >> 4 * (k % 16) & 15];
	buf[HW_PARTITIONS / 4] = '\0';
}

int hw_partitions_parse(const char *text, size_t len, struct hw_partitions *out)
{
	static const char digits[] = "0123456789abcdef";
	*out = (struct hw_partitions){{0}};
	if (len != HW_PARTITIONS / 4)
		return -EINVAL;
	for (unsigned k = 0; k < len; k++) {
		const char *digit = text[k] ? strchr(digits, text[k]) : NULL;
		if (!digit)
			return -EINVAL;
		out->bits[k / 16] |= (uint64_t)(digit - digits) << 4 * (k % 16);
	}
	return 0;
}
