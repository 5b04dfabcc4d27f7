/* SPDX-License-Identifier: MIT */
/*
 * The parts of the engine, for its own files. A file calls only those that are named before it:
 *
 * - base.c: time, texts, ids, events, what has changed
 * - device.c: devices, their links to parents, weights
 * - silence.c: silences, and which devices are silenced
 * - incident.c: members join and leave, incidents begin and end
 * - blind.c: the sight of nodes, incidents of blindness
 * - class.c: classes, and the incident to which a device belongs
 * - inputs.c, load.c: what is passed in
 * - news.c: the table of news
 * - message.c: receivers and messages
 * - changes.c: what must be written
 * - engine.c: the object, the configuration, hw_incidents_step()
 *
 * A pointer is owned if its comment says so; all others are borrowed.
 */
#ifndef HW_INCIDENTS_PRIV_H
#define HW_INCIDENTS_PRIV_H

#include "incident/due.h"
#include "incident/incidents.h"
#include "incident/match.h"
#include "incident/names.h"

#define HW_NEVER_WAITS (-1)

struct hw_incident;

struct hw_incident_group {
	struct hw_named named;
	struct hw_incident_group *next;
	uint64_t online, offline;                 /* a hint of heartwheeld; 0: unknown */
	struct hw_incident *mass, *unseen, *deaf; /* the open ones */
	int64_t unseen_at;                        /* when its last device became unseen */
	int64_t deaf_at;                          /* since when the group is known to be deaf; 0: it is not */
	struct hw_incident_device *window_first, *window_last; /* down devices by `class_since`, of mass_window */
	size_t n_window;
	char text[];
};

/* A device and one of its parents. Only a device that is offline or unseen has links to its parents. */
struct hw_link {
	struct hw_incident_device *parent, *child;
	struct hw_link *prev, *next; /* of the parent's children */
};

struct hw_incident_device {
	struct hw_named named;
	struct hw_incident_group *group; /* NULL: unknown */
	char *name, *labels;             /* owned; NULL: none */
	struct hw_link *parents;         /* owned; n_parents of them */
	struct hw_link *children;
	struct hw_incident *in, *stored;        /* its incident: now, and as changes were taken */
	struct hw_incident *own;                /* the open `device` incident that began with this device */
	struct hw_incident_device *next, *prev; /* members of its incident */
	struct hw_incident_device *window_next, *window_prev;
	struct hw_incident_device *changed_next;
	struct hw_silence *silenced; /* the silence that silences it, as of silence_epoch */
	struct hw_silence *planned;  /* the planned silence that covers its outage */
	int64_t planned_from_ms;
	int64_t since_ms;               /* wall clock of its last transition */
	int64_t class_since, class_end; /* class_end 0: none */
	int64_t seen_end;               /* the same end, in the time that its node saw */
	int64_t timeout_ms, weighed_ms;
	uint64_t seq;
	struct hw_due due;
	float weight;                 /* at weighed_ms */
	uint32_t silence_epoch, mask; /* mask: the receivers whose matcher it matches */
	uint8_t fact, class, n_parents, node;
	bool listed, changed, in_window;
	char text[];
};

/* What a receiver was sent last of an incident. */
struct hw_sent {
	int64_t at_ms;
	uint32_t count; /* members then */
	uint8_t last;   /* enum hw_news */
	bool acknowledged, flapping, changed;
};

struct hw_incident {
	struct hw_named named;
	char id[HW_INCIDENT_ID + 1], into[HW_INCIDENT_ID + 1];
	uint8_t kind, state;
	bool flapping, listed, acknowledged, changed, written; /* written: hw_incidents_change() has given it */
	bool dropped;                                          /* it never was one */
	bool reaped;                                           /* it is in `freed` */
	bool surveyed;                                         /* loud, loud_since and mask are right */
	struct hw_incident_group *group;
	char *device, *name, *labels, *cause, *ack_by, *note; /* owned; name: of the device, as it was last read */
	struct hw_incident *next, *prev;                      /* all in memory */
	struct hw_incident *changed_next;
	struct hw_incident *check_next;          /* to be compared with the receivers */
	bool checked;                            /* it is in that list */
	struct hw_incident *due_next, *due_prev; /* incidents with news */
	struct hw_incident_device *members;
	size_t n_stored; /* devices whose `stored` is this incident */
	int64_t since_ms, opened_ms, closed_ms, ack_ms;
	int64_t clear_from, small_from; /* since when no member is down, or few are; 0: no */
	uint32_t down, unreachable, most;
	uint32_t loud;           /* down members that are not silenced */
	int64_t loud_since;      /* the earliest class_since of these */
	uint32_t mask;           /* of the members that are not silenced */
	uint32_t due_mask;       /* receivers that have news */
	struct hw_due due;       /* closing */
	struct hw_due check_due; /* news that is due by time */
	struct hw_sent *sent;    /* owned; HW_INCIDENT_RECEIVERS elements; NULL: no receiver was sent anything yet */
};

