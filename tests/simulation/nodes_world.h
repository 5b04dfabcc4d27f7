/* SPDX-License-Identifier: MIT */
/*
 * Several nodes in a world of their own: two to five hosts, each with the real src/nodes, its own clocks, pauses and
 * cuts, around Redis instances that fail over and a broker with sessions. Everything comes from one seed. Time goes in
 * steps of 20 ms; within a step the order of all that happens is drawn.
 *
 *   nodes_redis    a Redis: members, owners, states, stream; as 10.2 to 10.4 say what its scripts do
 *   nodes_broker   a broker: a session a client id, retained presences and statuses, wills, readers
 *   nodes_host     what a daemon does with src/nodes and with devices: the gate (what is decided, written, published)
 *   nodes_trouble  what a seed says that goes wrong, and when
 *   nodes_oracle   what must never follow from it (10.11), told by the truth and by what passed over the wires alone
 */
#ifndef NODES_WORLD_H
#define NODES_WORLD_H

#include <stdio.h>

#include "nodes/claims.h"
#include "nodes/nodes.h"
#include "nodes/place.h"
#include "sim_random.h"

#define NW_HOSTS     5
#define NW_DEVICES   16
#define NW_INSTANCES 8
#define NW_SNAPSHOTS 32
#define NW_STEP_NS   (20 * HW_NS_PER_MS)
#define NW_KEPT      64

enum nw_state { NW_NONE, NW_ONLINE, NW_OFFLINE };

/* --- wires ------------------------------------------------------------------------------------------------------ */

enum nw_what {
	NW_ORDER,    /* to Redis: an order of src/nodes */
	NW_EDGES,    /* ... a transition */
	NW_LOAD,     /* ... everything, for a load */
	NW_FOLLOW,   /* ... the stream from `number` on */
	NW_ANSWER,   /* from Redis */
	NW_CONNECT,  /* to the broker: a session of the publisher */
	NW_PRESENCE, /* ... and from it, to a reader; `body`: struct nw_presence */
	NW_BARRIER,  /* ... likewise */
	NW_STATUS,   /* to the broker */
	NW_EVICT,    /* ... over a connection of its own */
	NW_CONNACK,  /* from the broker */
	NW_PUBACK,   /* ... of the presence or status of `number` */
	NW_CLOSED,   /* ... the publisher's connection */
	NW_REFUSED,  /* ... an eviction */
	NW_SUBACK,   /* to a reader */
	NW_BEAT      /* to a reader: device `device` */
};

struct nw_msg {
	int64_t at;
	enum nw_what what;
	uint64_t conn; /* connection or session */
	uint64_t number;
	int device;
	int instance;
	enum nw_state state;
	struct hw_token token;
	void *body; /* owned */
};

struct nw_wire {
	struct nw_msg *ring; /* owned */
	size_t head, n, cap;
	int64_t last; /* nothing arrives before what was sent before it */
};

enum nw_wires { NW_TO_REDIS, NW_FROM_REDIS, NW_TO_BROKER, NW_FROM_BROKER, NW_READ, NW_TO_EVICT, NW_WIRES };

/* --- Redis ------------------------------------------------------------------------------------------------------ */

struct nw_entry {
	int device;
	enum nw_state state;
	struct hw_token token;
	uint64_t seq;
};

struct nw_stored {
	enum nw_state state;
	uint64_t seq;
	struct hw_token token;
};

struct nw_member {
	bool there, ready;
	uint64_t run, count;
};

/* What one instance holds, but for its entries. */
struct nw_data {
	struct nw_member member[NW_HOSTS]; /* by name */
	struct hw_record owner[HW_PARTITIONS];
	uint64_t version; /* of the owners */
	struct nw_stored device[NW_DEVICES];
	size_t n_entries;
	unsigned stream; /* which: a place of one says nothing of another */
};

struct nw_redis {
	bool up;
	struct nw_data d;
	struct nw_entry *entry; /* owned */
	size_t cap;
	struct hw_token most[HW_PARTITIONS]; /* the oracle's: the greatest token accepted */
};

/* What Redis answers; `members` in the order of names. */
struct nw_answer {
	enum nw_what of;
	struct hw_nodes_answer nodes;
	struct hw_member_entry member[NW_HOSTS];
	struct hw_record owner[HW_PARTITIONS];
	int result; /* of an edge: enum nw_written */
	struct nw_stored stored[NW_DEVICES];
	unsigned stream;
	size_t last; /* the stream's length */
	size_t n_entries;
	struct nw_entry entry[64];
};

