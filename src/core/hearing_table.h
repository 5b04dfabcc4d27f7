/* SPDX-License-Identifier: MIT */
/*
 * The table of the heartbeat filters of all groups, for hearing.h: when each filter last delivered, how that is proven,
 * and the state of its canary. Private to the core.
 *
 * Heirs: a reload may give filters of a group to other groups, its heirs: it renames or splits the group. Until its
 * next heartbeat, a device stays in the old group, although only filters of the heirs can deliver that heartbeat. So
 * the device is judged only if the heirs are not blind either.
 *
 * `brought` is a time after which the broker has handled the filter's last message. A heartbeat carries no send time,
 * but the broker has handled the heartbeat after the last barrier that was back when the heartbeat was read: `brought`
 * is that barrier's send time. A canary carries its own send time, as its `seq`.
 */
#ifndef HW_HEARING_TABLE_H
#define HW_HEARING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/blind.h"
#include "heartwheel/group.h"
#include "heartwheel/monitor.h"

struct hw_hearing_filter {
	char *filter, *canary; /* owned: the filter, and the topic of its canary */
	size_t canary_len;
	uint16_t group, index; /* which heartbeat filter of which group */
	size_t size;           /* maximum size of a canary's packet, in bytes */
	struct hw_mono since;  /* when all readers had subscribed */
	struct hw_seen seen;   /* the monitor's seeing clock at `since` */
	struct hw_mono proof;  /* send time of the newest canary that came back */
	struct hw_mono sent;   /* a canary is out since this; 0: none is out */
	uint64_t after;        /* this barrier and all later ones were sent after the last canary */
	struct hw_mono newest; /* send time of the newest canary */
	uint64_t newest_after; /* number of the first barrier sent after `newest` */
	struct hw_mono retry;  /* while deaf: when the next canary is due */
	unsigned tries;        /* canaries lost in a row */
	struct hw_mono tried;  /* send time of the first of these */
	struct hw_mono lost;   /* send time of the last lost canary; 0: none is lost, or a later one came back */
	struct hw_mono missed; /* send time of a canary that was not back when a device's barriers were; 0: there is
	                        * none */
	struct hw_mono gap;    /* when the filter last delivered a message before the missed canary was sent */
	bool mute;             /* the missed canary is lost, so other messages of that time may be lost too */
	bool own;              /* the canary's topic contains the monitor's name, so no device uses it */
	bool due, ever;        /* due: a canary must be sent; ever: a canary came back in this run or in an earlier
	                        * one, so canaries are required */
	enum hw_canary_answer answer;
	bool reported;            /* the loss of canaries is reported, or will be at `report_at`; cleared when a
	                           * canary comes back */
	bool reported_denied;     /* the reported cause is the broker's refusal */
	struct hw_mono report_at; /* when to report the loss; 0: nothing to report */
	bool deaf;                /* the group is deaf because of this filter */
	struct hw_mono last_then; /* while deaf: the filter's last delivery when the deafness began */
	struct hw_mono believed;  /* begin of a silence that is believed; 0: none */
};

struct hw_hearing_group {
	size_t first, n;      /* its filters; none: the group is never deaf */
	size_t heir, n_heirs; /* the group's heirs are heir[heir] to heir[heir + n_heirs - 1] of struct hw_hearing */
	bool canary;          /* the group may send canaries */
	bool asked;           /* a device of the group waits to be judged */
	struct hw_mono want;  /* each filter must have delivered a message that was sent after this time */
	int64_t timeout_ns;
	unsigned deaf_filters;
	bool upstream;          /* the upstream is down, or is up but its grace lasts */
	bool returned;          /* the upstream is up, and the grace lasts */
	struct hw_mono back;    /* end of that grace */
	bool again;             /* the end of the upstream's absence is not reported yet */
	struct hw_mono counted; /* while deaf: when the current count of heartbeats began; 0: no count */
	uint64_t heartbeats;    /* heartbeats of the group at `counted` */
	bool heard;             /* the last timeout had at least half as many heartbeats as online devices */
	bool over;              /* the end of the deafness is not reported yet */
	struct hw_mono need;    /* the waiting goodbyes need a delivery from after this time; 0: no goodbye waits */
	struct hw_blind blind;
};