struct hw_silence {
	struct hw_named named;
	struct hw_silence *next;
	struct hw_match *match;                /* owned; so are the texts */
	char *match_text, *reason, *by, *name; /* name: of a section; NULL: ad hoc */
	char id[HW_INCIDENT_ID + 1];
	int64_t at_ms, until_ms;
	bool until_online, planned, was_offline, in_force, changed, ended;
	int64_t begin_ms;   /* of the present time in force */
	int64_t quiet_from; /* until_online: since when no matching device has been offline; 0: one is offline, or
	                     * none was offline so far */
	size_t n_offline;   /* until_online: matched devices that are offline */
	struct hw_window windows[HW_INCIDENT_WINDOWS];
	size_t n_windows;
	bool utc;
};

struct hw_receiver {
	char *name;             /* owned; NULL: the slot is free */
	struct hw_match *match; /* owned */
	uint32_t kinds;
	int64_t interval_ms, notify_after_ms, remind_ms, from_ms;
	bool each, changed, kept;
	unsigned parallel, position;
	uint64_t n;         /* the last message's number */
	int64_t gather_end; /* 0: nothing is gathered */
	bool waits;         /* the remaining news must wait until a message was sent or a stream was read */
	unsigned n_sending;
	struct {
		uint64_t number;
		char id[HW_INCIDENT_ID + 1]; /* its incident; empty: several */
	} sending[HW_INCIDENT_PARALLEL];
};

/* An event that hw_incidents_change() has not returned yet. */
struct hw_incident_record {
	struct hw_incident_record *next;
	const char *what; /* static; "planned": of an outage */
	char id[HW_INCIDENT_ID + 1];
	char receiver[64];
	int64_t at_ms, from_ms, to_ms;
	const char *kind, *group; /* of "opened"; borrowed, never freed. NULL: none */
	char text[];              /* the text of `by`; for "opened" and "planned" the text of the device. After its
	                           * NUL, the silence */
};

struct hw_incident_node {
	char name[128];
	bool blind;
	int64_t since, blind_ms; /* since: begin of the present blindness; blind_ms: length of all earlier ones */
	int64_t reported;        /* when hw_incidents_sight() was last called for it, or when it was added */
};

struct hw_incidents {
	struct hw_incidents_conf conf; /* its lists are not kept */
	int64_t base_ms, now, wall_ms;
	uint64_t random;
	int failed; /* -ENOMEM: the engine is of no use */
	struct hw_names devices, groups, incidents, silences;
	struct hw_incident_group *all_groups;
	struct hw_incident *all;
	size_t n_open, n_links;
	uint64_t refused, bytes;
	struct hw_dues device_dues, incident_dues, check_dues; /* check_dues: news that are due by time */
	struct hw_incident *checks;                            /* to be compared with the receivers */
	struct hw_incident *due_first;                         /* with news */
	struct hw_incident_device *changed_devices;
	struct hw_incident *changed_incidents;
	struct hw_incident_record *records, **records_end;
	struct hw_incident_record *taken; /* given by hw_incidents_change() */
	struct hw_incident *freed;        /* to be freed at the next change */
	struct hw_receiver receivers[HW_INCIDENT_RECEIVERS];
	unsigned turn; /* the receiver whose turn it is */
	struct hw_message_news news[HW_INCIDENT_NEWS];
	struct hw_silence *sections, *adhoc,
		*gone; /* gone: those that have ended, until they are returned as changes */
	size_t n_adhoc;
	uint32_t silence_epoch;
	int64_t minute; /* minute of the wall clock for which the sections were last checked */
	bool rechecking;
	size_t recheck_at;
	struct hw_incident_node nodes[HW_INCIDENT_NODES];
	size_t n_nodes;
	struct hw_incident *blind_monitor, *blind_redis;
	int64_t sight_at, redis_at; /* sight_at: when a sight record was last renewed. redis_at: since when Redis cannot
	                               be reached; 0: it can */
	bool behind, loading;
	bool quiet; /* what is loaded is written already */
	/* hw_incidents_change() is at these. */
	struct hw_incident *writing;
	unsigned writing_slot;
	struct hw_incident_device *released;
	struct hw_silence *spent;
};

