/* SPDX-License-Identifier: MIT */
/*
 * Finds the standalone monitors that use this prefix. Their entries are in device:monitors; nodes/exclusive.h decides
 * what to do about them. This monitor has an entry too, unless it is a node of a cluster. Malformed entries are
 * ignored.
 *
 * Cost: one script each second, which reads some thousand fields at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heartwheel/print.h"
#include "nodes/claims.h"
#include "redis/inner.h"

#define RUN_LEN 16

static bool is_text(const redisReply *e, size_t most)
{
	return e->type == REDIS_REPLY_STRING && e->len > 0 && e->len < most && !memchr(e->str, '\0', e->len);
}

/* Parses an entry. `more`: receives the details that only the report needs; may be NULL. */
static bool parse(const redisReply *run, const redisReply *text, struct hw_exclusive_entry *e,
                  struct hw_redis_monitor *more)
{
	struct hw_redis_monitor other;
	int end = 0;
	if (!is_text(run, RUN_LEN + 1) || !is_text(text, HW_MONITOR_ENTRY_MAX) ||
	    sscanf(run->str, "%16" SCNx64 "%n", &e->run, &end) != 1 || end != RUN_LEN)
		return false;
	if (sscanf(text->str, "%16" SCNu64 " %16" SCNu64 " %64s %*16s %9ld %64s", &e->born, &e->count, other.node_id,
	           &other.pid, other.host) != 5)
		return false;
	if (more)
		*more = other;
	return true;
}

/* Stores the entry of a run that has ended. The next call, which follows at once, removes it. */
static bool store_ended(struct hw_monitors *m, const redisReply *run, const redisReply *text,
                        const struct hw_exclusive_entry *e)
{
	if (m->n_dead == HW_MONITORS_DEAD || !hw_exclusive_is_dead(&m->exclusive, e))
		return false;
	memcpy(m->dead[m->n_dead].run, run->str, run->len + 1);
	memcpy(m->dead[m->n_dead++].entry, text->str, text->len + 1);
	return true;
}

/* Reports why the entry could not be written. The sight record is also written each second: if Redis refuses all
 * writes, that is reported there. Only a missing right may concern this key alone. */
static void report(struct hw_redis *r, const char *error)
{
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 128];
	enum hw_trouble kind = hw_trouble_of(error);
	if (r->monitors.reported || (hw_trouble_is_global(kind) && kind != HW_TROUBLE_NOPERM))
		return;
	r->monitors.reported = true;
	hw_trouble_text(error, why);
	hw_print(text, sizeof(text), "%s is refused, so another monitor with this key_prefix cannot be detected: %s",
	         r->keys.monitors, why);
	r->ops->on_trouble(r->arg, text);
}

static void on_refused(struct hw_redis *r, const char *error)
{
	if (hw_trouble_of(error) == HW_TROUBLE_NOSCRIPT) {
		hw_scripts_load(&r->scripts);
		return;
	}
	report(r, error);
	r->monitors.fn(r->arg, HW_EXCLUSIVE_FIRST, NULL);
}

static void on_entries(struct hw_redis *r, const redisReply *reply)
{
	struct hw_monitors *m = &r->monitors;
	struct hw_exclusive_entry entries[HW_MEMBERS_MAX];
	size_t at[HW_MEMBERS_MAX], n = 0, older = 0;
	struct hw_redis_monitor other;
	bool any = false;
	for (size_t i = 0; i + 1 < reply->elements && n < HW_MEMBERS_MAX; i += 2) {
		at[n] = i;
		n += parse(reply->element[i], reply->element[i + 1], &entries[n], NULL);
	}
	enum hw_exclusive_verdict verdict = hw_exclusive_check(&m->exclusive, hw_clock_now().mono, entries, n, &older);
	if (n > 0 && entries[0].run == r->conf.run_id)
		m->born = entries[0].born;
	m->renewed = m->asked;
	m->n_dead = 0;
	for (size_t i = 0; i < n; i++)
		any |= store_ended(m, reply->element[at[i]], reply->element[at[i] + 1], &entries[i]);
	if (verdict != HW_EXCLUSIVE_FIRST)
		parse(reply->element[at[older]], reply->element[at[older] + 1], &entries[older], &other);
	if (any)
		hw_redis_enter(r, m->fn);
	m->fn(r->arg, verdict, verdict == HW_EXCLUSIVE_FIRST ? NULL : &other);
}

/* Reports that the hash has so many fields that each second only some of them are read. Another program must have
 * written the many fields. */
static void report_crowd(struct hw_redis *r, const redisReply *fields)
{
	char text[320];
	r->monitors.reported = true;
	snprintf(text, sizeof(text),
	         "%.128s has %lld fields, and only some are read, so another monitor with this key_prefix may go "
	         "unnoticed; check which programs write there",
	         r->keys.monitors, fields->integer);
	r->ops->on_trouble(r->arg, text);
}