enum nw_written { NW_WRITTEN, NW_NEWER, NW_FENCED };

/* An order on its way to Redis, with what it carries. */
struct nw_order {
	struct hw_nodes_order o;
	struct hw_token token[HW_PARTITIONS];
	struct hw_record expected[HW_PARTITIONS];
	bool full; /* nothing was told over this connection yet: owners are answered whole */
};

/* --- the broker ------------------------------------------------------------------------------------------------- */

struct nw_presence {
	int name;
	int refs;
	bool online;
	uint64_t claims[HW_PARTITIONS];
	struct hw_token known[HW_PARTITIONS];
};

struct nw_broker {
	uint64_t session[NW_HOSTS];             /* by name; 0: none */
	int host_of[NW_HOSTS];                  /* whose it is */
	int64_t lapse[NW_HOSTS];                /* its host cannot be reached since then; INT64_MAX: it can */
	struct nw_presence *presence[NW_HOSTS]; /* retained */
	uint64_t reader[NW_HOSTS];              /* by host; 0: not subscribed */
	struct nw_stored retained[NW_DEVICES];
	struct hw_token most[HW_PARTITIONS]; /* the oracle's: of the statuses passed on in this life */
	int64_t stopped_until;
	uint64_t ids;
	struct nw_msg *held; /* heartbeats that wait while it is stopped */
	size_t n_held, cap_held;
};

/* --- hosts ------------------------------------------------------------------------------------------------------ */

struct nw_edge {
	enum nw_state state;
	uint64_t seq;
	struct hw_token token;
	int64_t made, confirmed; /* the host's time; 0: not confirmed */
	bool asked;
};

/* A device as a host has it. */
struct nw_record {
	int64_t heard;       /* host's time of the last heartbeat read; 0: never */
	enum nw_state state; /* of the stream, or of our own edges behind it */
	uint64_t seq;
	struct nw_edge edge[NW_KEPT]; /* unconfirmed, and confirmed ones that are kept */
	int n_edges;
	bool owed; /* its status */
	int64_t owed_since;
	uint64_t said; /* the number of the status that is out; 0: none */
};

struct nw_host {
	int index, name;
	bool alive;
	uint64_t run;
	struct hw_nodes *n; /* owned */
	double drift;
	int64_t mono_off, wall_off; /* its clocks against the world's */
	int64_t paused_until, cut_redis, cut_broker, starts_at;
	bool froze; /* paused between check and write */
	struct nw_wire wire[NW_WIRES], sent[NW_WIRES];

	int instance; /* of Redis it is connected to; -1: none */
	uint64_t conn;
	int64_t redis_asked; /* the oldest unanswered request; 0: none */
	int redis_waiting;
	int64_t leave_at, redial_at;
	uint64_t version_told; /* of the owners, by this connection's instance */
	bool told, loaded, following;
	size_t followed;
	unsigned stream;
	int64_t follow_next;

	uint64_t session, dialing; /* of the publisher */
	uint64_t reader;           /* its subscription */
	bool reads;                /* which was acknowledged */
	int64_t dial_at, read_at, dialed;
	uint64_t numbers;          /* of messages and barriers */
	uint64_t barrier;          /* the last sent; its number is its host's time */
	int64_t barrier_next, out; /* a barrier is out since then; 0: none is */
	int64_t proven;            /* what was sent before this moment, by the host's clock, has been read */
	int64_t due;
	bool poked;
	int64_t lossy_end; /* silence counts from then */
	int64_t stepped;
	bool stopping;
	int64_t stop_by;

	struct nw_record device[NW_DEVICES];
	struct hw_partitions waits;   /* won, the stream not followed that far yet */
	struct hw_partitions compare; /* of them, those whose devices are compared with the store then */
	struct hw_partitions drained;
	size_t waits_for;
};

/* --- the world -------------------------------------------------------------------------------------------------- */

enum nw_trouble {
	NW_PAUSE,
	NW_CUT_REDIS,
	NW_CUT_BROKER,
	NW_CUT_BOTH,
	NW_CRASH,
	NW_ROLL, /* a clean stop, and a start */
	NW_DROP, /* the publisher's connection */
	NW_DROP_READER,
	NW_FAILOVER,
	NW_FLUSH,
	NW_REDIS_STANDS,
	NW_BROKER_STANDS,
	NW_BROKER_RESTART,
	NW_CLOCK,
	NW_TROUBLES
};

