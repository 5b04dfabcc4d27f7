/* SPDX-License-Identifier: MIT */
/*
 * The simulation of incidents: the real engine (src/incident) in virtual time, with models of everything around it.
 *
 *   incident_fleet   devices with parents, what fails, and what heartwheeld writes about it (wait_ms, parent_heard)
 *   incident_host    heartwheel-alert: reads with a lag, commits, sends, crashes, starts again; Redis; the receivers
 *   incident_oracle  the five invariants, checked by what the receivers got and what truly failed
 *
 * The seed determines the whole run. There are troubles until `quiet_from`. After that nothing changes, and at the end
 * each receiver must know what is true.
 */
#ifndef INCIDENT_WORLD_H
#define INCIDENT_WORLD_H

#include <stdio.h>

#include "incident/incidents.h"
#include "incident/match.h"
#include "sim_random.h"

#define IW_DEVICES   40
#define IW_GROUPS    3
#define IW_RECEIVERS 3
#define IW_SILENCES  200
#define IW_INCIDENTS 16384
#define IW_ENTRIES   60000
#define IW_TICK_MS   1000
#define IW_BEGIN_MS  INT64_C(1790000000000)
#define IW_NODE      "n1"

/* What the host does wrong on purpose. The oracle must find each of these. */
enum iw_lie {
	IW_HONEST,
	IW_LIE_SWALLOW,  /* an end counts as sent, and is not sent */
	IW_LIE_RENUMBER, /* a message is repeated with another number */
	IW_LIE_FORGET,   /* a start does not load what was sent */
	IW_LIE_WAIT,     /* wait_ms is not passed on */
	IW_LIE_PARENT,   /* no parent is passed on */
	IW_LIE_SILENCE,  /* the end of a silence is not passed on */
	IW_LIE_PHANTOM,  /* a device that is online is reported offline */
	IW_LIE_CALM,     /* flapping is off */
	IW_LIE_BLIND,    /* device:sight is not passed on */
	IW_LIES
};

struct iw_device {
	char id[16], group[8], labels[24], parents_text[64];
	unsigned n_parents, parents[2];
	int64_t timeout, interval, phase;
	bool faulty;     /* the device has a fault of its own */
	bool sends;      /* the device has no fault, and has no parents or a parent that sends */
	int64_t back_at; /* when the device's last fault ends, or ended; 0: it had none */
	int64_t flap_until, flap_half;
	/* What heartwheeld knows. */
	bool expected; /* never heard yet, and expected */
	bool offline, unseen;
	int64_t last_seen; /* when it was last heard, on the clock of the time in which heartwheeld saw */
	int64_t returned;  /* of a parent: when it returned, or ended a long silence, in that time */
	uint64_t seq;
	int64_t since_ms;
	bool waits;      /* a parent_heard will be written for it */
	int64_t wait_ms; /* the wait_ms of its last entry */
	/* For the oracle. */
	bool listed;         /* away since the first start of heartwheel-alert, so it need not be sent */
	int64_t own_fault;   /* when the device last had a fault of its own */
	int64_t was_offline; /* when it was last offline or unseen */
	int64_t brief;       /* when the device last sent again after a time that was too short to be called offline */
	int64_t failed_at;   /* when the device last stopped sending */
	unsigned openings;   /* messages of its own in the present half */
};

struct iw_entry {
	unsigned device;
	bool heard; /* the entry is one of device:parent_heard, and not of device:events */
	enum hw_incident_fact fact;
	int64_t at, time_ms, wait_ms, settle_ms;
	uint64_t seq;
};

/* An incident in Redis, and what each receiver got of it. */
struct iw_incident {
	struct hw_incident_view view; /* its texts are none of these */
	char group[16], device[24], cause[24], labels[64];
	bool acknowledged;
	bool exists;
	struct iw_stored_sent {
		bool is, acknowledged, flapping;
		enum hw_news last;
		uint32_t count;
		int64_t at_ms;
	} sent[IW_RECEIVERS];
	struct iw_got {
		bool opened, ended, flapping;
		enum hw_news last;
		int64_t at;
	} got[IW_RECEIVERS];
};

