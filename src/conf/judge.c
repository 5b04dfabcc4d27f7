/* SPDX-License-Identifier: MIT */
/* Converts the text of a value for its field, by the rules of each type. Only valid values are stored. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/errors.h"
#include "conf/table.h"
#include "conf/value.h"
#include "heartwheel/print.h"

#define SHOWN 48

static const struct {
	const char *name;
	int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

/* Parses digits. Returns 0, -EINVAL (no digit) or -ERANGE. *end points after the digits in any case. */
static int digits(const char *text, int64_t *out, const char **end)
{
	int64_t n = 0;
	int rc = isdigit((unsigned char)*text) ? 0 : -EINVAL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *text - '0', &n))
			rc = -ERANGE;
	*out = n;
	*end = text;
	return rc;
}

int hw_conf_duration_parse(const char *text, int64_t *ms)
{
	int64_t n, unit = 0;
	const char *end;
	int rc = digits(text, &n, &end);
	if (rc == -EINVAL)
		return rc;
	if (!*end)
		unit = 1000;
	for (size_t i = 0; i < N_UNITS && !unit; i++)
		if (strcmp(end, units[i].name) == 0)
			unit = units[i].ms;
	if (!unit)
		return -EINVAL;
	if (rc || __builtin_mul_overflow(n, unit, &n))
		return -ERANGE;
	*ms = n;
	return 0;
}

