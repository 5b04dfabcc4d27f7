/* SPDX-License-Identifier: MIT */
/*
 * What is known of each heartbeat filter of each group: when it brought something last, how that was proven, and what
 * has become of the canary that was sent on it. The table of hearing.h, which says what follows from it. Private to the
 * core.
 *
 * What a heartbeat proves is the moment at which the last barrier was sent that was back when it was read (the mark); a
 * canary's `seq` is the moment at which it was sent.
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
	uint16_t group, index; /* which heartbeat filter of which group */
	size_t size;           /* bytes of a canary's packet, at most */
	struct hw_mono since;  /* subscribed since then, all readers together, */
	struct hw_seen seen;   /* ... when the monitor's clock showed this */
	struct hw_mono proof;  /* the canary that came back last was sent then */
	struct hw_mono sent;   /* a canary is out since then; 0: none is */
	uint64_t after;        /* a barrier with this number or a later one was sent after it */
	struct hw_mono newest; /* of several that are out, the last one was sent then, */
	uint64_t newest_after; /* ... before this barrier */
	struct hw_mono retry;  /* of a deaf filter: when the next one goes out */
	unsigned tries;        /* that did not come back, in a row, */
	struct hw_mono tried;  /* ... the first of them was sent then */
	struct hw_mono lost;   /* the last that did not come back was sent then; 0: none, or one came back since */
	struct hw_mono missed; /* one was sent then, a later barrier has overtaken it, and a device waits; 0: none */
	struct hw_mono gap;    /* when that was sent, the filter had brought something last then */
	bool mute;             /* the one that was missed is lost, and whatever was published with it */
	bool own;              /* the canary's topic is nobody else's: it names the monitor */
	bool due, ever;        /* ever: one came back in this run, and nothing has shown since that none is needed */
	enum hw_canary_answer answer;
	bool told;                /* that a right is missing, since one was back last; or it is about to be, */
	bool told_denied;         /* ... because the broker refuses the canary, */
	struct hw_mono tell;      /* ... then; 0: it is not to be told */
	bool deaf;                /* its group is, because of it */
	struct hw_mono last_then; /* while deaf: when it had brought something last when that began */
	struct hw_mono believed;  /* the silence since then is believed; 0: none is */
};

struct hw_hearing_group {
	size_t first, n;     /* its filters; none: it is not judged */
	bool canary;         /* it may send them */
	bool asked;          /* a device of it is to be judged, */
	struct hw_mono want; /* ... by what its filters have brought since then */
	int64_t timeout_ns;
	unsigned deaf_filters;
	bool upstream;          /* what it is heard through is away, or has been back for less than a grace */
	bool returned;          /* ... it is back, */
	struct hw_mono back;    /* ... and the group is heard again then */
	bool again;             /* it is heard again, which was not told yet */
	struct hw_mono counted; /* while deaf: since then its devices' heartbeats are counted; 0: not yet */
	uint64_t heartbeats;    /* ... when it had had so many */
	bool heard;             /* for a timeout at least every other online device of it could have been heard */
	bool over;              /* it hears again, which was not told yet */
	struct hw_mono need;    /* what goodbyes that wait for a canary need proven; 0: none waits */
	struct hw_blind blind;
};

struct hw_hearing {
	struct hw_hearing_group *group; /* owned; an element a group, as in struct hw_groups */
	size_t n_groups;
	struct hw_hearing_filter *filter; /* owned */
	int64_t *brought;                 /* owned; a filter: the mark of what it brought last. Heartbeats write it */
	size_t n;
	int64_t started_ns, base_us; /* what a canary's seq counts from */
	bool look;                   /* there may be something due, out or deaf */
	bool asked;                  /* some group is */
	bool clocks_differ;          /* a group has been deaf: from then on clocks differ */
	struct hw_mono looked;       /* the turn in which all filters were looked at last */
	struct hw_mono looking;      /* ... in which that was begun last, */
	size_t at;                   /* ... and this one is next */
	size_t from;                 /* the first that is looked at in this look */
	size_t sent_last;            /* the canary of this one was sent last: the next look begins behind it */
	uint64_t burst;              /* canaries are sent in bursts: once this barrier is back the next may begin, */
	struct hw_mono burst_since;  /* ... this one began then, */
	size_t in_burst;             /* ... with so many bytes */
	bool waits;                  /* another canary is due */
	unsigned deaf_groups;
	struct hw_mono deaf_since; /* the first of those that are deaf became so then */
	int64_t deaf_ns;           /* how long any was, before that */
	unsigned upstream_groups;  /* the same of groups whose upstream is away */
	struct hw_mono upstream_since;
	int64_t upstream_ns;
};

void hw_hearing_init(struct hw_hearing *h, struct hw_now now);
void hw_hearing_fini(struct hw_hearing *h);

/* The filters of `groups` take the place of those that were; what is known of one that stays is kept. `node` NULL: of
 * none. 0, or -ENOMEM with all as it was. */
/* There will be `n` groups, the new ones without filters. 0 or -ENOMEM. */
int hw_hearing_fit_groups(struct hw_hearing *h, size_t n);

int hw_hearing_set_filters(struct hw_hearing *h, const struct hw_groups *groups, const char *node, struct hw_mono now);

/* Of filter number k: until when what it brings is proven; and when it brought something last, or was subscribed to. */
struct hw_mono hw_hearing_proven(const struct hw_hearing *h, size_t k);
struct hw_mono hw_hearing_last(const struct hw_hearing *h, size_t k);
/* The filter's silence is believed to be its devices', though nothing proves that it would bring them. */
bool hw_hearing_believes(const struct hw_hearing *h, size_t k);
/* When that would be so, if nothing came until then. Three timeouts after it brought something last, at least 30 s,
 * whoever is silent is offline: of these the group is deaf for all but one, and that one then runs on its clock. */
struct hw_mono hw_hearing_believed_at(const struct hw_hearing *h, size_t k);

/* Where `brought` has this filter of this group; one that nobody asks for where nothing is doubted. */
static inline uint32_t hw_hearing_filter_of(const struct hw_hearing *h, uint16_t group, size_t index)
{
	const struct hw_hearing_group *g = &h->group[group];
	return (uint32_t)(index < g->n ? g->first + index : h->n);
}

/* Has hw_hearing_step() look at all filters, also if it did so in this turn already. */
static inline void hw_hearing_wake(struct hw_hearing *h)
{
	h->look = true;
	h->looked.ns = INT64_MIN;
	h->at = 0;
}

/* Whether a canary may be sent: not on a filter that is itself a topic, which others publish on and read. */
static inline bool hw_hearing_may_ask(const struct hw_hearing *h, size_t filter)
{
	return h->group[h->filter[filter].group].canary && h->filter[filter].own;
}

/* A canary is missed: until it is known whether it is lost, what is brought proves nothing of the time before. */
static inline bool hw_hearing_misses(const struct hw_hearing *h, size_t filter)
{
	return h->filter[filter].missed.ns && hw_hearing_may_ask(h, filter);
}

#endif
