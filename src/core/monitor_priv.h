/* SPDX-License-Identifier: MIT */
/*
 * The monitor's internals, shared by its files. Each file uses only the files before it: monitor.c (object, records,
 * queries), form.c (devices that this node can hear), learning.c, timeout.c, out.c (outputs), arm.c (both wheels),
 * key.c (keys), verdict.c (the evidence rule), gate.c (other nodes' devices), door.c (each state change that is
 * decided here). The inputs use door.c: intake.c, retained_intake.c and beat.c (messages), evidence.c (connections),
 * key_intake.c (keys), follow.c (other nodes' decisions), load.c (the store), due.c (time). Private to the core.
 */
#ifndef HW_MONITOR_PRIV_H
#define HW_MONITOR_PRIV_H

#include "hearing.h"
#include "heartwheel/monitor.h"
#include "learn.h"
#include "parents.h"
#include "sight.h"
#include "upstream.h"

#define HW_OUTS       1024                 /* outputs between two drains: at most 4 per message or batch element */
#define HW_ELEMENTS   128                  /* elements of batches that are applied between two drains */
#define HW_ARM_MAX_NS (3600 * HW_NS_PER_S) /* an online device is checked and refreshed at least once in this time */
/* The own_timeout_ms of a provisional device that has asked for the group's timeout. A timeout in the store is then
 * ignored. */
#define HW_OWN_TIMEOUT_OVER (-1)
#define HW_SEQ_MAX          ((UINT64_C(1) << 48) - 1)

/* Goodbyes that a bridge repeats, and copies of one heartbeat, arrive within this time. */
#define HW_AGAIN_NS (HW_NS_PER_S / 4)

/* A walk over all records, in chunks. */
struct hw_sweep {
	bool active;
	uint32_t at;
};

/* Two bits for each record. `found`: the present reading of the store has returned the record. `missing`: the store
 * has not returned the record since the store was replaced or emptied. `missing` stays set after the reading. If a
 * record is missing, the store's next value of it is accepted even if its seq is smaller. */
struct hw_reread {
	uint64_t *found;       /* owned; NULL: the store is not being read again */
	uint64_t *missing;     /* owned; NULL: no record is missing */
	bool other;            /* this is the first reading since the store was replaced or emptied */
	uint32_t n, n_missing; /* number of bits of `found`, and of `missing` */
	uint32_t at;           /* next index of the walk at the end of the reading */
};

/* Known facts about a group's form (form.h). */
struct hw_form {
	int64_t heard_ns;   /* group's seeing clock: if a device was last heard before this, it was heard in an
	                     * earlier form */
	bool learns;        /* the timeouts of its devices are learned (learning.h), by `rules` */
	bool other_windows; /* the last reload has changed the length of the rules' windows */
	uint64_t other;     /* another form in which a device of the group was last heard; 0: none is known */
	int64_t other_ns;   /* if a device was last heard before this time, its form is not known */
	int64_t silent_ns;  /* the silence of a device that was last heard before heard_ns begins here */
	int64_t timeout_ms, timeout_max_ms;         /* the longest timeouts of the group on other nodes; 0: unknown */
	int64_t was_timeout_ms, was_timeout_max_ms; /* values before heard_ns, for devices not heard since */
	int64_t heard_by_heirs_ns; /* If an heir may receive a device of this group, the device's silence begins
	                            * here: since then no heir was blind. */
	/* About devices that a heartbeat moved into this group from an earlier group of the file (HW_FORM_MOVED).
	 * moved_timeout_ms: the longest timeout of their old groups. If a device sends a heartbeat in this group
	 * after moved_until_ns (group's seeing clock), only the timeout of this group counts. */
	int64_t moved_timeout_ms, moved_until_ns;
	/* Partitions in which an online parent of this group has a child that proves the parent online
	 * (parent_peers.h). proven: found on this node by the last complete check. proven_found: found by the present
	 * check so far. proven_there: reported by other nodes. */
	struct hw_partitions proven, proven_found, proven_there;
	struct hw_learn_rules rules;
	bool other_there;           /* in this check: another node has the form `other` */
	bool unsure;                /* in this round: a value of the group's `while` is unknown */
	struct hw_mono blind_at;    /* since when the rounds below have found only this group blind; 0: the group is
	                             * not blind */
	uint32_t left_out;          /* number of unjudged devices without a record, in the last round */
	uint32_t unjudged, counted; /* number of unjudged devices: in the last round, and so far in this one */
	struct hw_group_judging is, found; /* see hw_monitor_judging(); is: of the last round; found: so far in this
	                                    * one */
};

