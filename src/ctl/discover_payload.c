/* SPDX-License-Identifier: MIT */
/* See discover_payload.h. */
#include "ctl/discover_payload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "heartwheel/fnv.h"
#include "heartwheel/json_tree.h"
#include "heartwheel/print.h"

#define PARSED_MAX 65536 /* bytes */

static const struct {
	const char *online, *offline;
	bool needs_hint;
} pairs[HW_WORD_PAIRS] = {
	{"online", "offline", false},
	{"Online", "Offline", false},
	{"ONLINE", "OFFLINE", false},
	{"connected", "disconnected", false},
	{"Connected", "Disconnected", false},
	{"available", "unavailable", false},
	{"alive", "dead", false},
	{"ready", "lost", false},
	{"up", "down", true},
	{"true", "false", true},
	{"True", "False", true},
	{"1", "0", true},
	{"on", "off", true},
	{"ON", "OFF", true},
};

static bool is_text(const char *a, size_t len, const char *b)
{
	return strlen(b) == len && memcmp(a, b, len) == 0;
}

uint32_t hw_word_of(const char *payload, size_t len)
{
	for (unsigned k = 0; len < 16 && k < HW_WORD_PAIRS; k++)
		for (unsigned off = 0; off < 2; off++)
			if (is_text(payload, len, off ? pairs[k].offline : pairs[k].online))
				return UINT32_C(1) << (2 * k + off);
	return len ? HW_WORD_OTHER : 0;
}

int hw_word_pair(uint32_t words)
{
	for (int k = 0; k < HW_WORD_PAIRS; k++)
		if (words && (words & ~(UINT32_C(3) << 2 * k)) == 0)
			return k;
	return -1;
}

const char *hw_word_offline(int pair)
{
	return pairs[pair].offline;
}

bool hw_word_needs_hint(int pair)
{
	return pairs[pair].needs_hint;
}

bool hw_word_is_one_of(const char *text, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && strncasecmp(text, *list, len) == 0)
			return true;
	return false;
}

bool hw_word_is_hint(const char *level, size_t len)
{
	static const char *const names[] = {"lwt",          "online",    "connected", "connection", "availability",
	                                    "available",    "alive",     "reachable", "will",       "last_will",
	                                    "lastwill",     "link",      "presence",  "$online",    "is_online",
	                                    "connectivity", "heartbeat", NULL};
	return hw_word_is_one_of(level, len, names);
}

/* --- members of JSON objects -------------------------------------------------------------------------------------- */

const char *const hw_discover_field_names[HW_FOUND_FIELDS] = {"battery", "rssi", "ip", "version", "uptime"};

static bool is_percent(const cJSON *v)
{
	return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= 100;
}

static bool is_dbm(const cJSON *v)
{
	return cJSON_IsNumber(v) && v->valuedouble < 0 && v->valuedouble > -200;
}

static bool is_address(const cJSON *v)
{
	size_t n = cJSON_IsString(v) ? strlen(v->valuestring) : 0;
	return n >= 3 && n < 46 && strspn(v->valuestring, "0123456789abcdefABCDEF.:") == n &&
	       strpbrk(v->valuestring, ".:");
}

static bool is_version(const cJSON *v)
{
	return cJSON_IsString(v) && strpbrk(v->valuestring, "0123456789") && strlen(v->valuestring) < 64;
}

static bool is_count(const cJSON *v)
{
	return cJSON_IsNumber(v) && v->valuedouble >= 0;
}

static const struct {
	const char *names[8];
	bool (*fits)(const cJSON *value);
} fields[HW_FOUND_FIELDS] = {
	[HW_FOUND_BATTERY] = {{"battery", "batt", "bat", "battery_level", "batterylevel", "battery_pct"}, is_percent},
	[HW_FOUND_RSSI] = {{"rssi", "signal", "signal_strength", "rssi_dbm"}, is_dbm},
	[HW_FOUND_IP] = {{"ip", "ipaddress", "ip_address", "sta_ip", "ipaddr"}, is_address},
	[HW_FOUND_VERSION] = {{"version", "fw_ver", "fw_version", "firmware", "sw_version", "swversion", "fw"},
                              is_version},
	[HW_FOUND_UPTIME] = {{"uptime", "uptime_s", "uptimesec", "uptime_sec"}, is_count},
};

/* Whether a line `field` can name this member. A '.' in the name would separate two members. */
static bool is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
			return false;
	return *name;
}

static void take_field(struct hw_payload_seen *p, const char *parent, const cJSON *v)
{
	if (!v->string || !is_plain(v->string) || (parent && !is_plain(parent)))
		return;
	for (unsigned k = 0; k < HW_FOUND_FIELDS; k++) {
		size_t room = sizeof(p->path[k]);
		if (p->path[k][0] || !hw_word_is_one_of(v->string, strlen(v->string), fields[k].names) ||
		    !fields[k].fits(v) || strlen(v->string) + (parent ? strlen(parent) : 0) + 2 > room)
			continue;
		hw_print(p->path[k], room, "%s%s%s", parent ? parent : "", parent ? "." : "", v->string);
	}
}

static void take_member(struct hw_payload_seen *p, const cJSON *v)
{
	static const char *const names[] = {"state", "status",          "connection", "availability",
	                                    "lwt",   "connectionState", NULL};
	for (unsigned k = 0; names[k] && !p->member && cJSON_IsString(v); k++) {
		uint32_t word = hw_word_of(v->valuestring, strlen(v->valuestring));
		int pair = hw_word_pair(word);
		if (strcmp(v->string, names[k]) == 0 && pair >= 0 && !hw_word_needs_hint(pair)) {
			p->member = names[k];
			p->words = word;
		}
	}
}

static void read_object(struct hw_payload_seen *p, const cJSON *object)
{
	const cJSON *v, *inner;
	uint64_t shape = 0;
	cJSON_ArrayForEach(v, object)
	{
		/* added up, because the order of the members does not matter */
		shape += hw_fnv64(HW_FNV64_BEGIN, v->string, strlen(v->string));
		take_member(p, v);
		take_field(p, NULL, v);
	}
	cJSON_ArrayForEach(v, object) if (cJSON_IsObject(v)) cJSON_ArrayForEach(inner, v)
		take_field(p, v->string, inner);
	p->shape = shape > HW_SHAPE_TEXT ? shape : HW_SHAPE_TEXT + 1;
	p->by_monitor = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(object, "by")) &&
	                cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(object, "seq"));
	p->own_timeout = cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(object, "timeout"));
}

static bool is_number(const char *payload, size_t len)
{
	size_t i = 0;
	while (i < len && (isdigit((unsigned char)payload[i]) || memchr("+-.eE ", payload[i], 6)))
		i++;
	return i == len && len > 0 && len < 32;
}

bool hw_payload_may_be_monitor(const char *payload, size_t len)
{
	return len > 15 && len <= PARSED_MAX && payload[0] == '{' && memmem(payload, len, "\"seq\"", 5) &&
	       memmem(payload, len, "\"by\"", 4);
}

void hw_payload_see(const char *payload, size_t len, struct hw_payload_seen *p)
{
	*p = (struct hw_payload_seen){.shape = len == 0                  ? HW_SHAPE_EMPTY
	                                       : is_number(payload, len) ? HW_SHAPE_NUMBER
	                                                                 : HW_SHAPE_TEXT};
	cJSON *tree = len > 1 && len <= PARSED_MAX && payload[0] == '{' ? hw_json_tree(payload, len) : NULL;
	if (tree)
		read_object(p, tree);
	cJSON_Delete(tree);
}
