/* SPDX-License-Identifier: MIT */
/*
 * Several nodes in a simulated world: two to five hosts, each with the real daemon's wiring (src/daemon) around the
 * real core and the real src/nodes. Each host has its own clocks, pauses and cuts. Around them are Redis instances that
 * fail over, and a broker with sessions. Everything comes from one seed. Time advances in steps of 20 ms; within a step
 * the order of events is random.
 *
 *   nodes_redis    a Redis: members, owners, hashes, P, sight records, stream; with the effects of the scripts
 *   nodes_broker   a broker: one session for each client id, retained messages, wills, readers
 *   nodes_fleet    devices: they send heartbeats and goodbyes, die, and come back
 *   nodes_host     a process and its loop: starts, timers, pauses, the end
 *   nodes_mqtt     replaces src/mqtt: readers, publisher, evictions
 *   nodes_sink     replaces the sink of src/redis: transitions, refreshes, loads, the sight record
 *   nodes_tail     replaces the follower of src/redis; nodes_link replaces src/link for cluster_redis.c
 *   nodes_absent   replaces what this world does not have: clients, hooks, keys
 *   nodes_trouble  which troubles a seed has, and when; nodes_scenes: planned troubles
 *   nodes_oracle   what must never happen, judged by the truth and by what was sent
 */
#ifndef NODES_WORLD_H
#define NODES_WORLD_H

#include <stdio.h>

#include "daemon/cluster/cluster_priv.h"
#include "daemon/context.h"
#include "nodes/claims.h"
#include "nodes/nodes.h"
#include "nodes/place.h"
#include "sim_random.h"

#define NW_HOSTS         5
#define NW_DEVICES       16
#define NW_CHILDREN      5
#define NW_INSTANCES     8
#define NW_SNAPSHOTS     32
#define NW_STEP_NS       (20 * HW_NS_PER_MS)
#define NW_WALL_MS       INT64_C(1700000000000)
#define NW_ENTRY         1024
#define NW_TROUBLE_STEPS 5 /* trouble may begin each so many steps */

/* --- wires ------------------------------------------------------------------------------------------------------ */

/* A message from or to the broker. Shared: `refs` counts its users. */
struct nw_text {
	int refs;
	int name, device; /* name: the node of a presence, or of known tokens. device: the device of a status or
	                   * heartbeat. -1: none */
	enum { NW_BEAT, NW_GOODBYE, NW_STATUS, NW_PRESENCE, NW_KNOWN, NW_CANARY } kind;
	bool genuine; /* of a goodbye: the device has stopped */
	size_t topic_len, len;
	char bytes[]; /* topic, payload, each with a NUL */
};

enum nw_what {
	NW_HELLO,     /* to Redis: a connection is made */
	NW_ORDER,     /* ... an order of src/nodes */
	NW_SHOUT,     /* ... a message for the nodes' channel */
	NW_CALL,      /* ... of the sink: struct nw_call */
	NW_LOAD,      /* ... of the sink: the hashes of devices from `number` on: struct nw_hashes */
	NW_DEVICE,    /* ... of the sink: the hash of the device `number`: struct nw_hashes */
	NW_OUTBOX,    /* ... of the sink: the outbox */
	NW_MARK,      /* ... of the sink: writes its sight record, and reports the one that was there: struct nw_mark */
	NW_LOOK,      /* ... of the sink: reads its sight record */
	NW_PUBLISHED, /* ... of the sink: writes P of a partition: struct nw_published */
	NW_PUBLISHED_ALL, /* ... of the sink: reads P of each partition: struct nw_published_all */
	NW_RANGE,         /* ... of the tail: struct nw_range */
	NW_BLOCK,         /* ... of the tail: Redis answers as soon as it has an entry after that offset */
	NW_CONNECT,       /* to the broker: the publisher begins a session */
	NW_PUBLISH,       /* ... the publisher publishes `text` */
	NW_BARRIER,       /* ... a barrier; also from the broker to a reader */
	NW_EVICT, /* ... an eviction, over its own connection; `text`: what it publishes in place of the evicted node */
	NW_SUBSCRIBE, /* ... a reader subscribes */
	NW_REPLAY,    /* ... a reader requests the retained messages again */
	NW_CONNACK,   /* from the broker */
	NW_PUBACK,    /* ... acknowledges the message whose number is `number` */
	NW_CLOSED,    /* ... the connection was closed */
	NW_EVICTED,   /* ... the eviction of `number` is done, or was refused */
	NW_REFUSED,
	NW_SUBACK,   /* to a reader */
	NW_REPLAYED, /* to a reader */
	NW_MESSAGE,  /* to a reader: `text` */
	NW_STALL     /* the reader's thread woke too late; `number`: the time at which it should have woken */
};

