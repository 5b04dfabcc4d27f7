/* SPDX-License-Identifier: MIT */
/*
 * The incidents of a fleet: to which fault a device belongs, and which news each receiver gets. Pure: no socket, clock,
 * log or thread. The caller passes in what it reads, and takes out changes and messages:
 *
 * - hw_incidents_entry(), hw_incidents_parent_heard() and others: for each entry that was read, up to 1,000
 * - while (hw_incidents_step(e, now)): after that, and at hw_incidents_due()
 * - while (hw_incidents_message(e, now, &message)): renders each message
 * - while (hw_incidents_change(e, &change)): writes all changes and the offsets in one script
 * - when the script has succeeded, sends the messages; hw_incidents_done() when one has ended
 *
 * The rule: heartwheel may suppress a notification, but it always shows the truth. An offline device is in an incident,
 * or its class shows why it is not in one yet:
 *
 * - pending: a parent may be the cause; in no incident
 * - unreachable: all its known parents are offline or unseen, or a parent has just returned; in the incident of the
 *   parent that became offline last, or in none until that parent has one
 * - down: in all other cases; it is in exactly one incident. A down device stays down until it returns, or until all
 *   its parents are offline and no receiver has been sent its incident
 *
 * Messages are not queued. The engine compares what a receiver was sent last with the incident; the difference is the
 * receiver's news. So the state is limited, however long a receiver fails.
 *
 * Time: `now.mono` is BOOTTIME, which is not changed when the clock is set. All waits use it. The engine's own times
 * are the wall clock at hw_incidents_new() plus the BOOTTIME since then.
 *
 * Cost: an entry takes constant time, plus time for the children of its device and for the silences. The memory depends
 * on `max_incidents`, on the constants below, and on the number of certain devices: those that are offline, have
 * offline children, or have a weight over 1/16. README has the bytes for each.
 *
 * If there is no memory, a function returns -ENOMEM, and the engine cannot be used any more: the caller ends without a
 * commit, and its next run continues from the last commit.
 */
#ifndef HW_INCIDENTS_H
#define HW_INCIDENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/time.h"
#include "incident/window.h"

#define HW_INCIDENT_ID        12  /* characters: 9 of the time, base 36, and 3 random ones */
#define HW_INCIDENT_RECEIVERS 32  /* a bit of a mask each */
#define HW_INCIDENT_PARALLEL  8   /* messages of a receiver that are being sent */
#define HW_INCIDENT_NEWS      100 /* in a message; the rest is counted */
#define HW_INCIDENT_PARENTS   4   /* of a device */
/* A device with more ancestors than this, or whose parents form a circle, loses its newest parent. */
#define HW_INCIDENT_ANCESTORS 64
#define HW_INCIDENT_SILENCES  1000 /* without those of the file */
#define HW_INCIDENT_SECTIONS  100  /* [silence] sections */
#define HW_INCIDENT_WINDOWS   16   /* of a section */
#define HW_INCIDENT_NODES     64   /* a further node takes the place of one that is no longer reported */
#define HW_INCIDENT_STEP      1000 /* the most devices and incidents that one call of hw_incidents_step() visits */
#define HW_INCIDENT_WAIT_MORE 10000
#define HW_INCIDENT_BEHIND                                                                                             \
	5000 /* less than WAIT_MORE, so that no wait for a parent ends before the parent's entry is read */
#define HW_INCIDENT_SETTLE 60000
#define HW_INCIDENT_GROWN  60000
#define HW_INCIDENT_SMALL  300000 /* a mass incident that has become small ends after this time */
/* Devices that become unseen share an incident if the pauses between them are at most this long. */
#define HW_INCIDENT_UNSEEN     60000
#define HW_INCIDENT_NOTICE     3600000 /* a notice about a task that no receiver takes is dropped after this time */
#define HW_INCIDENT_RETURNED   60000   /* a silence until online ends this long after the last return */
#define HW_INCIDENT_UNTIL_MAX  INT64_C(31622400000) /* a silence ends within a year */
#define HW_INCIDENT_ONLINE_MAX INT64_C(2592000000)  /* one until online alone: within 30 days */
#define HW_INCIDENT_TEXT       1024 /* bytes of a sentence, a note, a reason or an author, with the NUL */

