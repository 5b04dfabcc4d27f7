/* SPDX-License-Identifier: MIT */
/*
 * Sight: which messages the monitor can receive, and how well this is proven. It tracks the connections of the sources
 * of evidence (readers, peers) and the barriers that are sent and back. From these it controls the seeing clock
 * (blind.h). Private to the core.
 *
 * Barriers are numbered without gaps. A suspect waits for a pair: a barrier that is sent after the device became a
 * suspect, and a second one that is sent after the first is back on every source. So the broker read the second one in
 * a later turn than the first. By then the broker has read everything that was in its sockets when it read the first.
 * This holds however many packets the broker reads in a turn, and however long the broker stood still.
 *
 * Two barriers that are only sent some time apart prove less. Both may wait in a socket of a broker that stands still,
 * and then be read before many heartbeats.
 */
#ifndef HW_SIGHT_H
#define HW_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/blind.h"
#include "heartwheel/monitor.h"

#define HW_BARRIERS_OUT  64  /* at most this many barriers are out */
#define HW_BARRIERS_KEPT 128 /* for pairs: each of HW_BARRIERS_OUT barriers may be the second of a pair */

/* A barrier that was sent. */
struct hw_sight_barrier {
	struct hw_mono at;
	uint64_t behind; /* the last barrier that was back on every source when this barrier was sent */
};

/* A source. An unused element counts as up, with every barrier back. */
struct hw_sight_source {
	bool there;
	bool fresh; /* the source was added while the monitor runs, and is not up yet: no message can be lost on it */
	bool up;
	bool still;                  /* a barrier is out and nothing arrives: a standstill */
	bool lasts;                  /* only a barrier ends this standstill */
	uint64_t stood;              /* the oldest barrier that was not back in the last standstill; 0: there was no
	                              * standstill */
	bool ever;                   /* a barrier has come back since the subscription */
	uint64_t back;               /* the last barrier that came back on this source, or for which the source need
	                              * not wait */
	struct hw_mono arrived;      /* when anything last arrived */
	struct hw_mono good;         /* when a barrier last came back on this source, or when its subscription was
	                              * granted */
	struct hw_mono later;        /* when the newest barrier that came back was sent, or when the subscription was
	                              * granted */
	struct hw_mono reconnect_at; /* no reconnect is requested before this */
	int64_t reconnect_wait_ns;
};

/* A stall or standstill that is under way. */
struct hw_sight_pause {
	struct hw_mono since;
	struct hw_mono hold; /* end of the grace that it interrupted; 0: none */
};

struct hw_sight {
	struct hw_blind blind;
	int64_t grace_ns, slow_ns, timeout_ns;
	struct hw_sight_source source[HW_SOURCES_MAX];
	unsigned n_sources;        /* elements of source[] up to the last one in use */
	unsigned n_there;          /* number of sources */
	bool overtakes;            /* a QoS 0 message may overtake a QoS 1 message of the same source */
	bool lost;                 /* a source was lost since all were up */
	struct hw_mono link_grace; /* end of the grace after a lost link, in which devices reconnect */
	bool publisher_up;
	struct hw_mono answered;  /* when the broker last answered on the barriers' connection; 0: it has not
	                           * answered */
	bool refused;             /* the broker refused the last barrier that it answered */
	struct hw_mono reopen_at; /* that connection is not opened again before this */
	int64_t reopen_wait_ns;
	struct hw_mono mute; /* since when a barrier is due, but the publisher cannot send it; 0: the publisher can
	                      * send */
	struct hw_mono news; /* when messages last arrived, other than barriers */
	uint64_t sent;       /* number of the last barrier */
	uint64_t floor;      /* barriers up to this one may have been lost and prove nothing */
	struct hw_sight_barrier out[HW_BARRIERS_KEPT];
	int64_t rtt_ns;                 /* smoothed (RFC 6298's factor); 0: none yet */
	struct hw_mono hold[HW_CAUSES]; /* per cause: end of its grace; 0: no grace */
	struct hw_sight_pause stall, standstill;
	struct hw_mono awake; /* when the last stall of this process was found; a delay before that may be the
	                       * process's own */
	uint64_t doubt;       /* until this barrier is back, goodbyes may be wills of a broker that stood still */
	uint64_t barriers_back;
};

/* Work for the caller of a step. */
struct hw_sight_do {
	bool barrier;  /* send barrier number s->sent (already counted as sent) */
	bool reopen;   /* close the barriers' connection and open it again */
	int reconnect; /* the source to reconnect, or -1 */
};

void hw_sight_init(struct hw_sight *s, const struct hw_monitor_conf *conf, struct hw_mono now);
void hw_sight_configure(struct hw_sight *s, const struct hw_monitor_conf *conf);

/*
 * Adds a source. Returns its number, or -ENOSPC. Until the source is up, the monitor is blind, because some messages
 * may arrive on this source only. This blindness is lossless, because no messages arrived on it before. From then on
 * each barrier must come back on this source too.
 */