struct nw_msg {
	int64_t at;
	enum nw_what what;
	uint64_t conn; /* connection or session */
	uint64_t number, mark;
	int instance, name;
	bool retained;
	struct nw_text *text; /* a reference */
	void *body;           /* owned */
};

struct nw_wire {
	struct nw_msg *ring; /* owned */
	size_t head, n, cap;
	int64_t last; /* nothing arrives before an earlier message */
};

/* Connections to Redis: each has two wires of its own. */
enum nw_links { NW_L_SINK, NW_L_CLUSTER, NW_L_TAIL, NW_L_HEAR, NW_LINKS };

enum nw_wires {
	NW_TO_REDIS,
	NW_FROM_REDIS = NW_TO_REDIS + NW_LINKS,
	NW_TO_BROKER = NW_FROM_REDIS + NW_LINKS,
	NW_FROM_BROKER,
	NW_TO_BARRIERS, /* the connection with the messages that a node sends to itself */
	NW_FROM_BARRIERS,
	NW_TO_READER,
	NW_READ,
	NW_TO_EVICT,
	NW_FROM_EVICT,
	NW_WIRES
};

/* --- Redis ------------------------------------------------------------------------------------------------------ */

struct nw_entry {
	struct hw_stream_id at;
	int device;
	enum hw_state state;
	enum hw_reason reason;
	int64_t time_ms, last_seen_ms;
	struct hw_fencing_token token;
	uint64_t seq;
	bool has_form;
	uint64_t form;
};

struct nw_hash {
	bool there, once;
	enum hw_state state;
	enum hw_reason reason;
	uint64_t seq;
	int64_t since_ms, last_seen_ms, own_timeout_ms;
	char gaps[HW_GAPS_TEXT];       /* "": none */
	struct hw_fencing_token token; /* epoch and node */
	uint64_t form;                 /* 0: as it was */
	bool entry_has_form;
};

struct nw_member {
	bool there, ready;
	uint64_t run, count;
	bool left; /* the member has left; Redis keeps its name for an hour, and no run of a seed is longer than that */
	struct hw_partitions unable;
	char entry[NW_ENTRY]; /* the JSON in which the node reports its groups */
	int64_t renewed;      /* for the oracle: when the node last joined or renewed */
	int64_t joined;       /* for the oracle: when the node first joined at this Redis */
};

struct nw_mark {
	bool there, left; /* left: another run has the name, so nothing was written */
	bool anew;        /* the record is written even if Redis has none */
	uint64_t run;
	int64_t ms;
};

/* P of a partition; all of them. UINT64_MAX: none. */
struct nw_published {
	unsigned partition;
	uint64_t p;
	struct hw_fencing_token token;
	struct hw_fencing_token newer; /* the answer: that of the present owner; epoch 0: P is written */
};

struct nw_published_all {
	uint64_t p[HW_PARTITIONS];
};

/* The data of one instance, without its entries. */
struct nw_data {
	struct nw_member member[NW_HOSTS]; /* by name */
	struct nw_mark mark[NW_HOSTS];     /* by name */
	struct hw_record owner[HW_PARTITIONS];
	uint64_t version; /* of the owners */
	struct nw_hash device[NW_DEVICES];
	uint64_t published[HW_PARTITIONS]; /* P + 1; 0: none */
	size_t n_entries;
	size_t first; /* earlier entries were trimmed */
	struct hw_stream_id last;
};

