/* SPDX-License-Identifier: MIT */
/* See refused_topics.h. Cost: a scan of at most HW_REFUSED_TOPICS hashes for each canary. */
#include "mqtt/refused_topics.h"

#include "heartwheel/time.h"

#define CALM       100 /* after this many acknowledged canaries in a row, messages are no longer sent one at a time */
#define PROOF      2   /* closes that prove a refusal */
#define REFUSED_NS (60 * HW_NS_PER_S)
#define LONGEST_NS (600 * HW_NS_PER_S)

bool hw_refused_topics_careful(const struct hw_refused_topics *r)
{
	return r->closed || r->n > 0;
}

/* Returns the index of a topic's entry, or of the entry for all other topics; r->n: there is none. */
static unsigned find(const struct hw_refused_topics *r, uint64_t topic)
{
	unsigned i = 0;
	while (i < r->n && r->all[i].topic != topic)
		i++;
	return i == HW_REFUSED_TOPICS ? HW_REFUSED_TOPICS - 1 : i;
}

bool hw_refused_topics_allow(const struct hw_refused_topics *r, uint64_t topic, int64_t now_ns)
{
	unsigned i = find(r, topic);
	return i == r->n || r->all[i].closes < PROOF || now_ns >= r->all[i].until_ns;
}

void hw_refused_topics_acknowledged(struct hw_refused_topics *r, uint64_t topic)
{
	unsigned i = find(r, topic);
	if (i < r->n)
		r->all[i] = r->all[--r->n];
	if (++r->calm >= CALM)
		r->closed = false;
}

/* Limits the attempts to one in a minute, however many topics are refused, because each attempt may end a
 * connection. */
static void space_tries(struct hw_refused_topics *r, int64_t now_ns)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->all[i].until_ns < now_ns + REFUSED_NS)
			r->all[i].until_ns = now_ns + REFUSED_NS;
}

int64_t hw_refused_topics_closed(struct hw_refused_topics *r, uint64_t topic, int64_t now_ns)
{
	r->closed = true;
	r->calm = 0;
	if (!topic)
		return 0;
	unsigned i = find(r, topic);
	if (i == r->n) {
		r->all[r->n].topic = topic;
		r->all[r->n++].closes = 0;
	}
	unsigned closes = ++r->all[i].closes;
	if (closes < PROOF)
		return 0;
	int64_t wait_ns = closes - PROOF < 4 ? REFUSED_NS << (closes - PROOF) : LONGEST_NS;
	r->all[i].until_ns = now_ns + wait_ns;
	space_tries(r, now_ns);
	return wait_ns;
}

void hw_refused_topics_forget(struct hw_refused_topics *r)
{
	r->n = r->calm = 0;
	r->closed = false;
}
