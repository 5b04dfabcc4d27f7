/* SPDX-License-Identifier: MIT */
/*
 * Sight: what the monitor can hear, and how well that is proven. It keeps the links of its sources of evidence
 * (readers, peers), the barriers that are out and back, and drives the seeing clock (blind.h) from them. Private to the
 * core.
 *
 * Barriers are numbered without gaps. A candidate waits for a pair: a barrier sent after it became one, and a second
 * sent after the first had come back through every source. However many packets of one socket a broker takes in a turn,
 * and however long it stood still before: it read the second in a later turn than the first, and whatever lay in its
 * sockets when it read the first has been read by then. Two that are only sent some time apart may wait side by side in
 * the socket of a broker that stands still, and overtake every heartbeat together.
 */
#ifndef HW_SIGHT_H
#define HW_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/blind.h"
#include "heartwheel/monitor.h"

#define HW_BARRIERS_OUT  64  /* at most so many are out at once */
#define HW_BARRIERS_KEPT 128 /* a pair is two, one after the other */

/* A barrier that was sent. */
struct hw_sight_barrier {
	struct hw_mono at;
	uint64_t behind; /* the last that was back through every source by then */
};

/* A source. A place that none has is neutral: it is up, and everything is back on it. */
struct hw_sight_source {
	bool there;
	bool fresh; /* it came while the monitor ran, and was not up yet: nothing that it brings can have been lost */
	bool up;
	bool still;                  /* a barrier is out and nothing arrives: part of a standstill */
	bool lasts;                  /* ... which only a barrier ends */
	uint64_t stood;              /* the oldest barrier that was out in the last standstill; 0: none */
	bool ever;                   /* a barrier has come back since the subscription */
	uint64_t back;               /* the last number that came back, or that need not come back */
	struct hw_mono arrived;      /* when anything arrived last */
	struct hw_mono good;         /* when a barrier came back last, or the subscription was granted */
	struct hw_mono later;        /* the newest barrier that came back was sent then, or the subscription granted */
	struct hw_mono reconnect_at; /* not asked to reconnect again before this */
	int64_t reconnect_wait_ns;
};

/* A stall or a standstill that lasts. */
struct hw_sight_pause {
	struct hw_mono since;
	struct hw_mono hold; /* when the grace that it interrupted would have ended; 0: none */
};

struct hw_sight {
	struct hw_blind blind;
	int64_t grace_ns, slow_ns, timeout_ns;
	struct hw_sight_source source[HW_SOURCES_MAX];
	unsigned n_sources;        /* places in use are before this one */
	unsigned n_there;          /* of them with a source */
	bool lost;                 /* a source was lost since all were up */
	struct hw_mono link_grace; /* devices have the time to come back after a lost link until then */
	bool publisher_up;
	struct hw_mono answered;  /* the broker answered on the barriers' connection then; 0: not yet */
	bool refused;             /* it refused the last barrier that it answered */
	struct hw_mono reopen_at; /* that connection is not opened again before this */
	int64_t reopen_wait_ns;
	struct hw_mono
		mute;   /* a barrier was due then that the publisher could not send, and none is back since; 0: no */
	uint64_t sent;  /* number of the last barrier */
	uint64_t floor; /* a barrier up to this one may have been lost: it proves nothing to who waits */
	struct hw_sight_barrier out[HW_BARRIERS_KEPT];
	int64_t rtt_ns;                 /* smoothed (RFC 6298's factor); 0: none yet */
	struct hw_mono hold[HW_CAUSES]; /* a cause whose grace lasts ends then; 0: no grace */
	struct hw_sight_pause stall, standstill;
	struct hw_mono
		awake;  /* when a stall was found out last: what had not come by then need not be the broker's fault */
	uint64_t doubt; /* a goodbye that comes before this barrier may be the will of a broker that stood still */
	uint64_t barriers_back;
};

/* What a step asks for. */
struct hw_sight_do {
	bool barrier;  /* send barrier number s->sent (already counted as sent) */
	bool reopen;   /* close the barriers' connection and open it again */
	int reconnect; /* a source to be reconnected, or -1 */
};