struct nw_redis {
	bool up;
	struct nw_data d;
	struct nw_entry *entry; /* owned; complete, with trimmed entries: for the oracle */
	size_t cap;
	struct {
		uint64_t conn; /* 0: it does not wait */
		struct hw_stream_id place;
	} blocked[NW_HOSTS];                         /* by host: the tail waits for entries after its offset */
	struct hw_fencing_token most[HW_PARTITIONS]; /* the oracle's: the greatest token accepted */
};

/* A request on its way to Redis, with its data, and then its answer. */
struct nw_order {
	struct hw_nodes_order o;
	redisCallbackFn *fn;
	void *arg;
	struct hw_fencing_token token[HW_PARTITIONS];
	struct hw_record expected[HW_PARTITIONS];
	struct hw_partitions unable;
	char entry[NW_ENTRY]; /* the entry of the node that sends the order */
	bool full;            /* this connection has had no answer yet, so the answer contains all owners */

	struct hw_nodes_answer answer;
	struct hw_member_entry member[NW_HOSTS];
	const char *left[NW_HOSTS];
	char entries[NW_HOSTS][NW_ENTRY]; /* by member */
	struct hw_record owner[HW_PARTITIONS];
};

enum nw_item_kind { NW_EDGE, NW_REWRITE, NW_REFRESH };
enum nw_result { NW_WRITTEN, NW_ENTERED, NW_NEWER, NW_ANEW, NW_FENCED };

struct nw_item {
	enum nw_item_kind kind;
	int device;
	struct hw_ref ref;
	struct nw_hash to; /* with our token */
	bool again;
	enum nw_result result;
	uint64_t stored;
	struct hw_fencing_token newer; /* the token of the owner that Redis knows for the device or the partition */
};

#define NW_ITEMS 8
struct nw_call {
	enum nw_item_kind kind;
	size_t n;
	struct nw_item item[NW_ITEMS];
	uint64_t end; /* of the ring */
};

#define NW_HASHES 4
struct nw_hashes {
	struct nw_hash hash[NW_HASHES];
};

#define NW_PAGE 16
struct nw_range {
	struct hw_stream_id after;
	bool end;        /* only the last entry is requested */
	bool gone, more; /* the answer */
	struct hw_stream_id last;
	int server; /* the instance that answered */
	size_t n;
	struct nw_entry entry[NW_PAGE];
};

/* --- the broker ------------------------------------------------------------------------------------------------- */

/* A node's connections to the broker. */
enum nw_clients { NW_C_SESSION, NW_C_READER, NW_C_BARRIERS };

struct nw_client {
	uint64_t conn; /* 0: none */
	int host;      /* the host to which it belongs */
	int64_t lapse; /* since when the host has been cut off; INT64_MAX: the host can be reached */
	struct nw_text *will;
};

/* What the oracle knows about a session: the owners that Redis had when the session began. */
struct nw_begun {
	uint64_t conn;
	int instance; /* the master at that time; -1: the host may get its answers from an older master */
	struct hw_fencing_token owner[HW_PARTITIONS];
};

/* The retained status of a device, as the oracle reads it. */
struct nw_kept {
	enum { NW_K_NONE, NW_K_ONLINE, NW_K_OFFLINE, NW_K_WILL } what;
	struct hw_fencing_token token;
	uint64_t seq;
};

struct nw_broker {
	struct nw_client session[NW_HOSTS], reader[NW_HOSTS], barriers[NW_HOSTS]; /* by name */
	struct nw_text *presence[NW_HOSTS], *known[NW_HOSTS];                     /* retained */
	struct nw_kept retained[NW_DEVICES];
	uint64_t most_seq[NW_DEVICES]; /* for the oracle: the greatest seq of the device's statuses so far */
	struct hw_fencing_token most[HW_PARTITIONS]; /* for the oracle: the greatest token of the statuses that the
	                                              * broker passed on since its last start */
	struct nw_begun begun[NW_HOSTS];             /* by name */
	int64_t stopped_until;
	uint64_t ids;
	struct nw_text *held[4096]; /* messages of devices, while the broker stands still */
	size_t n_held;
};