struct hw_hearing {
	struct hw_hearing_group *group; /* owned; one per group, as in struct hw_groups */
	size_t n_groups;
	struct hw_hearing_filter *filter; /* owned */
	int64_t *brought; /* owned; for each filter: its last message was sent after this time; each heartbeat sets
	                   * it */
	size_t n;
	uint16_t *heir;              /* owned; those of each group stand together */
	int64_t started_ns, base_us; /* origin of the canaries' seq */
	bool is_busy;                /* a canary or a deafness may need work */
	bool asked;                  /* a group has `asked` */
	bool clocks_differ;          /* a group was blind alone, so the groups' clocks may differ */
	struct hw_mono checked;      /* the turn of the last complete pass over the filters */
	struct hw_mono checking;     /* the turn in which a pass began last */
	size_t at;                   /* next position in that pass */
	size_t from;                 /* filter at which that pass begins */
	size_t sent_last;            /* the filter whose canary was sent last; the next search begins after it */
	uint64_t burst;              /* the next burst of canaries may begin when this barrier is back */
	struct hw_mono burst_since;  /* begin of the current burst */
	size_t in_burst;             /* bytes in the current burst */
	bool waits;                  /* another canary is due */
	unsigned deaf_groups;
	struct hw_mono deaf_since; /* earliest begin of the deafnesses that last */
	int64_t deaf_ns;           /* total time with a deaf group, without the current one */
	unsigned upstream_groups;  /* the same for groups whose upstream is down */
	struct hw_mono upstream_since;
	int64_t upstream_ns;
};

void hw_hearing_init(struct hw_hearing *h, struct hw_now now);
void hw_hearing_fini(struct hw_hearing *h);

/* Makes room for `n` groups; the new ones have no filters. 0 or -ENOMEM. */
int hw_hearing_fit_groups(struct hw_hearing *h, size_t n);
/* Replaces the filters with those of `groups`. A filter that stays keeps its data. `node` NULL: the table has no
 * filters. Returns 0, or -ENOMEM with nothing changed. */
int hw_hearing_set_filters(struct hw_hearing *h, const struct hw_groups *groups, const char *node, struct hw_mono now);

/* hw_hearing_proven(): until when filter k is proven to deliver. hw_hearing_last(): when filter k last delivered, or
 * was subscribed if it never did. */
struct hw_mono hw_hearing_proven(const struct hw_hearing *h, size_t k);
struct hw_mono hw_hearing_last(const struct hw_hearing *h, size_t k);
/* Whether the filter's silence counts as silence of its devices, without a proof that the filter delivers. */
bool hw_hearing_believes(const struct hw_hearing *h, size_t k);
/*
 * Returns when the filter's silence counts as silence of its devices, if no message arrives until then. A silent device
 * thus becomes offline three timeouts, but at least 30 s, after the filter's last message. The group is deaf until one
 * timeout before that. The last timeout passes on the group's clock.
 */
struct hw_mono hw_hearing_believed_at(const struct hw_hearing *h, size_t k);

/* Returns the index in `brought` of a group's filter. If the filter is not in the table, returns the index of an
 * unused element. */
static inline uint32_t hw_hearing_filter_of(const struct hw_hearing *h, uint16_t group, size_t index)
{
	const struct hw_hearing_group *g = &h->group[group];
	return (uint32_t)(index < g->n ? g->first + index : h->n);
}

/* Whether filters of `group` belong to the group `heir` since a reload. */
static inline bool hw_hearing_has_heir(const struct hw_hearing *h, size_t group, uint16_t heir)
{
	const struct hw_hearing_group *g = &h->group[group];
	size_t k = g->heir, end = g->heir + g->n_heirs;
	while (k < end && h->heir[k] != heir)
		k++;
	return k < end;
}

/* Makes the next hw_hearing_step() check all filters, even if an earlier step of this turn has checked them. */
static inline void hw_hearing_wake(struct hw_hearing *h)
{
	h->is_busy = true;
	h->checked.ns = INT64_MIN;
	h->at = 0;
}

/* Whether a canary may be sent on the filter. If the filter has no wildcard, no canary may be sent, because the
 * filter is then a topic that devices use. */
static inline bool hw_hearing_may_ask(const struct hw_hearing *h, size_t filter)
{
	return h->group[h->filter[filter].group].canary && h->filter[filter].own;
}

/* Whether a canary is missed. Until the canary is back or lost, later messages prove nothing about the time before
 * these messages. */
static inline bool hw_hearing_misses(const struct hw_hearing *h, size_t filter)
{
	return h->filter[filter].missed.ns && hw_hearing_may_ask(h, filter);
}

#endif