const char *hw_conf_duration_format(int64_t ms, char *buf, size_t cap)
{
	size_t i = 0;
	while (i + 1 < N_UNITS && ms % units[i].ms != 0)
		i++;
	if (ms == 0)
		snprintf(buf, cap, "0");
	else
		snprintf(buf, cap, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
	return buf;
}

const char *hw_conf_range(const struct hw_conf_option *o, char *buf, size_t cap)
{
	char low[32], high[32];
	if (o->type == HW_CONF_DURATION)
		snprintf(buf, cap, "%s to %s", hw_conf_duration_format(o->min, low, sizeof(low)),
		         hw_conf_duration_format(o->max, high, sizeof(high)));
	else
		snprintf(buf, cap, "%lld to %lld", (long long)o->min, (long long)o->max);
	return buf;
}

static int set_duration(const struct hw_conf_option *o, const char *text, void *field, char *why, size_t cap)
{
	char shown[SHOWN], range[72];
	int64_t ms;
	int rc = hw_conf_duration_parse(text, &ms);
	hw_conf_shown(text, shown, sizeof(shown));
	hw_conf_range(o, range, sizeof(range));
	if (rc == -EINVAL)
		snprintf(why, cap, "'%s' is not a duration: give %s, a whole number with ms, s, m, h or d (as in %s)",
		         shown, range, o->dflt);
	else if (rc || ms < o->min || ms > o->max)
		snprintf(why, cap, "'%s' is out of range: give a duration of %s", shown, range);
	else if (o->step && ms % o->step)
		snprintf(why, cap, "'%s' is not a multiple of %s: give a duration of %s in whole steps", shown,
		         hw_conf_duration_format(o->step, (char[32]){0}, 32), range);
	else
		return *(int64_t *)field = ms, 0;
	return -EINVAL;
}

static int set_int(const struct hw_conf_option *o, const char *text, void *field, char *why, size_t cap)
{
	char shown[SHOWN], range[72];
	const char *end;
	int64_t n;
	int rc = digits(text, &n, &end);
	hw_conf_shown(text, shown, sizeof(shown));
	hw_conf_range(o, range, sizeof(range));
	if (rc == -EINVAL || *end)
		snprintf(why, cap, "'%s' is not a whole number: give %s (%s)", shown, range, o->unit);
	else if (rc || n < o->min || n > o->max)
		snprintf(why, cap, "'%s' is out of range: give %s (%s)", shown, range, o->unit);
	else
		return *(int64_t *)field = n, 0;
	return -EINVAL;
}

static int set_bool(const char *text, void *field, char *why, size_t cap)
{
	char shown[SHOWN];
	bool yes = strcmp(text, "yes") == 0;
	if (!yes && strcmp(text, "no") != 0) {
		snprintf(why, cap, "'%s' is not yes or no", hw_conf_shown(text, shown, sizeof(shown)));
		return -EINVAL;
	}
	*(bool *)field = yes;
	return 0;
}

static int set_enum(const struct hw_conf_option *o, const char *text, void *field, char *why, size_t cap)
{
	const struct hw_conf_choice *c;
	char shown[SHOWN];
	size_t at;
	for (c = o->choices; c->name; c++)
		if (strcmp(c->name, text) == 0) {
			*(int *)field = c->value;
			return 0;
		}
	at = hw_print(why, cap, "'%s' is unknown: give", hw_conf_shown(text, shown, sizeof(shown)));
	for (c = o->choices; c->name && at < cap; c++)
		if (*c->name)
			at += hw_print(why + at, cap - at, "%s %s",
			               c == o->choices || !c[-1].name[0] ? ""
			               : c[1].name                       ? ","
			                                                 : " or",
			               c->name);
	return -EINVAL;
}

/* Skips one well-formed UTF-8 character that is no control character (RFC 3629, section 4). Returns NULL if it is
 * malformed. */
static const char *character(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	uint32_t c = n < 2 ? s[0] : s[0] & (0x7fu >> n);
	if (!n)
		return NULL;
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return NULL;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return NULL;
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ? NULL : text + n;
}

/* Errors that apply to values of all types. */
static const char *malformed(const char *text)
{
	size_t len = strlen(text);
	for (size_t i = 1; i < len; i++)
		if (text[i] == '#' && isspace((unsigned char)text[i - 1]))
			return "holds a ' #': a comment after a value starts with ' ;'";
	if (text[0] == '#' && isspace((unsigned char)text[1]))
		return "starts with '# ': a comment after a value starts with ' ;'";
	if (len > 1 && (text[0] == '"' || text[0] == '\'') && text[len - 1] == text[0])
		return "is in quotes: write the value without them";
	for (const char *s = text; *s;)
		if (!(s = character(s)))
			return "holds a control character, or is not UTF-8";
	return NULL;
}

/* Whether a text is a numeric address and a port. Names are refused, because they would need DNS. */
static bool is_address(const char *text)
{
	char host[INET6_ADDRSTRLEN];
	unsigned char bytes[16];
	const char *colon = strrchr(text, ':'), *end;
	bool six = text[0] == '[' && colon && colon[-1] == ']';
	size_t len = colon ? (size_t)(colon - text) - (six ? 2 : 0) : 0;
	int64_t port;
	if (len == 0 || len >= sizeof(host) || digits(colon + 1, &port, &end) || *end || port < 1 || port > 65535)
		return false;
	memcpy(host, text + (six ? 1 : 0), len);
	host[len] = '\0';
	return inet_pton(six ? AF_INET6 : AF_INET, host, bytes) == 1;
}

/* Applies the rules of all text types, except for the length. Returns NULL, or what is wrong. */
static const char *wrong_text(const struct hw_conf_option *o, const char *text)
{
	bool word = o->type == HW_CONF_WORD || o->type == HW_CONF_NODE_ID || o->type == HW_CONF_ID;
	if (word && strpbrk(text, " "))
		return "must not hold white space";
	if (o->type == HW_CONF_NODE_ID && strpbrk(text, "/+#"))
		return "must be usable as one level of a topic: no '/', '+' or '#'";
	if (o->type == HW_CONF_ID && strpbrk(text, "+#"))
		return "must be usable in an id: no '+' or '#'";
	if (o->type == HW_CONF_ADDRESS && text[0] && !is_address(text))
		return "is not an address to listen on: give a numeric address and a port, such as 127.0.0.1:8731 or "
		       "[::1]:8731";
	if (o->type == HW_CONF_LOG && (strcmp(text, "syslog") == 0 || strcmp(text, "stderr") == 0))
		return NULL;
	if (o->type == HW_CONF_LOG && text[0] != '/')
		return "must be syslog, stderr or an absolute path (one that starts with '/')";
	if (o->type == HW_CONF_PATH && text[0] && text[0] != '/')
		return "must be an absolute path (one that starts with '/')";
	return NULL;
}

static int judge_text(const struct hw_conf_option *o, const char *text, char *why, size_t cap)
{
	const char *wrong = wrong_text(o, text);
	size_t len = strlen(text);
	char shown[SHOWN];
	if (len == 0 && o->min > 0)
		snprintf(why, cap, "is empty: give a value%s%s", o->dflt ? ", such as " : "", o->dflt ? o->dflt : "");
	else if ((int64_t)len > o->max)
		snprintf(why, cap, "is %zu bytes long: the limit is %lld", len, (long long)o->max);
	else if (wrong)
		snprintf(why, cap, "'%s' %s", hw_conf_shown(text, shown, sizeof(shown)), wrong);
	else
		return 0;
	return -EINVAL;
}

static int set_text(const struct hw_conf_option *o, const char *text, void *field, char *why, size_t cap)
{
	char *copy;
	int rc = judge_text(o, text, why, cap);
	if (rc)
		return rc;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static int set_node_id(const struct hw_conf_option *o, const char *text, void *field, char *why, size_t cap)
{
	char host[256], shown[SHOWN], reason[160];
	int rc;
	if (strcmp(text, "auto") != 0)
		return set_text(o, text, field, why, cap);
	if (gethostname(host, sizeof(host)))
		host[0] = '\0';
	host[sizeof(host) - 1] = '\0';
	rc = malformed(host) ? -EINVAL : set_text(o, host, field, reason, sizeof(reason));
	if (rc == -EINVAL)
		snprintf(why, cap,
		         "the host name '%s' cannot be used here: give a name of 1 to %lld bytes without white space, "
		         "'/', '+' or '#'",
		         hw_conf_shown(host, shown, sizeof(shown)), (long long)o->max);
	return rc;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/*
 * The memory of a list of `n` elements is one block. It begins with an array for `cap` elements: `cap` is the least
 * power of two that is at least `n` and FEWEST. A hash table of 2 * cap slots with open addressing follows. A slot
 * contains 1 + the index of an element; 0: the slot is free. The table finds repeated elements, so a file with many
 * lines of one key is read in linear time.
 */
#define FEWEST 8

static size_t room_for(size_t n)
{
	size_t cap = FEWEST;
	while (cap < n)
		cap *= 2;
	return cap;
}

/* Returns the slot of an equal element, or the free slot for the text. The hash is FNV-1a. */
static uint32_t *slot_of(char **list, size_t cap, const char *text)
{
	uint32_t *slots = (uint32_t *)(void *)(list + cap), h = UINT32_C(0x811c9dc5);
	for (const char *s = text; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT32_C(0x01000193);
	for (size_t at = h ^ h >> 16;; at++) {
		uint32_t *slot = &slots[at & (2 * cap - 1)];
		if (*slot == 0 || strcmp(list[*slot - 1], text) == 0)
			return slot;
	}
}

/* Returns the list's block if it has room for one more element. Otherwise returns a larger block, or NULL if there
 * is no memory. */
static char **grow(char **list, size_t n)
{
	size_t cap = room_for(n + 1);
	if (list && cap == room_for(n))
		return list;
	char **grown = calloc(cap, sizeof(*grown) + 2 * sizeof(uint32_t));
	for (size_t i = 0; grown && i < n; i++) {
		grown[i] = list[i];
		*slot_of(grown, cap, list[i]) = (uint32_t)i + 1;
	}
	return grown;
}

static int append(const struct hw_conf_option *o, const char *text, void *base, char *why, size_t cap)
{
	char ***list = (char ***)((char *)base + o->offset);
	size_t *n = (size_t *)((char *)base + o->count_offset);
	int rc = judge_text(o, text, why, cap);
	if (rc)
		return rc;
	char **grown = grow(*list, *n), *copy = grown ? strdup(text) : NULL;
	if (grown && grown != *list) {
		free(*list);
		*list = grown;
	}
	uint32_t *slot = copy ? slot_of(grown, room_for(*n + 1), text) : NULL;
	if (!slot)
		return -ENOMEM;
	if (*slot) {
		free(copy);
		snprintf(why, cap, "the same value is already above: remove one of the two lines");
		return -EINVAL;
	}
	grown[*n] = copy;
	*slot = (uint32_t)++ * n;
	return 0;
}

int hw_conf_value_set(const struct hw_conf_option *o, const char *text, void *base, char *why, size_t cap)
{
	const char *wrong = malformed(text);
	void *field = (char *)base + o->offset;
	char shown[SHOWN];
	if (wrong) {
		snprintf(why, cap, "'%s' %s", hw_conf_shown(text, shown, sizeof(shown)), wrong);
		return -EINVAL;
	}
	switch (o->type) {
	case HW_CONF_INT:
		return set_int(o, text, field, why, cap);
	case HW_CONF_DURATION:
		return set_duration(o, text, field, why, cap);
	case HW_CONF_BOOL:
		return set_bool(text, field, why, cap);
	case HW_CONF_ENUM:
		return set_enum(o, text, field, why, cap);
	case HW_CONF_NODE_ID:
		return set_node_id(o, text, field, why, cap);
	case HW_CONF_TOPICS:
		return append(o, text, base, why, cap);
	case HW_CONF_STRING:
	case HW_CONF_WORD:
	case HW_CONF_ID:
	case HW_CONF_PATH:
	case HW_CONF_ADDRESS:
	case HW_CONF_LOG:
	case HW_CONF_TOPIC:
		break;
	}
	return set_text(o, text, field, why, cap);
}
