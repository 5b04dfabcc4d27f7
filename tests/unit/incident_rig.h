/* SPDX-License-Identifier: MIT */
/* An engine for the unit tests of src/incident: a clock, short forms of the inputs, and what was sent last. */
#ifndef HW_INCIDENT_RIG_H
#define HW_INCIDENT_RIG_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "incident/incidents.h"

#define BEGIN_MS INT64_C(1790000000000)
#define S        1000
#define MIN      60000

static struct hw_incidents *engine;
static int64_t now_ms;
static uint64_t seq;
static struct hw_receiver_conf receivers[2];
static struct hw_incidents_conf conf;
static char sent[16384]; /* "opened ga; closed ga; " */

static inline struct hw_now rig_now(void)
{
	return (struct hw_now){{now_ms * HW_NS_PER_MS}, BEGIN_MS + now_ms};
}

static inline void rig_begin(void)
{
	now_ms = 1000;
	seq = 0;
	sent[0] = '\0';
	receivers[0] = (struct hw_receiver_conf){.name = "ops", .kinds = 0x1f, .interval_ms = 100};
	receivers[1] = (struct hw_receiver_conf){.name = "night", .kinds = 0x1f, .interval_ms = 100};
	conf = (struct hw_incidents_conf){.mass = 5,
	                                  .mass_share = 20,
	                                  .mass_window_ms = MIN,
	                                  .flap_start = 6,
	                                  .flap_end = 2,
	                                  .flap_half_ms = 20 * MIN,
	                                  .blind_after_ms = 0,
	                                  .max_incidents = 1000,
	                                  .seed = 1,
	                                  .receivers = receivers,
	                                  .n_receivers = 1};
}

static inline void rig_start(void)
{
	engine = hw_incidents_new(&conf, rig_now());
	ck_assert_ptr_nonnull(engine);
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
}

static inline void rig_end(void)
{
	hw_incidents_free(engine);
	engine = NULL;
}

/* Takes all changes, as a commit does. */
static inline void rig_commit(void)
{
	struct hw_change c;
	while (hw_incidents_change(engine, &c))
		;
}

/* Steps, and notes what "ops" is sent as "WHAT DEVICE-OR-KIND; ". */
static inline void rig_step(void)
{
	struct hw_incident_message m;
	while (hw_incidents_step(engine, rig_now()))
		;
	while (hw_incidents_message(engine, rig_now(), &m)) {
		for (size_t k = 0; k < m.n; k++) {
			const struct hw_incident_view *v = &m.news[k].incident;
			size_t len = strlen(sent);
			if (strcmp(m.name, "ops") == 0)
				snprintf(sent + len, sizeof(sent) - len, "%s %s; ", hw_news_name(m.news[k].what),
				         v->device ? v->device : hw_incident_kind_name(v->kind));
		}
		hw_incidents_done(engine, rig_now(), m.name, m.number);
	}
	rig_commit();
}

/* Lets time pass, in steps of 100 ms. */
static inline void rig_wait(int64_t ms)
{
	for (int64_t end = now_ms + ms; now_ms < end; now_ms += 100)
		rig_step();
	rig_step();
}

/* What was sent since the last call. */
static inline const char *rig_sent(void)
{
	static char copy[sizeof(sent)];
	memcpy(copy, sent, sizeof(sent));
	sent[0] = '\0';
	return copy;
}

static inline void rig_entry(const char *id, const char *group, enum hw_incident_fact fact, const char *parents,
                             int64_t wait_ms)
{
	struct hw_incident_entry entry = {.id = id,
	                                  .group = group,
	                                  .node = "n1",
	                                  .parents = parents,
	                                  .fact = fact,
	                                  .time_ms = BEGIN_MS + now_ms,
	                                  .timeout_ms = 30 * S,
	                                  .wait_ms = wait_ms,
	                                  .seq = ++seq};
	ck_assert_int_eq(hw_incidents_entry(engine, rig_now(), &entry), 0);
}

static inline void rig_off(const char *id)
{
	rig_entry(id, "pumps", HW_FACT_OFFLINE, NULL, -1);
}

static inline void rig_off_behind(const char *id, const char *parents, int64_t wait_ms)
{
	rig_entry(id, "pumps", HW_FACT_OFFLINE, parents, wait_ms);
}

static inline void rig_on(const char *id)
{
	rig_entry(id, "pumps", HW_FACT_ONLINE, NULL, -1);
}

static inline enum hw_incident_class rig_class(const char *id)
{
	const char *incident;
	return hw_incidents_class(engine, id, &incident);
}

/* The incident of a device; "" is none. */
static inline const char *rig_in(const char *id)
{
	static char texts[4][HW_INCIDENT_ID + 1];
	static unsigned turn;
	const char *incident;
	hw_incidents_class(engine, id, &incident);
	char *to = texts[turn++ % 4];
	snprintf(to, sizeof(*texts), "%s", incident ? incident : "");
	return to;
}

#endif