/* --- base.c ------------------------------------------------------------------------------------------------------- */

/* Sets the engine's time. Every public function with `now` calls it first. */
void hw_incidents_tick(struct hw_incidents *e, struct hw_now now);
/* Records that memory is missing, and returns -ENOMEM. */
int hw_incidents_fail(struct hw_incidents *e);
/* A copy, or NULL for NULL; records missing memory. */
char *hw_incidents_text(struct hw_incidents *e, const char *text);
/* Replaces a text by a copy of another one. Texts that are empty or NULL are stored as NULL. */
void hw_incidents_set_text(struct hw_incidents *e, char **to, const char *text);
/* Appends an event. `device` NULL: with `by`. */
struct hw_incident_record *hw_incidents_record(struct hw_incidents *e, const char *what, const char *id, const char *by,
                                               const char *silence);
uint64_t hw_incidents_draw(struct hw_incidents *e); /* a random number */
/* Writes a new id. */
void hw_incidents_new_id(struct hw_incidents *e, char id[HW_INCIDENT_ID + 1]);
/* The incident is compared with the receivers. */
void hw_incident_check(struct hw_incidents *e, struct hw_incident *i);
/* The same, and it is written. */
void hw_incident_changed(struct hw_incidents *e, struct hw_incident *i);
/* The membership of the device is written. */
void hw_device_changed(struct hw_incidents *e, struct hw_incident_device *d);

/* --- device.c ----------------------------------------------------------------------------------------------------- */

struct hw_incident_group *hw_incident_group(struct hw_incidents *e, const char *name); /* NULL: no memory, or no name */
struct hw_incident_device *hw_device_find(const struct hw_incidents *e, const char *id);
struct hw_incident_device *hw_device_get(struct hw_incidents *e, const char *id); /* NULL: no memory */
/* Frees the record if it is not needed; otherwise sets when the record is due. No call about the record may follow. */
void hw_device_settle_record(struct hw_incidents *e, struct hw_incident_device *d);
void hw_device_free(struct hw_incidents *e, struct hw_incident_device *d);
/* Sets the name of a device and of its own incident. */
void hw_device_name(struct hw_incidents *e, struct hw_incident_device *d, const char *name);
void hw_device_link(struct hw_incidents *e, struct hw_incident_device *d, const char *parents);
void hw_device_unlink(struct hw_incidents *e, struct hw_incident_device *d);
void hw_link_remove(struct hw_incidents *e, struct hw_link *l);
bool hw_device_is_away(const struct hw_incident_device *d);      /* offline or unseen */
bool hw_device_parents_away(const struct hw_incident_device *d); /* it has known parents, and all are away */
struct hw_incident_device *hw_device_latest_parent(const struct hw_incident_device *d); /* the one away last */
int64_t hw_device_settle_ms(const struct hw_incident_device *d);
double hw_device_weight(const struct hw_incidents *e, const struct hw_incident_device *d);
void hw_device_weigh(struct hw_incidents *e, struct hw_incident_device *d, int64_t at_ms);

/* --- silence.c ---------------------------------------------------------------------------------------------------- */

struct hw_silence *hw_silence_of(struct hw_incidents *e, struct hw_incident_device *d);
/* Called when a device became offline, or is no longer offline. Silences until online count the device. */
void hw_silence_offline(struct hw_incidents *e, struct hw_incident_device *d, bool offline);
/* Called when data that matchers compare may have changed. Determines again which silence and which receivers match
 * the device and its children. */
void hw_silence_refresh(struct hw_incidents *e, struct hw_incident_device *d);
/* Determines which planned silence covers the device's outage. If another planned silence covered the outage before, or
 * none covers it now, records the part of the outage that the earlier silence covered. `ends`: the outage is over. */
void hw_silence_plan(struct hw_incidents *e, struct hw_incident_device *d, bool ends);
int hw_silence_configure(struct hw_incidents *e, const struct hw_incidents_conf *conf);
void hw_silence_step(struct hw_incidents *e);
/* Visits devices after the silences in force have changed. Returns whether devices are left to visit. */
bool hw_silence_recheck(struct hw_incidents *e);
int64_t hw_silence_due(const struct hw_incidents *e);
void hw_silence_free(struct hw_silence *s);
void hw_silence_view(const struct hw_silence *s, struct hw_silence_view *v);