enum hw_incident_kind {
	HW_INCIDENT_DEVICE,
	HW_INCIDENT_MASS,
	HW_INCIDENT_BLIND,
	HW_INCIDENT_UNSEEN_KIND,
	HW_INCIDENT_TASK,
	HW_INCIDENT_KINDS
};

enum hw_incident_state { HW_INCIDENT_OPEN, HW_INCIDENT_CLOSED, HW_INCIDENT_MERGED };

/* The state of a device in an entry of device:events. */
enum hw_incident_fact { HW_FACT_ONLINE, HW_FACT_OFFLINE, HW_FACT_UNSEEN, HW_FACT_FORGOTTEN };

enum hw_incident_class { HW_CLASS_NONE, HW_CLASS_PENDING, HW_CLASS_UNREACHABLE, HW_CLASS_DOWN };

/* The news that a receiver was last sent about an incident, or will be sent. */
enum hw_news {
	HW_NEWS_NONE,
	HW_NEWS_OPENED,
	HW_NEWS_FLAPPING,
	HW_NEWS_STEADY,
	HW_NEWS_ACKNOWLEDGED,
	HW_NEWS_GROWN,
	HW_NEWS_REMINDER,
	HW_NEWS_CLOSED,
	HW_NEWS_MERGED,
	HW_NEWS_KINDS
};

/* Names as in monitor.conf, Redis and JSON; never NULL. */
const char *hw_incident_kind_name(enum hw_incident_kind k);
const char *hw_incident_state_name(enum hw_incident_state s);
const char *hw_incident_class_name(enum hw_incident_class c);
const char *hw_news_name(enum hw_news n);
/* The inverse: 0 and *out, or -EINVAL. */
int hw_incident_kind_parse(const char *name, enum hw_incident_kind *out);
int hw_incident_state_parse(const char *name, enum hw_incident_state *out);
int hw_incident_class_parse(const char *name, enum hw_incident_class *out);
int hw_news_parse(const char *name, enum hw_news *out);

/* --- the configuration -------------------------------------------------------------------------------------------- */

struct hw_receiver_conf {
	const char *name;
	const char *match; /* lines as in match.h; NULL: all devices */
	uint32_t kinds;    /* a bit for each kind: 1 << enum hw_incident_kind */
	int64_t interval_ms, notify_after_ms, remind_ms;
	bool each;         /* a message has one news; otherwise it has all news that are due */
	unsigned parallel; /* for an `each` receiver: the most messages at a time, never two about one incident; 1 to
	                    * HW_INCIDENT_PARALLEL */
};

struct hw_silence_conf {
	const char *name, *match, *reason;
	const struct hw_window *windows;
	size_t n_windows;
	bool utc;
};

struct hw_incidents_conf {
	int64_t clear_after_ms;
	unsigned mass, mass_share; /* mass 0: off; mass_share in per cent */
	int64_t mass_window_ms;
	unsigned flap_start, flap_end; /* flap_start 0: off */
	int64_t flap_half_ms;
	int64_t blind_after_ms; /* 0: off */
	bool no_redis;          /* the state is in a file */
	size_t max_incidents;   /* the most open incidents; at this number, further devices of each group share one */
	size_t news_most;       /* the most news in a message, the next message has the rest; 0: no limit */
	hw_window_clock *clock; /* NULL: hw_window_libc() */
	uint64_t seed;          /* of the random characters of ids */
	const struct hw_receiver_conf *receivers;
	size_t n_receivers;
	const struct hw_silence_conf *silences;
	size_t n_silences;
};

struct hw_incidents; /* opaque */

/* Copies the configuration. Returns NULL if there is no memory, or if hw_incidents_configure() would refuse it. */
struct hw_incidents *hw_incidents_new(const struct hw_incidents_conf *conf, struct hw_now now);
void hw_incidents_free(struct hw_incidents *e);
/* Applies a reload of the configuration. Returns 0, -EINVAL (too many receivers or sections, or a wrong matcher) or
 * -ENOMEM. After -EINVAL nothing has changed. A receiver is identified by its name; a new one gets only the news of
 * later incidents. */
int hw_incidents_configure(struct hw_incidents *e, struct hw_now now, const struct hw_incidents_conf *conf);