struct iw_member {
	char incident[HW_INCIDENT_ID + 1]; /* empty: none */
	enum hw_incident_class class;
	int64_t since_ms;
	uint64_t seq;
};

#define IW_MESSAGES 8
struct iw_message {
	bool is, delivered; /* delivered: the server has it, whether or not the host knows */
	uint64_t number;
	size_t n;
	char each[HW_INCIDENT_ID + 1];
	struct {
		enum hw_news what;
		char id[HW_INCIDENT_ID + 1], device[24];
		enum hw_incident_kind kind;
	} news[HW_INCIDENT_NEWS];
	int64_t retry_at;
	unsigned tries;
};

struct iw_redis {
	struct iw_incident incidents[IW_INCIDENTS];
	size_t n_incidents;
	struct iw_member members[IW_DEVICES];
	struct hw_silence_view silences[IW_SILENCES];
	char silence_match[IW_SILENCES][48];
	size_t n_silences;
	uint64_t numbers[IW_RECEIVERS];
	int64_t from_ms[IW_RECEIVERS];
	bool receiver_is[IW_RECEIVERS];
	struct iw_message sending[IW_RECEIVERS][IW_MESSAGES];
	size_t offset; /* the offset that was committed last: the number of entries */
	bool holder;   /* a commit has succeeded */
	uint64_t planned;
};

struct iw_count {
	uint64_t entries, opened, ends, messages, repeated, restarts, commits_lost, silences, merged, flapping, planned;
};

struct iw_world {
	uint64_t seed;
	struct sim_random random;
	enum iw_lie lie;
	FILE *trace, *tell;
	unsigned breaches;
	struct iw_count count;
	int64_t now, quiet_from, end;
	/* the plan */
	unsigned n_devices, n_gateways, n_receivers;
	struct hw_incidents_conf conf;
	struct hw_receiver_conf receivers[IW_RECEIVERS];
	struct hw_silence_conf section;
	struct hw_window window;
	bool has_section;
	double fault_rate;
	bool restarts, blindness, lags, silences, failing, unseen;
	/* heartwheeld */
	struct iw_device devices[IW_DEVICES];
	bool blind, blind_told;
	int64_t blind_until, blind_ms, blind_since;
	int64_t redis_until, marks_until;
	int64_t emptied_at; /* Redis is emptied then, and heartwheel-alert starts as for the first time. 0: never */
	struct iw_entry entries[IW_ENTRIES];
	size_t n_entries;
	/* the host */
	struct hw_incidents *engine;
	size_t read;        /* number of entries that the engine has read */
	int64_t down_until; /* no instance runs before this time */
	int64_t lag_until;  /* the streams are not read before this time */
	int64_t server_until[IW_RECEIVERS];
	uint64_t taken[IW_RECEIVERS]; /* the highest number that the server has */
	struct iw_redis redis;
	bool finished[IW_RECEIVERS]
		     [IW_MESSAGES]; /* the message was accepted or given up, and this is not committed yet */
};

void iw_init(struct iw_world *w, uint64_t seed);
/* Runs to the end, and frees the engine. */
void iw_run(struct iw_world *w);
const char *iw_lie_name(enum iw_lie lie);

/* incident_fleet.c */
void iw_plan(struct iw_world *w);
void iw_fleet_tick(struct iw_world *w);
bool iw_parents_away(const struct iw_world *w, const struct iw_device *d);
bool iw_is_away(const struct iw_device *d);

/* incident_host.c */
void iw_host_start(struct iw_world *w);
void iw_host_tick(struct iw_world *w);
struct iw_incident *iw_find(struct iw_world *w, const char *id);
struct hw_now iw_now(const struct iw_world *w);

/* incident_oracle.c */
void iw_got(struct iw_world *w, unsigned receiver, const struct iw_message *m);
void iw_oracle_tick(struct iw_world *w);
void iw_oracle_end(struct iw_world *w);
__attribute__((format(printf, 2, 3))) void iw_breach(struct iw_world *w, const char *format, ...);
__attribute__((format(printf, 2, 3))) void iw_trace(struct iw_world *w, const char *format, ...);

#endif