static void on_entered(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	r->monitors.in_flight = false;
	if (reply->type == REDIS_REPLY_ERROR) {
		on_refused(r, reply->str);
		return;
	}
	if (reply->elements % 2 == 0)
		r->monitors.reported = false;
	else if (!r->monitors.reported)
		report_crowd(r, reply->element[reply->elements - 1]);
	on_entries(r, reply);
}

static int64_t age_ns(const struct hw_monitors *m, struct hw_mono now)
{
	return m->born ? now.ns - m->renewed.ns : 0;
}

/* Returns the argument `born` of the script. Usually `born` is that of this run's entry. With 0, this run enters as the
 * youngest run if its entry is missing; with -1, this run enters as the youngest in any case.
 *
 * 0 is returned if the entry was not renewed for half a lease, because another run may have removed it. -1 is
 * returned after a whole lease, because an old renewal that the network had held back may have written the entry
 * again. */
static int64_t born_of(const struct hw_monitors *m)
{
	int64_t age = age_ns(m, m->asked);
	if (age >= HW_EXCLUSIVE_LEASE_NS)
		return -1;
	return age < HW_EXCLUSIVE_LEASE_NS / 2 ? (int64_t)m->born : 0;
}

static void put_entry(struct hw_redis *r, struct hw_eval *e)
{
	char run[RUN_LEN + 1] = "", place[RUN_LEN + 1] = "", host[64 + 1], text[HW_MONITOR_ENTRY_MAX];
	bool reads_first = r->monitors.exclusive.run == 0;
	if (!reads_first)
		hw_print(run, sizeof(run), "%016" PRIx64, r->conf.run_id);
	if (r->conf.place)
		hw_print(place, sizeof(place), "%016" PRIx64, r->conf.place);
	if (gethostname(host, sizeof(host)) != 0 || !hw_claims_is_node(host, strnlen(host, sizeof(host) - 1)))
		hw_print(host, sizeof(host), "-");
	host[sizeof(host) - 1] = '\0';
	size_t n = hw_print(text, sizeof(text), "%s %s %ld %s", r->conf.node_id, *place ? place : "-", (long)getpid(),
	                    host);
	hw_eval_arg_text(e, run);
	hw_eval_arg_int(e, reads_first ? 0 : (int64_t)++r->monitors.count);
	hw_eval_arg(e, text, n);
	hw_eval_arg_text(e, place);
	hw_eval_arg_int(e, born_of(&r->monitors));
}

bool hw_redis_may_be_replaced(const struct hw_redis *r)
{
	return age_ns(&r->monitors, hw_clock_now().mono) >= HW_EXCLUSIVE_LEASE_NS;
}

void hw_redis_withhold(struct hw_redis *r, bool withheld)
{
	r->sink.withheld = withheld;
	hw_plan_pump(r);
}

bool hw_redis_read_monitors(struct hw_redis *r, hw_redis_monitors_seen *fn)
{
	r->monitors.exclusive.run = 0;
	return hw_redis_enter(r, fn);
}

bool hw_redis_enter(struct hw_redis *r, hw_redis_monitors_seen *fn)
{
	struct hw_monitors *m = &r->monitors;
	struct hw_eval *e = &m->eval;
	if (!r->up || m->in_flight || m->leaves || hw_scripts_loading(&r->scripts))
		return false;
	m->fn = fn;
	m->asked = hw_clock_now().mono;
	hw_eval_begin(e);
	hw_eval_key(e, r->keys.monitors, strlen(r->keys.monitors));
	put_entry(r, e);
	for (unsigned i = 0; i < m->n_dead; i++) {
		hw_eval_arg_text(e, m->dead[i].run);
		hw_eval_arg_text(e, m->dead[i].entry);
	}
	m->n_dead = 0;
	m->in_flight = hw_scripts_call(&r->scripts, HW_SCRIPT_MONITORS, e, on_entered, r) == 0;
	return m->in_flight;
}

static void on_left(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	(void)ac;
	if (answer)
		hw_redis_link_got(&r->link);
	r->monitors.left = true;
	r->monitors.fn(r->arg, HW_EXCLUSIVE_FIRST, NULL);
}

bool hw_redis_leave(struct hw_redis *r)
{
	char run[RUN_LEN + 1];
	struct hw_monitors *m = &r->monitors;
	if (m->left || m->count == 0 || !r->up)
		return true;
	if (m->leaves)
		return false;
	hw_print(run, sizeof(run), "%016" PRIx64, r->conf.run_id);
	const char *argv[] = {"HDEL", r->keys.monitors, run};
	const size_t len[] = {4, strlen(r->keys.monitors), RUN_LEN};
	m->leaves = hw_redis_link_command(&r->link, on_left, r, 3, argv, len) == 0;
	return !m->leaves;
}

void hw_monitors_lost(struct hw_redis *r)
{
	r->monitors.in_flight = false;
	r->monitors.n_dead = 0;
	hw_exclusive_forget(&r->monitors.exclusive);
}