/* --- the state after a start: incidents, then sent, devices, members, silences, receivers, and hw_incidents_loaded() -
 */

struct hw_incident_view; /* below */

/* Loads an incident of device:incidents. The incident is open, or a receiver has not been sent its end yet. The texts
 * are copied. */
int hw_incidents_load(struct hw_incidents *e, const struct hw_incident_view *v);
/* A field `to:RECEIVER`. Unknown receivers are ignored. */
int hw_incidents_load_sent(struct hw_incidents *e, const char *incident, const char *receiver, enum hw_news last,
                           bool acknowledged, bool flapping, uint32_t count, int64_t at_ms);
/* Loads a receiver's hash. `from_ms` 0: unknown. If messages were being sent, hw_incidents_load_sending() is called
 * for each. */
int hw_incidents_load_receiver(struct hw_incidents *e, const char *receiver, uint64_t n, int64_t from_ms);
/* Loads a message that is being sent. `incident`: for an `each` receiver, the incident of the message; else NULL. */
int hw_incidents_load_sending(struct hw_incidents *e, const char *receiver, uint64_t number, const char *incident);

struct hw_incident_entry; /* below */
/* Loads a device that is in device:offline or device:unseen now. `wait_ms`: the timeout of its parent, to which
 * `settle` is added; -1: the device does not wait. */
int hw_incidents_load_device(struct hw_incidents *e, const struct hw_incident_entry *entry);
/* Whether the device is offline or unseen. */
bool hw_incidents_is_away(const struct hw_incidents *e, const char *device);
/* Loads a member of an incident. If the device is not loaded, it has returned, and leaves the incident. `seq`: of the
 * entry with which the device's outage began; 0: unknown. If the device's last entry has another seq, the outage is a
 * new one, and is classified. */
int hw_incidents_load_member(struct hw_incidents *e, const char *incident, const char *device,
                             enum hw_incident_class class, int64_t since_ms, uint64_t seq);
/* Loads a transition of the last four `flap_half`, which only the device's weight needs. */
int hw_incidents_recall(struct hw_incidents *e, const char *device, int64_t time_ms);
/* Called when everything is loaded, also the groups, because their sizes decide whether there is a mass incident.
 * Classifies devices without an incident. `first`: nothing was stored before. In this case, the incidents of devices
 * that are offline now are only listed: neither their begin nor their end is sent. */
int hw_incidents_loaded(struct hw_incidents *e, struct hw_now now, bool first);
/* Called when Redis was emptied or failed over. hw_incidents_change() returns everything again. */
void hw_incidents_rewrite(struct hw_incidents *e);

/* --- what is read ------------------------------------------------------------------------------------------------- */

struct hw_incident_entry {
	const char *id;
	const char *group, *labels, *node; /* NULL: unknown. Labels as in match.h */
	const char *name;                  /* NULL: none */
	const char *parents;               /* ids of the known parents, separated by newlines; NULL: none */
	enum hw_incident_fact fact;
	int64_t time_ms;             /* wall clock of the transition */
	int64_t timeout_ms, wait_ms; /* -1: not in the entry */
	uint64_t seq;
};

/* Applies an entry of device:events. Skips an entry with a known seq. Returns 0 or -ENOMEM. */
int hw_incidents_entry(struct hw_incidents *e, struct hw_now now, const struct hw_incident_entry *entry);
/* Applies an entry of device:parent_heard. Ignores it unless it is about the device's last transition. */
void hw_incidents_parent_heard(struct hw_incidents *e, struct hw_now now, const char *id, uint64_t seq,
                               int64_t settle_ms);
/* device:sight: a node has become blind, or sees again. */
void hw_incidents_sight(struct hw_incidents *e, struct hw_now now, const char *node, bool blind);
/* Applies the data of a group in device:groups. `deaf_since_ms` 0: not deaf. Returns 0 or -ENOMEM. */
int hw_incidents_group(struct hw_incidents *e, struct hw_now now, const char *group, uint64_t online, uint64_t offline,
                       int64_t deaf_since_ms);