/* Counts of devices that this node cannot judge. The devices are counted again and again, in rounds, while there may
 * be any. */
struct hw_unjudged {
	bool any;                 /* there may be such devices */
	bool differ;              /* other nodes have other groups; then `any` is true */
	bool blind;               /* in this round, a group is blind alone */
	bool resting;             /* in this round, a device is not judged because of its children */
	bool begun;               /* a round is in progress */
	uint32_t at, expected_at; /* the next record, and the next expected id, of this round */
	uint64_t rounds;
	uint32_t found;                    /* so far in this round, of every node */
	uint32_t n;                        /* of this node's devices, in the last round */
	struct hw_partitions in, found_in; /* partitions with unjudged devices: in the last round, and so far in this
	                                    * one */
	/* Partitions in which this node hears devices that no node has reported. heard_in: in the last round;
	 * found_heard: so far in this round; unstored_in: in both of the last two rounds. */
	struct hw_partitions heard_in, found_heard, unstored_in;
};

/* A device without a record here (left_out.h). */
struct hw_left_out_device {
	uint64_t hash; /* of its id, odd; 0: this slot is free */
	uint16_t group;
	uint8_t partition, state;
	bool found; /* since the present reading of the store began, the store has returned the device or
	             * hw_left_out_note() was called for it */
};

struct hw_left_out {
	struct hw_left_out_device *all; /* owned; `cap` slots, `n` of them in use */
	uint32_t n, cap;
	uint32_t in[HW_PARTITIONS];            /* how many of them are in each partition */
	struct hw_partitions more, more_found; /* partitions with more left-out devices than are remembered; and
	                                        * those found so since the present reading began */
	struct hw_mono next;                   /* the caller does not read the left-out devices again before this
	                                        * time */
	bool reads;                            /* the store is being read again for them */
};

/* The partitions that this node owns and decides for (gate.h). */
struct hw_gate {
	bool all;                                  /* this node decides for every partition */
	struct hw_partitions owned, authoritative; /* owned; decided for (a part of owned) */
	struct hw_partitions sole_writer;          /* owned, and decided for now or until the handover began */
	uint64_t epoch[HW_PARTITIONS];
	struct hw_sweep sweep; /* visits the devices in `swept`, to apply this node's decisions */
	struct hw_partitions swept;
	struct hw_partitions waiting; /* to be swept after `swept` */
	struct hw_reread reread;
};

/* A device that went offline while a parent was online. It waits for a heartbeat of that parent (parent_wait.c). */
struct hw_parent_wait {
	struct hw_ref device;
	int64_t since_ms; /* since_ms of the device's record at the transition; if it changes, the wait ends */
	int64_t mono_ms;
	int64_t heard_ms; /* of the device's last heartbeat */
};

/* What follows from the parents of devices. */
struct hw_family {
	bool any, proving, taking;    /* any: a group has parents; proving: a group has child_proves; taking: a group
	                               * has parent_death = take */
	uint32_t head, tail;          /* the queue of offline parents whose children go offline too; HW_NIL: the
	                               * queue is empty */
	int64_t goodbye_ms;           /* when the last goodbye of a parent was read */
	struct hw_parent_wait *waits; /* owned */
	uint32_t n_waits, waits_cap;
	/* The check of all parents and waits, once a second: when the check began, and the next element to check. */
	struct hw_mono checked;
	bool checking;
	uint32_t at_parent, at_wait, kept;
	bool counts, counted; /* counts: this check began after loading; counted: such a check was completed
	                       * (parent_peers.h) */
	uint64_t *peer_forms; /* owned: the forms of all groups of other nodes */
	size_t n_peer_forms;
	int64_t lacks_until_ns; /* until then (monitor's seeing clock), this node may lack a group that proves
	                         * parents on another node; INT64_MAX: it lacks one now */
};

