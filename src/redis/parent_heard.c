/* SPDX-License-Identifier: MIT */
/*
 * Writes what heartwheel-alert reads in addition to the event stream: the stream device:parent_heard, and the hash
 * device:groups.
 *
 * Both only help heartwheel-alert to find causes sooner. If Redis does not accept an entry, the entry is not written
 * again; the cause of an outage then stays unknown a while longer. So at most HW_HINTS_MAX commands are in flight, and
 * further ones are dropped.
 *
 * Cost: one XADD for each entry, and one HSET in two seconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inner.h"

#define HEARD_MAX "100000"
#define VALUE_MAX 64

static void on_hint(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 700];
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	r->hints.in_flight -= r->hints.in_flight > 0;
	if (reply->type != REDIS_REPLY_ERROR)
		return;
	hw_trouble_text(reply->str, why);
	snprintf(text, sizeof(text),
	         "%.250sparent_heard and %.250sgroups cannot be written, so notifications wait longer for the cause: "
	         "%.380s",
	         r->keys.prefix, r->keys.prefix, why);
	hw_refusal_log(r, &r->hints.reported_ms, text);
}

static void write_hint(struct hw_redis *r, int argc, const char **argv, const size_t *len)
{
	if (r->up && r->hints.in_flight < HW_HINTS_MAX &&
	    hw_redis_link_command(&r->link, on_hint, r, argc, argv, len) == 0)
		r->hints.in_flight++;
}

void hw_hints_lost(struct hw_redis *r)
{
	r->hints.in_flight = 0;
}

void hw_redis_parent_heard(struct hw_redis *r, struct hw_id id, uint64_t seq, struct hw_id parent, int64_t settle_ms)
{
	char seq_text[24], settle[24];
	const char *argv[] = {
		"XADD",   r->keys.parent_heard, "MAXLEN",    "~",   HEARD_MAX, "*", "id", id.text, "seq", seq_text,
		"parent", parent.text,          "settle_ms", settle};
	size_t len[14];
	snprintf(seq_text, sizeof(seq_text), "%" PRIu64, seq);
	snprintf(settle, sizeof(settle), "%" PRId64, settle_ms);
	for (int i = 0; i < 14; i++)
		len[i] = i == 7 ? id.len : i == 11 ? parent.len : strlen(argv[i]);
	write_hint(r, 14, argv, len);
}

/* Adds the groups of the file, or (`retired`) the groups that exist only because devices were in them. */
static unsigned add_groups(const struct hw_redis *r, bool retired, const struct hw_now now, const char **argv,
                           char (*value)[VALUE_MAX])
{
	const struct hw_groups *g = hw_monitor_groups(r->m);
	unsigned n = 2;
	for (size_t k = 0; k < g->n; k++) {
		const uint32_t *count = hw_monitor_group_stats(r->m, k)->count;
		if (retired != (g->all[k]->retired && count[HW_STATE_ONLINE] + count[HW_STATE_OFFLINE] == 0))
			continue;
		argv[n++] = g->all[k]->name;
		if (retired)
			continue;
		struct hw_mono deaf = hw_monitor_group_deaf_since(r->m, k);
		int64_t deaf_ms = deaf.ns ? now.wall_ms - (now.mono.ns - deaf.ns) / HW_NS_PER_MS : 0;
		snprintf(value[k], VALUE_MAX, "%" PRIu32 " %" PRIu32 " %" PRId64, count[HW_STATE_ONLINE],
		         count[HW_STATE_OFFLINE], deaf_ms);
		argv[n++] = value[k];
	}
	return n;
}

static void send_groups(struct hw_redis *r, const char *command, unsigned n, const char **argv, size_t *len)
{
	argv[0] = command;
	argv[1] = r->keys.groups;
	for (unsigned k = 0; k < n; k++)
		len[k] = strlen(argv[k]);
	write_hint(r, (int)n, argv, len);
}

/* Writes the hash of groups. The first call after a connect also removes the groups of earlier runs. */
void hw_redis_groups(struct hw_redis *r, struct hw_now now)
{
	size_t n_groups = hw_monitor_groups(r->m)->n, room = 2 * n_groups + 2;
	const char **argv = calloc(room, sizeof(*argv));
	size_t *len = calloc(room, sizeof(*len));
	char(*value)[VALUE_MAX] = calloc(n_groups, sizeof(*value));
	if (argv && len && value && r->up) {
		unsigned n = add_groups(r, true, now, argv, value);
		if (!r->hints.groups_cleared)
			send_groups(r, "DEL", 2, argv, len);
		else if (n > 2)
			send_groups(r, "HDEL", n, argv, len);
		r->hints.groups_cleared = true;
		n = add_groups(r, false, now, argv, value);
		if (n > 2)
			send_groups(r, "HSET", n, argv, len);
	}
	free(argv);
	free(len);
	free(value);
}