/* What the wiring or a store does wrong on purpose. */
enum nw_lie {
	NW_NO_LIE,
	NW_LIE_EVICT,        /* nobody is cut off at the broker, but said to be */
	NW_LIE_BARRIER,      /* a barrier counts as back when it is asked for */
	NW_LIE_ACK,          /* a presence counts as acknowledged when it is handed over; barriers overtake it */
	NW_LIE_CONFIRM,      /* a session needs no renewal */
	NW_LIE_YIELD,        /* a greater token on the broker is not yielded to */
	NW_LIE_KNOWN,        /* presences do not say the greatest tokens known */
	NW_LIE_WILL,         /* ... a will replaces what was known */
	NW_LIE_KNOWN_EPOCHS, /* ... or without their nodes */
	NW_LIE_EPOCH,        /* Redis does not compare tokens */
	NW_LIE_TWICE,        /* an edge to the stored state is written again */
	NW_LIE_COUNT,        /* a removal does not compare run and count */
	NW_LIE_KEPT,         /* confirmed edges are not sent again to a new master */
	NW_LIE_RESTORE,      /* a renewal does not store our tokens again */
	NW_LIE_FOLLOW,       /* what was won is decided before the stream was followed to its place */
	NW_LIE_UNCLEAN,      /* after an unclean end nothing is owed again */
	NW_LIE_FLUSHED,      /* a drained partition counts as settled at once */
	NW_LIE_CLAIM,        /* a claim compares no record */
	NW_LIE_GONE,         /* who was removed goes on */
	NW_LIE_GATE,         /* a watcher's verdicts are announced */
	NW_LIE_FENCE,        /* statuses go out without asking the fence */
	NW_LIE_JOIN,         /* joining replaces another run of the same name */
	NW_LIE_SILENT,       /* nobody is ever removed */
	NW_LIE_RELEASE,      /* a release is not written */
	NW_LIES
};

struct nw_plan {
	int hosts;
	bool standby, wills, denied, namesake;
	int64_t lease_ms, timeout_ms, keepalive_ms, lag_ms;
	int64_t trouble_ns, calm_ns;
	double rate[NW_TROUBLES]; /* a second, for each host or the world */
	double turns;             /* deaths and returns a second */
	int devices;
};

struct nw_life {
	bool alive;
	int64_t since, next_beat;
	int64_t interval;
};

struct nw_grant {
	unsigned p;
	struct hw_token token;
	uint64_t run;
};

/* An edge that a host was told is written. */
struct nw_edge_seen {
	int device, host;
	uint64_t seq;
	struct hw_token token;
	int64_t confirmed, lost, forgotten; /* lost: the master has no entry of it since then; INT64_MAX: never */
	int64_t owed;                       /* its host is connected to the present master since then; 0: it is not */
};

struct nw_count {
	uint64_t takeovers, evictions, removals, handovers, entries, statuses, fenced, failovers, deaths, kept;
};

struct nw_world {
	struct sim_random random;
	uint64_t seed;
	int64_t t, trouble_end; /* ns */
	int64_t last_event;     /* the last trouble began or ended then */
	int64_t owners_moved;
	enum nw_lie lie;
	struct nw_plan plan;
	struct nw_host host[NW_HOSTS];
	struct nw_redis redis[NW_INSTANCES];
	int master, instances;
	int64_t redis_stands;
	struct nw_data snapshot[NW_SNAPSHOTS];
	int64_t snapshot_at[NW_SNAPSHOTS];
	int snapshots;
	struct nw_broker broker;
	struct nw_life device[NW_DEVICES];
	unsigned part[NW_DEVICES];
	int64_t heard[NW_HOSTS][NW_DEVICES]; /* the oracle's: when its process took a heartbeat from the wire */
	int64_t subscribed[NW_HOSTS];
	int64_t unowned[HW_PARTITIONS]; /* since then; 0: owned */
	int64_t good_since;             /* some node could have taken over since then; INT64_MAX: none could */
	struct nw_grant *grant;
	size_t n_grants, cap_grants;
	struct nw_edge_seen *seen;
	size_t n_seen, cap_seen;
	struct nw_count count;
	unsigned breaches;
	char breach[160];
	FILE *trace, *tell;
};

extern const char *const nw_names[NW_HOSTS];