/* The gaps between the heartbeats of each device, by the index of its record (learning.h). */
struct hw_learning {
	struct hw_gaps *gaps; /* owned; NULL: no group learns */
	uint32_t cap;
};

struct hw_monitor {
	struct hw_monitor_conf conf;
	struct hw_gate gate;
	struct hw_registry *registry;
	struct hw_expected *expected; /* unseen.c */
	struct hw_wheel wheel;
	struct hw_groups groups;
	struct hw_group_stats *group_stats; /* an element per group: groups.n of them */
	struct hw_form *form;               /* likewise */
	struct hw_learning learning;
	struct hw_unjudged unjudged;
	struct hw_left_out left_out;
	int64_t *offline_free_ns; /* for each group: when max_offline_rate allows the next transition, on the seeing
	                             clock */
	struct hw_sight sight;
	struct hw_hearing hearing;
	struct hw_upstream upstream;
	struct hw_blind key_blind; /* the seeing clock of keys */
	struct hw_wheel key_wheel; /* online devices whose key deadline is nearer than their heartbeat deadline */
	struct hw_queue suspects;  /* tag: the suspect is judged when this barrier is proven; tags never decrease
	                            * along the queue */
	struct hw_monitor_stats stats;
	struct hw_mono started;
	bool adopted; /* the retained statuses of the previous run are not adopted any more */

	struct {
		bool begun; /* contents of the last HW_OUT_BLIND */
		enum hw_cause cause;
		uint64_t period;      /* number of the period that it reported */
		struct hw_mono since; /* when that period began */
	} reported;
	/*
	 * The shortest timeout that a device has set for itself; INT64_MAX: none. Each time that a device is armed, at
	 * least once in HW_ARM_MAX_NS, its own timeout is compared with the shortest one of the current window. A
	 * window lasts HW_ARM_MAX_NS, and its shortest timeout counts until the end of the next window.
	 */
	struct {
		int64_t in_force_ms, noted_ms;
		int64_t until_ns; /* seeing clock: the window ends */
	} own_timeout;

	struct hw_sweep relink;   /* after a reload: deadlines that are earlier now */
	struct hw_sweep rearm;    /* after deafness: arms each device whose deadline is now earlier than its entry */
	struct hw_sweep settle;   /* after loading: the walk that gives each provisional device its state */
	uint32_t refresh_at;      /* next record to refresh in a blindness, paced */
	struct hw_mono refreshed; /* when the last chunk was due */
	int64_t within_was_ms;    /* how long a round of refreshes took before a reload; in force until `was_until`,
	                           * when old keys have expired */
	struct hw_mono was_until;
	struct hw_mono skips_from; /* after a reload, no refresh is skipped before this time: until then a key's life
	                            * may have been planned with the old timeouts */
	int64_t forget_was_ms, forget_once_was_ms; /* values before the reload that the relink sweep serves */

	struct {
		uint8_t key[16]; /* secret of the probe tags */
		int64_t free_ns; /* when probe_rate allows the next probe, on the seeing clock */
	} probe;

	struct {
		bool known;
		int64_t ms; /* hw_monitor_trust_wall() */
		struct hw_mono at;
	} wall;

	struct hw_mono stepped; /* the turn in which sight was last stepped */
	int64_t pace_ns;        /* between two steady barriers */
	unsigned outs_head, outs_n;
	struct hw_out outs[HW_OUTS];
	struct hw_parents parents;
	struct hw_family family;
	uint64_t peer_messages; /* at the end of the struct, so that the members for transitions share cache lines */
	struct {
		struct hw_mono at;
		struct hw_ref device;
	} again; /* again: the last goodbye with the retain flag that may be a repetition (retained_intake.c) */
	struct {
		bool lacks; /* at the last check, there was no room for another device, or one was refused since */
		int64_t since_ns; /* if a device was ever refused: since when there is room, on the seeing clock */
	} room;                   /* unseen.c */
};