/* --- hosts ------------------------------------------------------------------------------------------------------ */

struct event_base {
	struct nw_host *h;
};

struct nw_link {
	int instance; /* -1: not connected */
	int last;     /* for the oracle: the instance that answered the last request */
	uint64_t conn;
	bool up;         /* Redis has greeted the client */
	int64_t asked;   /* the oldest unanswered request */
	unsigned awaits; /* requests */
	int64_t leave_at, redial_at;
	struct hw_redis_link *l; /* of cluster_redis.c's */
	redisCallbackFn *heard;  /* receives the messages of the channel */
	uint64_t version_told;   /* of the owners */
	bool told;
};

struct nw_host {
	struct nw_world *w;
	int index, name;
	struct hw_app *app; /* owned; NULL: it does not run */
	struct hw_settings settings;
	struct hw_settings_group groups[2]; /* the second: of the children */
	char *filters[2], *below[2];
	char *ignored;    /* a topic on which no device sends */
	bool has_changed; /* since its last start, its group has another form, with which it ignores that topic */
	bool is_deaf;     /* none of its groups has the devices' filters, or those of the children */
	uint64_t run, starts;
	double drift;
	int64_t mono_off, wall_off,
		slept; /* by how much its clocks differ from the world's clock; slept: time in suspension */
	int64_t paused_until, cut_redis, cut_broker, starts_at;
	bool suspends; /* the pause is a suspension of the machine */
	int64_t paused_at;
	bool froze; /* paused between check and write */
	struct nw_wire wire[NW_WIRES], sent[NW_WIRES];
	struct nw_link link[NW_LINKS];

	struct event_base base;
	struct event *events; /* a list */
	const struct hw_loop *loop;
	int64_t tick_at, tick_ms;
	bool stopped_loop;

	struct hw_publisher *publisher, *barriers;
	struct hw_reader *reader;
	struct hw_redis *redis;
	struct hw_tail *tail;
	struct hw_evict *evicts; /* a list */
	struct nw_order *prepared, *answered;
	int fds;
	bool stopping;
	int64_t stop_by, looped;

	/* The oracle's. */
	int64_t started;
	int64_t sight;      /* for how long it could read, in total (ns) */
	int64_t unasked;    /* ns in which the host could not read although no
	                     * barrier revealed this */
	int64_t mute_since; /* since when its publisher has not been connected; now if it is connected */
	int64_t heard[NW_DEVICES], heard_sight[NW_DEVICES]; /* heard: the world's time of the last heartbeat;
	                                                     * heard_sight: `sight` at that time. 0: no heartbeat in
	                                                     * this run */
	int64_t heard_seen[NW_DEVICES];                     /* the host's own seeing clock then */
	bool knew[NW_DEVICES];    /* the host had a record of the device, with a state that was stored */
	int in_a_row[NW_DEVICES]; /* heartbeats, each within a timeout after the one before */
	int64_t bye[NW_DEVICES],
		false_bye[NW_DEVICES]; /* when the host last handled a goodbye: a genuine one, a false one */
	int64_t missed[NW_DEVICES], missed_sight[NW_DEVICES]; /* the same for the last heartbeat that passed and that
	                                                       * this host will never read */
};

/* --- the world -------------------------------------------------------------------------------------------------- */

