/* SPDX-License-Identifier: MIT */
#include "ctl/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "heartwheel/print.h"

bool hw_words_true(const cJSON *object, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* Describes a blindness with cause `link`: the connection is lost, or it is back and devices have time left to
 * report. */
static void describe_link(const cJSON *status, const char *span, char *out)
{
	bool began = hw_words_true(status, "starting"), back = hw_member_has(status, "judges_in_ms");
	char left[HW_SPAN_MAX];
	hw_text_span((hw_member_int(status, "judges_in_ms") + 999) / 1000 * 1000, left);
	if (back && began)
		snprintf(out, HW_WORDS_MAX, "starting: devices have %s to report; no device is judged", left);
	else if (back)
		snprintf(
			out, HW_WORDS_MAX,
			"broker connection was lost %s ago and is back: devices have %s to report; no device is judged",
			span, left);
	else if (began)
		snprintf(out, HW_WORDS_MAX,
		         "cannot hear devices: no broker connection since the start, %s ago; no device is judged",
		         span);
	else
		snprintf(out, HW_WORDS_MAX, "cannot hear devices: broker connection lost %s ago; no device is judged",
		         span);
}

bool hw_words_blind(const cJSON *status, char *out)
{
	static const char *const causes[][2] = {
		{"stall", "this monitor stood still"},
		{"standstill", "the broker stands still"},
		{"suspend", "this machine was asleep"},
		{"loss", "the broker has dropped messages for this monitor"},
		{"barrier", "the monitor's own messages do not come back from the broker"},
		{"deaf", "no message arrives on a group's topics, not even the monitor's own"},
		{"upstream", "the bridge or gateway of a group is away"},
	};
	char span[HW_SPAN_MAX];
	const char *cause = hw_member_text(status, "blind_cause"), *what = cause;
	int64_t lasts_ms = hw_member_int(status, "blind_for_ms");
	*out = '\0';
	if (!hw_words_true(status, "blind"))
		return false;
	hw_text_span(lasts_ms < 1000 ? lasts_ms : lasts_ms / 1000 * 1000, span);
	if (strcmp(cause, "link") == 0) {
		describe_link(status, span, out);
		return true;
	}
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (strcmp(cause, causes[i][0]) == 0)
			what = causes[i][1];
	bool group = strcmp(cause, "deaf") == 0 || strcmp(cause, "upstream") == 0;
	snprintf(out, HW_WORDS_MAX, "cannot hear %s: %.80s, for %s; %s", group ? "a group" : "devices", what, span,
	         group ? "its devices are not judged" : "no device is judged");
	return true;
}

double hw_words_rate(const cJSON *status)
{
	const cJSON *rate = cJSON_GetObjectItemCaseSensitive(status, "heartbeats_per_s");
	return cJSON_IsNumber(rate) && strcmp(hw_member_text(status, "mqtt"), "up") == 0 ? rate->valuedouble : 0;
}

bool hw_words_redis_well(const cJSON *status)
{
	const char *redis = hw_member_text(status, "redis");
	return strcmp(redis, "up") == 0 || strcmp(redis, "off") == 0;
}

bool hw_words_standby(const cJSON *c, char *out)
{
	bool owned = hw_member_has(c, "owner"), hears = strcmp(hw_member_text(c, "owner_state"), "blind") != 0,
	     able = strcmp(hw_member_text(c, "state"), "blind") != 0;
	size_t n = hw_print(out, HW_WORDS_MAX, "no node is known to own the fleet");
	if (owned)
		n = hw_print(out, HW_WORDS_MAX, "'%.64s' owns the fleet%s", hw_member_text(c, "owner"),
		             hears ? "" : " but receives no heartbeats");
	if (!able)
		snprintf(out + n, HW_WORDS_MAX - n,
		         "; this node cannot take over: no barrier comes back from the broker");
	return owned && hears && able;
}

bool hw_words_nodes(const cJSON *c, char *out)
{
	int64_t lost = hw_member_int(c, "lost"), unowned = hw_member_int(c, "unowned");
	bool member = hw_words_true(c, "member"), lapsed = member && hw_words_true(c, "lapsed");
	size_t n = hw_print(out, HW_WORDS_MAX,
	                    "%s%" PRId64 " ready of %" PRId64 "; this node owns %" PRId64 " of %" PRId64,
	                    lapsed   ? "Redis is out of reach, so as last known: "
	                    : member ? ""
	                             : "not a member; ",
	                    hw_member_int(c, "ready"), hw_member_int(c, "nodes"), hw_member_int(c, "owned"),
	                    hw_member_int(c, "partitions"));
	if (lost > 0)
		n += hw_print(out + n, HW_WORDS_MAX - n, "; %" PRId64 " lost", lost);
	if (unowned > 0)
		snprintf(out + n, HW_WORDS_MAX - n, "; %" PRId64 " without an owner", unowned);
	return lost == 0 && unowned == 0 && member && !lapsed;
}