/* The seed's plan; change it before nw_run(), if another is wanted. */
void nw_init(struct nw_world *w, uint64_t seed);
void nw_run(struct nw_world *w);
void nw_fini(struct nw_world *w);

void nw_breach(struct nw_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nw_trace(struct nw_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* wires */
struct nw_msg *nw_wire_push(struct nw_wire *wire, struct nw_msg msg);
struct nw_msg nw_wire_pop(struct nw_wire *wire);
void nw_wire_clear(struct nw_wire *wire);
void nw_msg_fini(struct nw_msg *msg);
/* Sends it over the host's wire: it arrives after a drawn while. */
void nw_send(struct nw_world *w, struct nw_host *h, enum nw_wires wire, struct nw_msg msg);
void *nw_alloc(size_t size);

/* Redis */
void nw_redis_serve(struct nw_world *w, struct nw_host *h, struct nw_msg *msg);
void nw_redis_snapshot(struct nw_world *w);
void nw_redis_failover(struct nw_world *w);
void nw_redis_flush(struct nw_world *w);

/* the broker */
void nw_broker_serve(struct nw_world *w, struct nw_host *h, struct nw_msg *msg);
void nw_broker_beat(struct nw_world *w, int device);
void nw_broker_step(struct nw_world *w);
void nw_broker_subscribe(struct nw_world *w, struct nw_host *h);
void nw_broker_end(struct nw_world *w, int name, bool will);
void nw_broker_restart(struct nw_world *w, bool keeps);
bool nw_broker_reachable(const struct nw_world *w, const struct nw_host *h);
void nw_presence_unref(struct nw_presence *p);

/* hosts */
void nw_host_start(struct nw_world *w, struct nw_host *h);
void nw_host_end(struct nw_world *w, struct nw_host *h);
void nw_host_step(struct nw_world *w, struct nw_host *h);
void nw_host_relink(struct nw_world *w, struct nw_host *h);
void nw_host_lose_session(struct nw_world *w, struct nw_host *h);
void nw_host_lose_reader(struct nw_world *w, struct nw_host *h);
struct hw_now nw_host_now(const struct nw_world *w, const struct nw_host *h);
bool nw_host_acts(const struct nw_world *w, const struct nw_host *h);
/* gate */
void nw_gate_work(struct nw_world *w, struct nw_host *h);
void nw_gate_answer(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg);
void nw_gate_entries(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg);
void nw_gate_load(struct nw_world *w, struct nw_host *h, const struct nw_answer *a);
void nw_gate_own(struct nw_world *w, struct nw_host *h, const struct hw_nodes_order *o);
void nw_gate_lose(struct nw_world *w, struct nw_host *h, const struct hw_partitions *set);
void nw_gate_acked(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg);
void nw_gate_relinked(struct nw_world *w, struct nw_host *h);
void nw_gate_session(struct nw_world *w, struct nw_host *h);

/* trouble */
void nw_plan_draw(struct nw_world *w);
/* One kind of trouble alone, and often. */
void nw_plan_only(struct nw_world *w, enum nw_trouble k);
/* All of it, often, with three nodes and devices that turn often: for lies. */
void nw_plan_harsh(struct nw_world *w);
void nw_trouble_step(struct nw_world *w);
const char *nw_trouble_name(enum nw_trouble k);
const char *nw_lie_name(enum nw_lie k);

/* the oracle */
void nw_oracle_accepts(struct nw_world *w, int instance, unsigned p, const struct hw_token *t);
void nw_oracle_entry(struct nw_world *w, int instance, const struct nw_entry *e);
void nw_oracle_grants(struct nw_world *w, unsigned p, const struct hw_token *t, uint64_t run);
void nw_oracle_status(struct nw_world *w, int device, const struct hw_token *t);
void nw_oracle_offline(struct nw_world *w, struct nw_host *h, int device);
void nw_oracle_moves(struct nw_world *w, struct nw_host *h, const char *what);
void nw_oracle_confirms(struct nw_world *w, struct nw_host *h, const struct nw_msg *msg);
void nw_oracle_forgets(struct nw_world *w, struct nw_host *h, int device);
void nw_oracle_connects(struct nw_world *w, struct nw_host *h);
void nw_oracle_failover(struct nw_world *w);
void nw_oracle_flush(struct nw_world *w);
void nw_oracle_step(struct nw_world *w);
void nw_oracle_end(struct nw_world *w);

#endif