enum nw_trouble {
	NW_PAUSE,
	NW_SUSPEND,
	NW_CUT_REDIS,
	NW_CUT_BROKER,
	NW_CUT_BOTH,
	NW_CRASH,
	NW_ROLL, /* a clean stop, and a start */
	NW_DROP, /* the connection of the publisher is lost */
	NW_DROP_READER,
	NW_FAILOVER,
	NW_FLUSH,
	NW_REDIS_STANDS,
	NW_BROKER_STANDS,
	NW_BROKER_RESTART,
	NW_CLOCK,
	NW_MASS, /* many devices die or return at once; perhaps a node dies or joins at the same time */
	NW_TROUBLES
};

/* Lies: what a part below the wiring, a store or the core does wrong on purpose. The oracle must find each. */
enum nw_lie {
	NW_NO_LIE,
	NW_LIE_EVICT,   /* no client is disconnected at the broker, but the answer says so */
	NW_LIE_BARRIER, /* barriers return before messages that were sent earlier */
	NW_LIE_ACK,     /* a presence is acknowledged before the broker has it */
	NW_LIE_CONFIRM, /* statuses are published before a renewal of this session was confirmed */
	NW_LIE_PEERS,   /* the other nodes' presences are not read */
	NW_LIE_WILL,    /* a will also replaces the known tokens */
	NW_LIE_EPOCH,   /* Redis does not compare tokens */
	NW_LIE_TWICE,   /* a transition to the stored state gets another entry */
	NW_LIE_COUNT,   /* a removal does not compare run and count */
	NW_LIE_KEPT,    /* confirmed transitions are not sent again to a new master */
	NW_LIE_RESTORE, /* a renewal does not store our tokens again */
	NW_LIE_FOLLOW,  /* claimed partitions are decided before the stream was followed to its end at the claim */
	NW_LIE_COMPARE, /* the store is not compared: after an unclean end, a load, or a change of the master */
	NW_LIE_FLUSHED, /* a drained partition counts as settled at once, and is released as clean */
	NW_LIE_CLAIM,   /* a claim compares no record */
	NW_LIE_GONE,    /* a node that was removed continues */
	NW_LIE_GATE,    /* a watcher's verdicts are announced */
	NW_LIE_FENCE,   /* statuses are published although the fence does not pass them */
	NW_LIE_JOIN,    /* joining replaces another run of the same name */
	NW_LIE_SILENT,  /* no silent member is removed */
	NW_LIE_RELEASE, /* a release is not written */
	NW_LIE_SWEEP,   /* records about devices of claimed partitions are ignored */
	NW_LIE_REREAD,  /* after a gap, or refused transitions, the store is not read again */
	NW_LIE_STALL,   /* the loop does not notice that it stood still */
	NW_LIE_NEWER,   /* a newer entry in the store is not reported */
	NW_LIE_STREAM,  /* the entries of other nodes are not read */
	NW_LIE_REWRITE, /* a device that is written again, in another state, gets no entry */
	NW_LIE_RELINK,  /* hashes that were read from the previous Redis are not read again */
	NW_LIE_SAME,    /* if an earlier run of the same name owned a partition, a claim gets the token of that run */
	NW_LIE_MARK,    /* if the sight record is missing, a new one is written, although this run had written one */
	NW_LIE_DOUBT,   /* the sight record of another run is accepted like our own as a proof that the store is the
	                 * same */
	NW_LIE_WHO,     /* any Redis that answers counts as the one whose stream is followed */
	NW_LIE_FORM,    /* a heartbeat in another form counts as one in ours */
	NW_LIE_PROVE,   /* the node does not notice that the store was emptied while it read the store */
	NW_LIE_LINKS,   /* the links for devices and for owners count as links to one Redis */
	NW_LIE_PROOFS,  /* no node checks whether another node proves a parent by its children */
	NW_LIES
};