/* Creates a record for an id in a group, in HW_STATE_PROVISIONAL, and counts it. Returns 0, or -ENOSPC or -ENOMEM,
 * which are counted as refused. */
int hw_monitor_add(struct hw_monitor *m, uint16_t group, const char *id, size_t len, uint32_t *i);

/* Called when a record was made: gives the device the timeout that the inventory has for it (unseen.c). */
void hw_unseen_added(struct hw_monitor *m, uint32_t device);
/* Called when there was no room for a record: the device was heard, so it is not called unseen until there is room. */
void hw_unseen_refused(struct hw_monitor *m, const char *id, size_t len);
bool hw_monitor_is_expected(const struct hw_monitor *m, const struct hw_device *d);

/* Called when a device is armed, with the timeout that it has set for itself (0: none). The shortest of these
 * timeouts limits the regular interval of barriers. */
void hw_monitor_note_own_timeout(struct hw_monitor *m, struct hw_now now, int64_t timeout_ms);

/* Grows the arrays that have an element per group to `n` elements. Returns 0 or -ENOMEM. */
int hw_monitor_fit_groups(struct hw_monitor *m, size_t n);
/* Starts a sweep over all records, because deadlines may have moved. */
void hw_monitor_begin_relink(struct hw_monitor *m);

/* Called when subscriptions may begin again: at a reload, and when the connection that reads the retained statuses is
 * lost. After the blindness of the start, the call ends the adoption of statuses, because retained statuses that arrive
 * later may be from another program. */
void hw_monitor_end_adoption(struct hw_monitor *m);
/* Reports that the retained status of the device on the topic of `group` is out of date. Only without a store. */
void hw_monitor_left_topic(struct hw_monitor *m, uint32_t i, uint16_t group);
void hw_monitor_move(struct hw_monitor *m, struct hw_now now, uint32_t i, uint16_t group);
static inline struct hw_seen hw_monitor_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->sight.blind, now.mono);
}

static inline struct hw_seen hw_monitor_group_seen(const struct hw_monitor *m, struct hw_now now, uint16_t group)
{
	return hw_hearing_seen(&m->hearing, group, hw_monitor_seen(m, now));
}

/* Returns a counter of the group's blind periods, which is stored with a goodbye. If the counter has another value
 * when the goodbye is judged, the group was blind meanwhile. */
static inline uint8_t hw_monitor_periods(const struct hw_monitor *m, uint16_t group)
{
	return (m->sight.blind.periods + m->hearing.group[group].blind.periods) & 0x3f;
}

static inline struct hw_seen hw_monitor_key_seen(const struct hw_monitor *m, struct hw_now now)
{
	return hw_blind_seen(&m->key_blind, now.mono);
}

/* hw_monitor_has_key(): whether a key of the device is known. hw_monitor_is_keyed(): whether the device is known
 * only by a key. Both are false if keys are not watched, because then only heartbeats count. */
static inline bool hw_monitor_has_key(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.key_group && (hw_device_source(d) & HW_SOURCE_KEY);
}

static inline bool hw_monitor_is_keyed(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.key_group && hw_device_source(d) == HW_SOURCE_KEY;
}

/* Whether an offline device returns only after several heartbeats. A device with a key returns at once, and so does
 * a device that is offline because its parents are. */
static inline bool hw_monitor_needs_several(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->groups.all[d->group]->online_after > 1 && !hw_monitor_has_key(m, d) &&
	       hw_device_reason(d) != HW_REASON_PARENT;
}

/* Returns the record at an index without a call to the registry: the wheel keeps the address of its array. */
static inline struct hw_device *hw_monitor_at(const struct hw_monitor *m, uint32_t i)
{
	return (struct hw_device *)(void *)m->wheel.nodes + i;
}

static inline uint32_t hw_monitor_index(const struct hw_monitor *m, const struct hw_device *d)
{
	return (uint32_t)(d - (const struct hw_device *)(const void *)m->wheel.nodes);
}

