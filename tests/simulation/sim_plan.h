/* SPDX-License-Identifier: MIT */
/* The plan of a run, which the seed determines: the fleet's traits, the monitor's configuration, the length, and
 * every trouble. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/monitor.h"

struct sim;

#define SIM_GROUPS_MAX   2
#define SIM_TROUBLES_MAX 24

enum sim_trouble_kind {
	SIM_BROKER_STANDS,  /* SIGSTOP of the broker */
	SIM_BROKER_RESTART, /* the broker publishes the wills, closes the connections, and ends */
	SIM_BROKER_DIES,
	SIM_HOST_STANDS, /* SIGSTOP of the monitor */
	SIM_HOST_SLEEPS, /* its machine is suspended */
	SIM_HOST_DIES,
	SIM_NET_CUT, /* between the two */
	SIM_PUBLISHER_LOST,
	SIM_RIGHT_LOST,   /* a group's filters are granted but deliver nothing, because its rights were taken or its
	                   * subscription is broken */
	SIM_SOCKETS_SLOW, /* the broker is overloaded: incoming packets wait */
	SIM_PIPES_SLOW,   /* ... what goes out waits */
	SIM_STORE_AWAY,
	SIM_WALL_STEP,
	SIM_STORE_EMPTIED,                 /* ... while it runs */
	SIM_STORE_ROLLED_BACK,             /* the store cannot be reached, and then has the content of an earlier
	                                    * time */
	SIM_STORE_FULL,                    /* it answers, and writes nothing */
	SIM_STORE_HALF,                    /* ... every other time */
	SIM_FORGET,                        /* an operator forgets a device */
	SIM_READER_STANDS,                 /* one of the monitor's readers stands still, but not its loop */
	SIM_TWICE_DELIVERED,               /* the messages of devices are delivered more than once */
	SIM_RELOAD,                        /* timeouts, and the hold of goodbyes, differ for a while */
	SIM_BROKER_PAUSES,                 /* ... for tenths of a second, again and again */
	SIM_TROUBLES_DRAWN,                /* those from here on are drawn apart */
	SIM_READS_ON = SIM_TROUBLES_DRAWN, /* the broker pauses, and then reads on in the same turn while statuses
	                                    * are published again */
	SIM_BARRIERS_LOST,                 /* the connection of barriers carries nothing any more, and stays open */
	SIM_BRIDGE_AWAY, /* the bridge of a group is away: no message of the group arrives, and the bridge reports
	                  * itself as away */
	SIM_TROUBLE_KINDS
};

struct sim_trouble {
	enum sim_trouble_kind kind;
	int64_t at, length_ns;
	int64_t arg;
	bool taken; /* it could begin */
};

struct sim_plan {
	uint32_t devices, readers, groups;
	int64_t timeout_ns[SIM_GROUPS_MAX];
	int64_t timeout_was_ns[SIM_GROUPS_MAX]; /* before the last reload; 0: there was none */
	bool no_canary[SIM_GROUPS_MAX];
	unsigned online_after[SIM_GROUPS_MAX];
	bool parent;                 /* the first device is the parent of all */
	bool batch[SIM_GROUPS_MAX];  /* its devices are behind gateways */
	bool bridge[SIM_GROUPS_MAX]; /* the group comes through a bridge, and names the topic of the bridge's state
	                              * (`while`) */
	uint32_t gateways;           /* number of gateways in each of these groups, if there are enough devices */
	bool learns;                 /* there is one group, which learns timeouts; its devices have all kinds of
	                              * traffic in turn */
	bool reloaded;
	int64_t interval_ns; /* 0: drawn for each device */
	double jitter, loss, lossy_share, wills, sleepers;
	int64_t delay_max_ns;         /* of a device's network */
	int64_t delay_ns, service_ns; /* of the monitor's network; of the broker for a packet */
	int64_t backoff_max_ns;
	bool takeover_wills, replays;
	bool reads_whole; /* the broker takes all waiting packets of a socket at once */
	bool tight;       /* devices beat little more than once a timeout */
	bool sparse;      /* a run of years: the publisher is away most of the time, so that barriers do not fill the
	                   * run */
	size_t pipe_bound, buffer_bound;
	unsigned budget;
	int64_t tick_ns, load_pace_ns;
	int64_t trouble_ns, calm_ns; /* how long troubles may occur; the quiet time after that */
	struct hw_monitor_conf conf;
	int64_t goodbye_delay_ms, goodbye_delay_was_ms; /* ... before the last reload */
	unsigned troubles;
	struct sim_trouble trouble[SIM_TROUBLES_MAX];
	double deaths;    /* a device's, in the time of troubles */
	double net_share; /* the share of deaths in which the device only loses its network */
};

/* Draws the plan from s->random. */
void sim_plan_draw(struct sim *s);
/* The plan of the seed, with minutes as its length, deaths, and four troubles, all of one kind. */
void sim_plan_of_one_kind(struct sim *s, enum sim_trouble_kind kind);
/* No trouble: `devices` that send each second and lose `loss` of their heartbeats; a timeout of `timeout_ms`, for
 * `length_ns`. */
void sim_plan_steady(struct sim *s, uint32_t devices, double loss, int64_t timeout_ms, int64_t length_ns);
/* Devices of twelve kinds of traffic in a group that learns its timeouts; deaths, and `troubles` that make it blind. */
void sim_plan_learning(struct sim *s, uint32_t devices, int64_t length_ns, unsigned troubles);
#define SIM_DAY_NS         (INT64_C(86400) * HW_NS_PER_S)
#define SIM_TIMEOUT_MIN_MS 20000
#define SIM_TIMEOUT_MAX_MS 86400000
#define SIM_MISTAKES_A_DAY 4
/* Turns all groups into groups of batches, with `devices` devices in all, on a fast broker and network. Their lists
 * have more elements than the core takes at once. */
void sim_plan_gateways(struct sim *s, uint32_t devices, uint32_t gateways);
/* Fills in the groups' specifications; returns their number. */
size_t sim_plan_groups(const struct sim *s, struct hw_group_spec groups[SIM_GROUPS_MAX]);
/* Plans the troubles and the devices' deaths as events. */
void sim_plan_begin(struct sim *s);

void sim_trouble_begin(struct sim *s, uint32_t k);
void sim_trouble_end(struct sim *s, uint32_t k);
const char *sim_trouble_name(enum sim_trouble_kind kind);

#endif