void hw_sight_init(struct hw_sight *s, const struct hw_monitor_conf *conf, struct hw_mono now);
void hw_sight_configure(struct hw_sight *s, const struct hw_monitor_conf *conf);

/*
 * A source more; its number, or -ENOSPC. Until it is up the monitor is blind, since something may come on it alone, but
 * lossless, since nothing did before; from then on whatever is to be proven must be proven through it as well.
 */
int hw_sight_add(struct hw_sight *s, struct hw_mono now);
/*
 * One less. What was on its way through it is lost, as with a lost link; if it was lost before, devices get the time to
 * come back as if it had come back itself. No barrier that it has seen, or not, counts any
 * more: whoever waits needs two that are sent from now on. Without any source the monitor is blind. Returns as
 * hw_sight_link().
 */
bool hw_sight_remove(struct hw_sight *s, struct hw_mono now, unsigned source);
static inline bool hw_sight_has(const struct hw_sight *s, unsigned source)
{
	return source < s->n_sources && s->source[source].there;
}

/* Whether all sources are up by this, after one was lost. */
bool hw_sight_link(struct hw_sight *s, struct hw_mono now, unsigned source, bool up);
void hw_sight_publisher(struct hw_sight *s, bool up);
/* When the broker answered last on the barriers' connection. */
void hw_sight_answered(struct hw_sight *s, struct hw_mono at);
/* Whether the broker refused the last barrier: those that are out are then lost rather than late. */
void hw_sight_refused(struct hw_sight *s, bool refused);
/* Whether the broker answers nothing on that connection. */
bool hw_sight_is_silent(const struct hw_sight *s, struct hw_mono now);
void hw_sight_arrived(struct hw_sight *s, struct hw_mono now, unsigned source);
void hw_sight_barrier(struct hw_sight *s, struct hw_mono now, unsigned source, uint64_t number);
void hw_sight_loss(struct hw_sight *s, struct hw_mono now, unsigned source);
void hw_sight_stall(struct hw_sight *s, struct hw_mono planned, struct hw_mono now);
void hw_sight_drained(struct hw_sight *s, struct hw_mono now);
void hw_sight_suspended(struct hw_sight *s, struct hw_mono since, struct hw_mono now);

/* The barrier that must be proven before what became a candidate now is judged. Never falls. */
uint64_t hw_sight_tag(const struct hw_sight *s);
/* Whether a goodbye that is read now may be one of the wills that a broker publishes after a standstill, or older than
 * a heartbeat that another source has brought. */
bool hw_sight_doubts_goodbyes(const struct hw_sight *s, struct hw_mono now);
/* Whether a candidate with this tag may be judged. */
bool hw_sight_proven(const struct hw_sight *s, uint64_t tag);

/* When the first of the two barriers that prove this tag was sent; long ago if that is not known any more. */
struct hw_mono hw_sight_pair_sent(const struct hw_sight *s, uint64_t tag);

/* Whether nothing blinds but the grace after what is over: what devices send is read. */
bool hw_sight_in_grace(const struct hw_sight *s);
/* Whether every source is up; the last barrier that is back on all of them; and when that was sent: what is
 * read now came through the broker later. */
/* When the last of the graces that are held now ends; {0}: none is. */
struct hw_mono hw_sight_grace_end(const struct hw_sight *s);
bool hw_sight_all_up(const struct hw_sight *s);
uint64_t hw_sight_back(const struct hw_sight *s);
struct hw_mono hw_sight_mark(const struct hw_sight *s);
/* The same by what has come back indeed: the mark counts barriers, too, that nobody waits for any more. */
struct hw_mono hw_sight_later(const struct hw_sight *s);

/*
 * Looks at the clock: ends graces that are over, finds standstills, and says what is to be done. `tag` is the highest
 * tag anyone waits for (0: nobody), `pace_ns` the steady pace. Call until it asks for nothing.
 */
struct hw_sight_do hw_sight_step(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);
/* The first moment at which hw_sight_step() may have something to do. */
struct hw_mono hw_sight_next(const struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);

#endif