/* A cast into a bit-field does not silence -Wconversion, so the warning is off here. The caller checks the range. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
static inline void hw_device_set_heard_ms(struct hw_device *d, int64_t ms)
{
	d->last_heard_ms = ms;
}
#pragma GCC diagnostic pop

/* Whether a device in this state is offline or forgotten. The device's last_heard_ms is then on the wall clock. */
static inline bool hw_state_is_gone(enum hw_state state)
{
	return state == HW_STATE_OFFLINE || state == HW_STATE_FORGOTTEN;
}

static inline bool hw_gate_is_authoritative_for(const struct hw_monitor *m, const char *id, size_t len)
{
	return m->gate.all || hw_partitions_has(&m->gate.authoritative, hw_partition_of(id, len));
}

static inline bool hw_gate_is_authoritative(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->gate.all || hw_partitions_has(&m->gate.authoritative, hw_device_partition(d));
}

/* Whether only this node writes the devices of partition p. If so, this node's records are the newest: no other node
 * writes them, and a new master after a failover can only lack the newest values. Neither the stream nor the store
 * can then correct them. */
static inline bool hw_gate_is_sole_writer(const struct hw_monitor *m, unsigned p)
{
	return m->gate.all || hw_partitions_has(&m->gate.sole_writer, p);
}

static inline bool hw_gate_owns(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->gate.all || hw_partitions_has(&m->gate.owned, hw_device_partition(d));
}

/* Whether the store has not returned a record since the store was replaced or emptied. The device's owner may still
 * have to write the record, and a later owner may not know this. So the store's next value is accepted even if its seq
 * is smaller, because the value with the greater seq may be lost. */
static inline bool hw_gate_is_missing_in_store(const struct hw_monitor *m, uint32_t i)
{
	const struct hw_reread *r = &m->gate.reread;
	return i < r->n_missing && r->missing[i / 64] >> i % 64 & 1;
}

/*
 * Called when the store or the stream has returned a record with this seq, so the store has the record. But if only
 * this node writes the record, and this node's seq is greater, the record still counts as missing. This node may lose
 * the partition before it has written the greater seq.
 *
 * The node that wrote the record has also published the device's status. So the status is no longer pending, except
 * while another store is read for the first time.
 */
static inline void hw_gate_found_in_store(struct hw_monitor *m, uint32_t i, uint64_t seq)
{
	struct hw_reread *r = &m->gate.reread;
	const struct hw_device *d = hw_monitor_at(m, i);
	uint64_t bit = UINT64_C(1) << i % 64;
	if (i < r->n)
		r->found[i / 64] |= bit;
	if (!hw_gate_is_missing_in_store(m, i) || (seq < d->seq && hw_gate_is_sole_writer(m, hw_device_partition(d))))
		return;
	r->missing[i / 64] &= ~bit;
	if (!r->other)
		hw_monitor_at(m, i)->flags &= (uint16_t)~HW_FLAG_TOUCHED;
}

/* Whether a check may skip its refresh if the last check was less than a timeout ago. The keys must always live for
 * two more timeouts, so that a monitor that stops can restart in time. The default time to live, three timeouts,
 * leaves no room for skipping. */
static inline bool hw_monitor_skips_refreshes(const struct hw_monitor *m)
{
	return m->conf.ttl_factor >= 4;
}

/* Calls hw_hearing_judge() for a group. If the group has just become deaf, reports this. *wait_ns: as in
 * hw_hearing_judge(). */
enum hw_hearing_verdict hw_monitor_hears_group(struct hw_monitor *m, struct hw_now now, uint16_t group,
                                               struct hw_mono need, uint32_t online, int64_t *wait_ns);

/* Called when the values of the group's `while` topics may have changed. */
void hw_monitor_note_upstream(struct hw_monitor *m, struct hw_now now);

static inline bool hw_monitor_is_blind(const struct hw_monitor *m)
{
	return hw_blind_now(&m->sight.blind);
}

#endif