/* --- incident.c --------------------------------------------------------------------------------------------------- */

/* Creates an incident that is not written yet. NULL if there is no memory. `device` and `cause` may be NULL. */
struct hw_incident *hw_incident_new(struct hw_incidents *e, enum hw_incident_kind kind, struct hw_incident_group *group,
                                    const char *device, const char *cause);
struct hw_incident *hw_incident_open(struct hw_incidents *e, enum hw_incident_kind kind,
                                     struct hw_incident_group *group, const char *device, const char *cause);
void hw_incident_join(struct hw_incidents *e, struct hw_incident *i, struct hw_incident_device *d);
void hw_incident_leave(struct hw_incidents *e, struct hw_incident_device *d);
void hw_incident_end(struct hw_incidents *e, struct hw_incident *i, enum hw_incident_state state,
                     const struct hw_incident *into); /* its members have left */
void hw_incident_drop(struct hw_incidents *e, struct hw_incident *i);
bool hw_incident_is_known(const struct hw_incident *i); /* some receiver was sent something */
bool hw_incident_is_over(const struct hw_incident *i);  /* no receiver waits for its end */
void hw_incident_survey(struct hw_incidents *e, struct hw_incident *i);
/* Removes an incident that is no longer needed from the engine. No call about the incident may follow. */
void hw_incident_reap(struct hw_incidents *e, struct hw_incident *i);
void hw_incident_free(struct hw_incident *i);
void hw_incident_view(const struct hw_incident *i, struct hw_incident_view *v);

/* --- class.c ------------------------------------------------------------------------------------------------------ */

void hw_class_begin(struct hw_incidents *e, struct hw_incident_device *d,
                    int64_t wait_ms);                                    /* it is offline or unseen */
void hw_class_end(struct hw_incidents *e, struct hw_incident_device *d); /* it is so no longer */
void hw_class_heard(struct hw_incidents *e, struct hw_incident_device *d, int64_t settle_ms);
/* Makes an unreachable device whose parent has returned down after `settle`. */
void hw_class_settle(struct hw_incidents *e, struct hw_incident_device *d);
/* hw_class_parent_away(): the parent is now offline or unseen. Each child without an online parent becomes
 * unreachable, unless the child's own incident was sent to a receiver already.
 *
 * hw_class_parent_back(): the parent is online again. Its unreachable children are judged again after `settle`. */
void hw_class_parent_away(struct hw_incidents *e, struct hw_incident_device *parent);
void hw_class_parent_back(struct hw_incidents *e, struct hw_incident_device *parent);
/* Fills the windows of the groups after a load. The devices that became down within mass_window count for a mass
 * incident, and join an open one, as if there had been no load. */
void hw_class_load_windows(struct hw_incidents *e);
/* Gives a member the place that its class demands. */
void hw_class_place(struct hw_incidents *e, struct hw_incident_device *d);
/* Closes the incident if it is over; otherwise sets when to check again. */
void hw_class_check_end(struct hw_incidents *e, struct hw_incident *i);
void hw_class_flaps(struct hw_incidents *e, struct hw_incident_device *d); /* its weight has changed */
void hw_class_device_due(struct hw_incidents *e, struct hw_incident_device *d);

/* --- news.c, message.c -------------------------------------------------------------------------------------------- */

/* Returns the news about an incident for a receiver. If there are none now, but there may be some later without a
 * change, sets *when to that time. */
enum hw_news hw_news_of(struct hw_incidents *e, struct hw_incident *i, unsigned receiver, int64_t *when);
/* Compares an incident with all receivers. */
void hw_news_check(struct hw_incidents *e, struct hw_incident *i);
struct hw_sent *hw_news_sent(struct hw_incidents *e, struct hw_incident *i); /* NULL: no memory */
uint32_t hw_receiver_mask(const struct hw_incidents *e, const struct hw_incident_device *d);
int hw_receiver_configure(struct hw_incidents *e, const struct hw_incidents_conf *conf);
int64_t hw_message_due(const struct hw_incidents *e);

/* --- blind.c ------------------------------------------------------------------------------------------------------ */

void hw_blind_step(struct hw_incidents *e);
int64_t hw_blind_due(const struct hw_incidents *e);
unsigned hw_blind_node(struct hw_incidents *e, const char *name); /* HW_INCIDENT_NODES: unknown */
/* Returns for how long a node has seen the fleet. The returned time stands still while the node is blind. */
int64_t hw_blind_seen(const struct hw_incidents *e, unsigned node);

#endif