/* Troubles that are planned step by step, and not drawn (nodes_scenes.c). */
enum nw_scene {
	NW_NO_SCENE,
	NW_CLAIMANT_DIES,
	NW_VERDICT_LOST,
	NW_LINKS_PART,
	NW_LATE_EDGE,
	NW_DEAF_PAUSE,
	NW_NEWEST_IS_GONE,
	NW_DEBTS_WAIT,
	NW_NEW_DEVICES,
	NW_NAMESAKE,
	NW_MUTE_CUT,
	NW_LINK_FIRST,
	NW_FLUSHED_LOAD,
	NW_LATE_GOODBYE,
	NW_ONE_KNOWS,
	NW_STARVED,
	NW_LATE_MARK,
	NW_FLUSHED_REREAD,
	NW_TWO_MASTERS,
	NW_MOVED_READING,
	NW_OTHER_GROUPS,
	NW_STRANGE_MARK,
	NW_CHANGED_FILTERS,
	NW_UNKNOWN_WRITER,
	NW_SINK_STAYS,
	NW_BEHIND_THE_STREAM,
	NW_SCENES
};

struct nw_plan {
	int hosts;
	bool wills, denied, namesake, other_timeouts, trims;
	int64_t lease_ms, timeout_ms, keepalive_ms, lag_ms, grace_ms;
	int64_t pipe_ms; /* if a reader has not read for this long, the broker drops heartbeats for it; 0: the broker
	                  * drops none */
	int64_t trouble_ns, calm_ns;
	double rate[NW_TROUBLES]; /* a second, for each host or the world */
	enum {
		NW_SAME_GROUPS,
		NW_OTHER_FILTERS,
		NW_OTHER_NAMES,
		NW_OTHER_CHILDREN
	} differs;    /* how the groups of the last host differ: it hears no device (filters, names), or no child */
	double turns; /* deaths and returns a second */
	int devices;
	/* Devices 1 to NW_CHILDREN have device 0 as parent. NW_TAKES: if device 0 ends, they go offline, too.
	 * NW_PROVES: their heartbeats only count for the deadline of device 0. */
	enum { NW_NO_FAMILY, NW_TAKES, NW_PROVES } family;
	int online_after; /* of all devices */
};

struct nw_life {
	bool alive, wills; /* wills: the connection of the device has a will */
	int64_t since, next_beat, interval;
	int64_t torn; /* when the broker ended the device's connection; the device then connects again */
	struct nw_text *beat, *goodbye, *false_goodbye;
};

struct nw_grant {
	int instance;
	unsigned p;
	struct hw_fencing_token token;
	uint64_t run;
};

/* A host was asked to write this transition. */
struct nw_edge_seen {
	int device, host;
	uint64_t seq;
	struct hw_fencing_token token;
	int64_t confirmed, lost, forgotten; /* lost: since when the master has had no entry of this transition;
	                                     * INT64_MAX: the master has its entry */
	int64_t pending;                    /* since when its host has been connected to the present master; 0: the
	                                     * host is not */
};

struct nw_count {
	uint64_t reads; /* of one device */
	uint64_t takeovers, evictions, removals, handovers, entries, statuses, fenced, failovers, deaths, turns;
};