/* Called when a monitor has renewed its sight record in device:monitor. */
void hw_incidents_sight_renewed(struct hw_incidents *e, struct hw_now now);
/* Called when Redis answers again (`up`), or no longer does. */
void hw_incidents_redis(struct hw_incidents *e, struct hw_now now, bool up);
/* Sets whether the oldest unread entry of a stream is older than HW_INCIDENT_BEHIND. If so, only news of blindness
 * are sent. */
void hw_incidents_behind(struct hw_incidents *e, bool behind);
/* Opens a notice that a task of the device has failed or expired. A notice has no end. `text` is its sentence. */
int hw_incidents_task(struct hw_incidents *e, struct hw_now now, const char *device, const char *group,
                      const char *text);

/* --- what operators do -------------------------------------------------------------------------------------------- */

/* Acknowledges an incident. `on` false removes the acknowledgement. Returns 0, -ENOENT, or -EEXIST if the incident
 * is closed. */
int hw_incidents_acknowledge(struct hw_incidents *e, struct hw_now now, const char *incident, bool on, const char *by,
                             const char *note);

struct hw_silence_view {
	char id[HW_INCIDENT_ID + 1]; /* of a section: empty, and `reason` begins with its name */
	const char *match, *reason, *by;
	int64_t until_ms;                        /* 0: none */
	bool until_online, planned, was_offline; /* was_offline: a device that matches was offline since the silence
	                                          * began */
	int64_t at_ms;
};

/* Begins a silence and sets its id. If `id` is empty, the silence gets a new id. A silence that was loaded keeps its id
 * and `at_ms`. Returns 0, -EINVAL (no end, an end that is too late, or a wrong matcher), -ENOSPC or -ENOMEM. */
int hw_incidents_silence(struct hw_incidents *e, struct hw_now now, struct hw_silence_view *s);
/* 0 or -ENOENT. */
int hw_incidents_unsilence(struct hw_incidents *e, struct hw_now now, const char *id);

/* --- what follows ------------------------------------------------------------------------------------------------- */

/* Does the work that is due, with at most HW_INCIDENT_STEP visits. Returns whether more work is due; the caller then
 * calls the function again before it takes messages. */
bool hw_incidents_step(struct hw_incidents *e, struct hw_now now);
/* Returns when to call hw_incidents_step() and hw_incidents_message() if nothing else happens. */
struct hw_mono hw_incidents_due(const struct hw_incidents *e);

/* An incident as it is shown and stored. A text that is missing is NULL. The texts are borrowed until the next call
 * that changes the engine. */
struct hw_incident_view {
	char id[HW_INCIDENT_ID + 1], into[HW_INCIDENT_ID + 1];
	enum hw_incident_kind kind;
	enum hw_incident_state state;
	bool flapping, listed, acknowledged;        /* listed: opened by the first start, so it is never sent */
	const char *group, *device, *name, *labels; /* name: of the device */
	const char *cause;                          /* blind: monitor, deaf or redis; task: its sentence */
	int64_t since_ms; /* since_ms: when the fault began; opened_ms: when the incident was opened */
	int64_t opened_ms, closed_ms;
	/* most: the most devices that were down at a time; for kind device: that were unreachable at a time */
	uint32_t down, unreachable, most, silenced;
	uint64_t online,
		offline; /* devices of the group, by a hint of heartwheeld that is up to 2 s old; 0, 0: unknown */
	const char *ack_by, *note;
	int64_t ack_ms;
};

struct hw_message_news {
	enum hw_news what;
	struct hw_incident_view incident;
};

struct hw_incident_message {
	unsigned receiver; /* its position in the configuration */
	const char *name;
	uint64_t number; /* Idempotency-Key: NAME-NUMBER */
	int64_t time_ms;
	size_t n;
	const struct hw_message_news *news; /* until the next call that changes the engine */
	uint64_t more[HW_NEWS_KINDS];       /* news beyond HW_INCIDENT_NEWS */
};

/* Returns the next message to send. Its news count as sent from now on. The caller sends it after the commit, with the
 * same key and content until it is accepted or given up. Returns false if there is none. */
bool hw_incidents_message(struct hw_incidents *e, struct hw_now now, struct hw_incident_message *out);
/* Returns the number of news of a message, with those beyond HW_INCIDENT_NEWS. */
size_t hw_incidents_message_news(const struct hw_incident_message *m);
/* The message was taken, or is given up. */
void hw_incidents_done(struct hw_incidents *e, struct hw_now now, const char *receiver, uint64_t number);