int hw_sight_add(struct hw_sight *s, struct hw_mono now);
/*
 * Removes a source. Messages that were about to arrive on it are lost, as with a lost connection. If the source was
 * down, the grace for devices that reconnect begins, as if the source had come back. Barriers that are not back no
 * longer count: each suspect needs two barriers that are sent from now on. Without a source the monitor is blind.
 * Returns the same as hw_sight_link().
 */
bool hw_sight_remove(struct hw_sight *s, struct hw_mono now, unsigned source);
static inline bool hw_sight_has(const struct hw_sight *s, unsigned source)
{
	return source < s->n_sources && s->source[source].there;
}

/* Called when the connection of a source is up or lost. Returns whether all sources are up again, after one was
 * lost. */
bool hw_sight_link(struct hw_sight *s, struct hw_mono now, unsigned source, bool up);
void hw_sight_publisher(struct hw_sight *s, bool up);
/* Called with the time at which the broker last answered on the barriers' connection. */
void hw_sight_answered(struct hw_sight *s, struct hw_mono at);
/* Sets whether the broker refused the last barrier. If it did, barriers that are not back are lost, not late. */
void hw_sight_refused(struct hw_sight *s, bool refused);
/* Whether the broker has been silent on the barriers' connection for too long after a barrier. If so, the connection
 * is closed and opened again. */
bool hw_sight_is_silent(const struct hw_sight *s, struct hw_mono now);
void hw_sight_arrived(struct hw_sight *s, struct hw_mono now, unsigned source);
void hw_sight_barrier(struct hw_sight *s, struct hw_mono now, unsigned source, uint64_t number);
void hw_sight_loss(struct hw_sight *s, struct hw_mono now, unsigned source);
void hw_sight_stall(struct hw_sight *s, struct hw_mono planned, struct hw_mono now);
void hw_sight_drained(struct hw_sight *s, struct hw_mono now);
void hw_sight_suspended(struct hw_sight *s, struct hw_mono since, struct hw_mono now);

/* Returns the tag for a device that becomes a suspect now: the second of the barriers that are sent from now on. */
uint64_t hw_sight_tag(const struct hw_sight *s);
/* Whether a goodbye that is read now may be a will that a broker publishes after a standstill. Without a publisher
 * every goodbye may be one. */
bool hw_sight_doubts_goodbye(const struct hw_sight *s);
/* Returns a time: messages that were read at this time or later may be newer than a message that is read now, because
 * another source may have delivered them. In monotonic time; INT64_MAX: there is only one source. */
int64_t hw_sight_unordered_ms(const struct hw_sight *s);
/* Whether a message that is read now may be older than its device's last heartbeat. `heard_ms`: when the heartbeat was
 * read, in monotonic time, or HW_NEVER_MS. */
bool hw_sight_is_order_unknown(const struct hw_sight *s, struct hw_mono now, int64_t heard_ms);
/* Whether a suspect with this tag may be judged. */
bool hw_sight_proven(const struct hw_sight *s, uint64_t tag);

/* Returns when the first barrier of the pair that proves this tag was sent; long ago if that is no longer known. */
struct hw_mono hw_sight_pair_sent(const struct hw_sight *s, uint64_t tag);

/* Whether the monitor is blind only for a grace, and does receive the devices' messages. */
bool hw_sight_in_grace(const struct hw_sight *s);
/* Returns when the last of the present graces ends; {0}: there is none. */
struct hw_mono hw_sight_grace_end(const struct hw_sight *s);
bool hw_sight_all_up(const struct hw_sight *s);
/* Returns when the oldest barrier that is not back, or that cannot be sent, is late; HW_MONO_NEVER: there is none, or a
 * source is down. */
struct hw_mono hw_sight_late_at(const struct hw_sight *s);
/* Returns the last barrier that is back on every source. */
uint64_t hw_sight_back(const struct hw_sight *s);
/* Returns when the last barrier that is back on every source was sent. A message that is read now passed the broker
 * after that. {0}: unknown. */
struct hw_mono hw_sight_sent_after(const struct hw_sight *s);
/* Returns when the newest barrier that came back on every source was sent. hw_sight_sent_after() also counts
 * barriers for which sources no longer wait. */
struct hw_mono hw_sight_later(const struct hw_sight *s);

/*
 * Advances the time: ends graces, detects standstills, and returns what to do. `tag` is the greatest tag of a suspect
 * (0: none). `pace_ns` is the regular interval of barriers. The caller repeats the call until there is nothing to do.
 */
struct hw_sight_do hw_sight_step(struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);
/* Returns when hw_sight_step() may have something to do. */
struct hw_mono hw_sight_next(const struct hw_sight *s, struct hw_mono now, uint64_t tag, int64_t pace_ns);

#endif