struct nw_world {
	struct sim_random random;
	uint64_t seed;
	int64_t t, trouble_end; /* ns */
	int64_t last_event;     /* when a trouble last began or ended */
	int64_t moved;          /* when a partition was last claimed or given up */
	enum nw_lie lie;
	enum nw_scene scene;
	int stage;                /* the present stage of the scene */
	int64_t since;            /* when the stage began */
	uint64_t claimed;         /* the number of take-overs when the stage began */
	bool theirs[NW_DEVICES];  /* the devices that the scene concerns */
	int64_t marked, moved_ns; /* marked: the number of the barrier after which it begins; moved_ns: for how long
	                           * it had lasted by then */
	int64_t starved;          /* until when no host has memory to read everything again */
	struct nw_plan plan;
	struct nw_host host[NW_HOSTS];
	struct nw_redis redis[NW_INSTANCES];
	int master, instances;
	int64_t redis_stands, redis_wall_off;
	struct nw_data snapshot[NW_SNAPSHOTS];
	int64_t snapshot_at[NW_SNAPSHOTS];
	int snapshots;
	struct nw_broker broker;
	struct nw_life device[NW_DEVICES];
	int64_t ended[NW_DEVICES]; /* when a host last called the device offline */
	int64_t began[NW_DEVICES]; /* when a host last called the device online */
	enum hw_reason ended_by[NW_DEVICES];
	uint64_t ended_run[NW_DEVICES];
	unsigned part[NW_DEVICES];
	bool in_use[HW_PARTITIONS];
	int64_t unowned[HW_PARTITIONS]; /* since when the partition has had no owner; 0: it has one */
	int64_t good_since;             /* since when some node could have taken over; INT64_MAX: no node could */
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
/* The host whose code runs now; NULL: none's. */
extern struct nw_host *nw_running;

/* Draws the seed's plan; a caller that wants another plan changes it before nw_run(). */
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
/* Sends the message over the host's wire: it arrives after a random delay. */
void nw_send(struct nw_world *w, struct nw_host *h, enum nw_wires wire, struct nw_msg msg);
/* Adds a message that the process sends. The message leaves at the end of the host's step, unless the process stops
 * before. */
void nw_put(struct nw_host *h, enum nw_wires wire, struct nw_msg msg);
void *nw_alloc(size_t size);
/* Whether a message has arrived at the end of the wire. */
bool nw_arrived(const struct nw_world *w, const struct nw_wire *wire);
/* Returns a text with one reference. */
struct nw_text *nw_text_new(const char *topic, const char *payload, size_t len);
struct nw_text *nw_text_ref(struct nw_text *t);
void nw_text_unref(struct nw_text *t);
const char *nw_payload(const struct nw_text *t);
int nw_name_of(const char *node, size_t len);

/* Redis */
/* Returns the run id of an instance; "" for none (-1). */
const char *nw_redis_run(int instance);
void nw_redis_serve(struct nw_world *w, struct nw_host *h, enum nw_links k, struct nw_msg *msg);
void nw_redis_snapshot(struct nw_world *w);
void nw_redis_failover(struct nw_world *w);
void nw_redis_flush(struct nw_world *w);
bool nw_redis_reachable(const struct nw_world *w, const struct nw_host *h);

/* the broker */
void nw_broker_serve(struct nw_world *w, struct nw_host *h, enum nw_wires k, struct nw_msg *msg);
/* A device publishes the text, which is borrowed. */
void nw_broker_hears(struct nw_world *w, struct nw_text *t);
void nw_broker_step(struct nw_world *w);
void nw_broker_end(struct nw_world *w, int name, enum nw_clients kind, bool will);
void nw_broker_restart(struct nw_world *w, bool keeps);
bool nw_broker_reachable(const struct nw_world *w, const struct nw_host *h);
void nw_broker_fini(struct nw_world *w);

/* devices */
bool nw_is_child(const struct nw_world *w, int d);
/* Whether the host has no filter that takes the device. */
bool nw_is_deaf(const struct nw_host *h, int d);
void nw_fleet_begin(struct nw_world *w);
void nw_fleet_step(struct nw_world *w);
void nw_fleet_turn(struct nw_world *w, int device);
/* The broker ends all connections, and publishes each will first, if it still can. */
void nw_fleet_torn(struct nw_world *w, bool wills);
void nw_fleet_fini(struct nw_world *w);

/* hosts */
void nw_host_end(struct nw_world *w, struct nw_host *h);
void nw_host_step(struct nw_world *w, struct nw_host *h);
void nw_host_stop(struct nw_world *w, struct nw_host *h);
void nw_host_pause(struct nw_world *w, struct nw_host *h, int64_t until, bool suspends);
struct hw_now nw_host_now(const struct nw_world *w, const struct nw_host *h);
bool nw_host_acts(const struct nw_world *w, const struct nw_host *h);
/* Returns the interval of the host's barriers without a reason to send them sooner. */
int64_t nw_pace_ms(const struct nw_host *h);
/* Whether the loop can read from this descriptor of the host. */
bool nw_mqtt_readable(const struct nw_host *h, int fd);
/* Runs a step of the host's threads and links. */
void nw_mqtt_step(struct nw_world *w, struct nw_host *h);
void nw_mqtt_reader_step(struct nw_world *w, struct nw_host *h, int64_t planned);
void nw_mqtt_drop(struct nw_world *w, struct nw_host *h, enum nw_clients kind);
void nw_links_begin(struct nw_world *w, struct nw_host *h);
void nw_links_step(struct nw_world *w, struct nw_host *h);
bool nw_link_ask(struct nw_host *h, enum nw_links k, struct nw_msg msg);
void nw_link_lose(struct nw_host *h, enum nw_links k, const char *why);
/* A link of the host was greeted or lost, or has an answer. The caller may take the contents of the answer. */
void nw_sink_up(struct nw_host *h, struct nw_msg *hello);
void nw_sink_lost(struct nw_host *h, const char *why);
void nw_sink_answer(struct nw_host *h, struct nw_msg *msg);
void nw_sink_pump(struct nw_host *h);
void nw_tail_up(struct nw_host *h, int server);
void nw_tail_lost(struct nw_host *h, const char *why);
void nw_tail_answer(struct nw_host *h, struct nw_msg *msg);
struct nw_hash nw_sink_hash(struct nw_host *h, const struct hw_device *d);
int nw_device_of(const char *id, size_t len);

/* trouble */
void nw_plan_draw(struct nw_world *w);
/* Plans only one kind of trouble, and often. */
void nw_plan_only(struct nw_world *w, enum nw_trouble k);
/* Plans all kinds of trouble, often, with three nodes, and devices that stop and return often. For the search of
 * lies. */
void nw_plan_harsh(struct nw_world *w);
void nw_trouble_step(struct nw_world *w);
const char *nw_trouble_name(enum nw_trouble k);

/* scenes */
/* Plans a scene, and no other trouble. */
void nw_plan_scene(struct nw_world *w, enum nw_scene s);
void nw_scene_step(struct nw_world *w);
const char *nw_scene_name(enum nw_scene s);
const char *nw_lie_name(enum nw_lie k);

/* the oracle */
void nw_oracle_accepts(struct nw_world *w, int instance, unsigned p, const struct hw_fencing_token *t);
void nw_oracle_entry(struct nw_world *w, int instance, const struct nw_entry *e);
void nw_oracle_published(struct nw_world *w, int instance);
void nw_oracle_grants(struct nw_world *w, int instance, unsigned p, const struct hw_fencing_token *t, uint64_t run);
void nw_oracle_removes(struct nw_world *w, const char *node, int64_t renewed);
void nw_oracle_begins(struct nw_world *w, const struct nw_host *h, uint64_t conn);
void nw_oracle_status(struct nw_world *w, int name, int device, const struct hw_fencing_token *t);
void nw_oracle_offline(struct nw_world *w, struct nw_host *h, int device, enum hw_reason reason, bool overdue);
void nw_oracle_online(struct nw_world *w, struct nw_host *h, int device);
/* A device's heartbeat is lost for each host with this name, or (host >= 0) for this host alone. */
void nw_oracle_misses(struct nw_world *w, int name, int host, int device);
void nw_oracle_moves(struct nw_world *w, struct nw_host *h, const char *what);
void nw_oracle_confirms(struct nw_world *w, struct nw_host *h, const struct nw_item *item);
void nw_oracle_surpassed(struct nw_world *w, struct nw_host *h, const struct nw_item *item);
void nw_oracle_forgets(struct nw_world *w, struct nw_host *h, const struct hw_partitions *set);
void nw_oracle_connects(struct nw_world *w, struct nw_host *h);
void nw_oracle_failover(struct nw_world *w);
void nw_oracle_flush(struct nw_world *w);
void nw_oracle_step(struct nw_world *w);
/* Returns the state of a device in a host's record. */
enum hw_state nw_view(const struct nw_host *h, int device);
void nw_oracle_end(struct nw_world *w);

#endif