enum hw_change_kind {
	HW_CHANGE_INCIDENT, /* write `incident`, and move it to the sorted set of its state */
	HW_CHANGE_DROPPED,  /* delete `id`: its members have moved to other incidents, and no receiver needs it */
	HW_CHANGE_SENT,     /* field `to:RECEIVER` of `id` */
	HW_CHANGE_JOINED,   /* write `device` to the members of `id` */
	HW_CHANGE_LEFT,     /* remove `device` from the members of `id` */
	HW_CHANGE_RECEIVER, /* write `number` and `from_ms` of `receiver` */
	HW_CHANGE_SILENCE,  /* write `silence` */
	HW_CHANGE_UNSILENCE,
	HW_CHANGE_EVENT,  /* append `what` to device:incident_events, with `id`, `by` and `receiver`; for "opened"
	                   * also with `incident_kind`, `group`, `device` */
	HW_CHANGE_PLANNED /* append `device from_ms to_ms silence` there */
};

struct hw_change {
	enum hw_change_kind kind;
	const char *id; /* of the incident or the silence */
	struct hw_incident_view incident;
	struct hw_silence_view silence;
	const char *device, *receiver, *what, *by, *incident_kind, *group;
	enum hw_incident_class class;
	bool unseen; /* of a down member: its class is shown as "unseen" */
	int64_t since_ms, from_ms, to_ms, at_ms;
	uint64_t seq, number;
	enum hw_news last;
	bool acknowledged, flapping; /* of SENT: what the receiver knows */
	uint32_t count;
};

/* Sets *out to the next change that is not stored yet, or returns false if there is none. The caller must store all
 * changes up to that point, in this order: only then is the stored state the present one. The texts in *out are valid
 * until the next call. */
bool hw_incidents_change(struct hw_incidents *e, struct hw_change *out);

/* --- queries ------------------------------------------------------------------------------------------------------ */

/* Calls `each` for the incidents in memory, until it returns false. */
void hw_incidents_list(struct hw_incidents *e, bool (*each)(void *arg, const struct hw_incident_view *v), void *arg);
bool hw_incidents_find(struct hw_incidents *e, const char *id, struct hw_incident_view *out);
/* Writes up to `max` ids of members that are not silenced, those that are down first. Returns how many. */
size_t hw_incidents_members(struct hw_incidents *e, const char *incident, const char **ids, size_t max);
/* Returns the class of a device, and sets *incident to the id of its incident, or NULL. */
enum hw_incident_class hw_incidents_class(const struct hw_incidents *e, const char *device, const char **incident);
/* The weight of a device at the time of the last call. */
double hw_incidents_weight(const struct hw_incidents *e, const char *device);
/* A silence, as hw_incidents_silences() passes it to `each` until `each` returns false. The silences of the
 * configuration's sections come first. Their `id` is empty, and `name` is the section's name; the others have `name`
 * NULL. */
struct hw_silence_state {
	const char *name;
	bool in_force;
};
void hw_incidents_silences(const struct hw_incidents *e,
                           bool (*each)(void *arg, const struct hw_silence_view *v, const struct hw_silence_state *s),
                           void *arg);
bool hw_incidents_is_silenced(struct hw_incidents *e, const char *device);
/* Returns the parent of an offline device that went offline last, if all its known parents are offline; otherwise
 * NULL. */
const char *hw_incidents_parent(const struct hw_incidents *e, const char *device);
/* The name of a device; NULL: none. */
const char *hw_incidents_name(const struct hw_incidents *e, const char *device);

struct hw_incidents_count {
	uint64_t devices, links, incidents, open, refused, bytes; /* refused: how many devices share an incident
	                                                           * because there was no room for more incidents */
};
struct hw_incidents_count hw_incidents_count(const struct hw_incidents *e);

/*
 * Writes the sentence about an incident, as the page, top, the status and every message show it: "gateway ga is offline
 * since 14:39:16: 25 devices behind it are unreachable". Returns `buf`.
 */
const char *hw_incident_sentence(const struct hw_incident_view *v, hw_window_clock *clock, char *buf, size_t cap);

#endif
