/* SPDX-License-Identifier: MIT */
/*
 * Writes the periods in which this monitor saw the fleet to the stream device:sight. The oldest is written first, with
 * one entry in flight at a time. An entry leaves the queue when Redis has confirmed it. An entry whose answer was lost
 * is written again; readers recognise the duplicate by node and from_ms.
 *
 * Invariant: the queue has at most HW_SIGHTINGS_MAX entries. If it is full, the oldest is dropped. The loss is safe,
 * because a time without an entry counts as not seen.
 *
 * Cost: one XADD for each entry: several in the first minutes of a period, then one in five minutes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/inner.h"

#define AGAIN_MAX_S 60 /* after a refusal */
#define LENGTH_MAX  "10000"

static const char *const names[] = {[HW_SIGHT_BLIND] = "blind",
                                    [HW_SIGHT_SEEING] = "seeing",
                                    [HW_SIGHT_STOPPED] = "stopped",
                                    [HW_SIGHT_DOWN] = "down"};

static struct hw_sighting *at(struct hw_sightings *s, unsigned i)
{
	return &s->waiting[(s->head + i) % HW_SIGHTINGS_MAX];
}

static void refused(struct hw_redis *r, const char *error)
{
	struct hw_sightings *s = &r->sightings;
	char why[HW_TROUBLE_TEXT], text[HW_TROUBLE_TEXT + 320];
	hw_trouble_text(error, why);
	snprintf(text, sizeof(text),
	         "%.250ssight cannot be written, so history cannot show when this monitor was blind: %.380s",
	         r->keys.prefix, why);
	hw_refusal_log(r, &s->reported_ms, text);
	s->pause_s = s->pause_s ? s->pause_s * 2 : 1;
	if (s->pause_s > AGAIN_MAX_S)
		s->pause_s = AGAIN_MAX_S;
	s->wait_s = s->pause_s;
}

static void on_written(redisAsyncContext *ac, void *answer, void *arg)
{
	struct hw_redis *r = arg;
	struct hw_sightings *s = &r->sightings;
	const redisReply *reply = answer;
	(void)ac;
	if (!reply)
		return;
	hw_redis_link_got(&r->link);
	s->in_flight = false;
	if (reply->type == REDIS_REPLY_ERROR) {
		refused(r, reply->str);
		return;
	}
	s->pause_s = s->wait_s = 0;
	s->head = (s->head + 1) % HW_SIGHTINGS_MAX;
	s->n--;
	hw_sightings_send(r);
}

void hw_sightings_send(struct hw_redis *r)
{
	struct hw_sightings *s = &r->sightings;
	char from[24], to[24];
	if (!r->up || s->in_flight || s->n == 0 || s->wait_s > 0)
		return;
	const struct hw_sighting *e = at(s, 0);
	snprintf(from, sizeof(from), "%" PRId64, e->from_ms);
	snprintf(to, sizeof(to), "%" PRId64, e->to_ms);
	const char *argv[] = {"XADD",  r->keys.sight,   "MAXLEN", "~",      LENGTH_MAX, "*",  "node",  r->conf.node_id,
	                      "state", names[e->state], "cause",  e->cause, "from_ms",  from, "to_ms", to};
	size_t len[16];
	for (unsigned i = 0; i < 16; i++)
		len[i] = strlen(argv[i]);
	s->in_flight = hw_redis_link_command(&r->link, on_written, r, 16, argv, len) == 0;
}

void hw_redis_sighting(struct hw_redis *r, const struct hw_sighting *e)
{
	struct hw_sightings *s = &r->sightings;
	struct hw_sighting *last = s->n > s->in_flight ? at(s, s->n - 1) : NULL;
	if (last && last->state == e->state && last->from_ms == e->from_ms) {
		*last = *e; /* the same period continues */
		return;
	}
	if (s->n == HW_SIGHTINGS_MAX) {
		s->head = (s->head + 1) % HW_SIGHTINGS_MAX;
		s->n--;
		s->lost++;
		hw_refusal_log(
			r, &s->reported_ms,
			"Redis has been away so long that the oldest records of this monitor's blindness were dropped");
	}
	*at(s, s->n++) = *e;
	hw_sightings_send(r);
}

bool hw_redis_sightings_idle(const struct hw_redis *r)
{
	return !r->up || r->sightings.n == 0 || r->sightings.wait_s > 0;
}

int64_t hw_redis_old_seen_ms(const struct hw_redis *r)
{
	return r->sight_record.old_ms;
}

void hw_sightings_tick(struct hw_redis *r)
{
	if (r->sightings.wait_s > 0)
		r->sightings.wait_s--;
	hw_sightings_send(r);
}

void hw_sightings_lost(struct hw_redis *r)
{
	r->sightings.in_flight = false;
	r->sightings.wait_s = 0;
}
