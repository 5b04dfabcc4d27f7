/* SPDX-License-Identifier: MIT */
/*
 * A model of the broker. Each client has a socket, in which its packets wait in order until the broker reads them. Some
 * brokers read one packet of one socket in a turn, in the order in which the sockets became ready. Others read a whole
 * socket, and after a standstill the waiting sockets in any order. Packets for a reader of the monitor go through a
 * pipe: in order, with a delay, and with a limit beyond which packets are dropped without a notice. Clients are
 * numbered: the devices, then the monitor's readers, then its publisher.
 */
#ifndef SIM_BROKER_H
#define SIM_BROKER_H

#include "sim_fifo.h"
#include "sim_plan.h"

#define SIM_READERS_MAX 3

struct sim;

enum sim_broker_state { SIM_RUNNING, SIM_STOPPED, SIM_DOWN };

struct sim_client {
	struct sim_fifo in;
	size_t arrived; /* how many of the packets in `in` are in the socket; the others are still under way */
	int64_t last_at, keepalive_ns;
	uint32_t conn; /* grows with each connection */
	bool connected, ready, will, lapsed;
	bool lost;       /* the connection is broken in both directions, and neither end has noticed this */
	uint32_t taken;  /* packets of the chunk that the broker has read, but not handled */
	bool cut_packet; /* the chunk ends within a packet, so the broker reads on in the same turn */
};

struct sim_pipe {
	struct sim_fifo q;
	int64_t last_at;
	bool open;   /* connected and subscribed */
	bool filled; /* the reader has reported that its pipe is nearly full, and the pipe has not been empty since */
};

struct sim_retained {
	bool any, online, by_monitor;
	bool unheard; /* a goodbye that the broker delivered to no reader */
	uint64_t seq;
};

struct sim_broker {
	enum sim_broker_state state;
	struct sim_client *client;                 /* owned */
	struct sim_pipe pipe[SIM_READERS_MAX + 2]; /* the pipes to the readers, then those for the answers to
	                                            * barriers and for the answers to statuses */
	struct sim_retained *retained;             /* owned; a device */
	uint64_t *most_seq;                        /* owned; the greatest seq of a device's statuses so far */
	uint32_t *ready;                           /* owned: the sockets with waiting packets, a ring of n_clients */
	uint32_t n_clients, ready_head, ready_n;
	bool serving; /* a SIM_SERVE is planned */
	uint32_t serve_stamp, turn;
	int64_t stopped_at;
	uint32_t taken;       /* how many sockets had waiting packets when the broker stopped; the broker knows these
	                       * sockets already */
	int64_t pauses_until; /* it pauses again and again; 0: it does not */
	bool paused;
	int64_t service_ns, delay_ns;      /* a packet; a pipe */
	unsigned mute[SIM_GROUPS_MAX + 1]; /* by group: if greater than 0, its filters deliver nothing; the last
	                                    * element is for packets of no group */
	unsigned away[SIM_GROUPS_MAX];     /* by group: if greater than 0, its bridge delivers nothing and reports
	                                    * itself as away */
	bool twice;                        /* it delivers what devices send more than once */
	bool reads_on;                     /* after a chunk that ends within a packet, the broker reads on in the
	                                    * same turn */
	bool cut;                          /* the network between broker and monitor is cut: no packet gets through,
	                                    * and none is lost */
	uint64_t dropped;
};

void sim_broker_init(struct sim *s);
void sim_broker_fini(struct sim *s);

/* Connects a client. Returns false if the broker accepts no connection now. A second connection of the client ends
 * the first one; its will is published if the plan says so. */
bool sim_broker_connect(struct sim *s, uint32_t client, int64_t keepalive_ns, bool will);
/* The client has closed the connection and forgets the packets on their way. */
void sim_broker_leave(struct sim *s, uint32_t client);
/* A client sends; lost if it is not connected. */
void sim_broker_send(struct sim *s, uint32_t client, struct sim_packet p, int64_t delay_ns);
/* Reads the next packet for a reader; false: there is none yet. */
bool sim_broker_read(struct sim *s, uint32_t reader, struct sim_packet *p);
/* How much of its limit a reader has used up, in percent. */
unsigned sim_broker_fill(const struct sim *s, uint32_t reader);

void sim_broker_stop(struct sim *s);
void sim_broker_resume(struct sim *s);
/* sim_broker_pause(): until `until`, the broker stands still again and again, each time too briefly to be noticed,
 * or almost. sim_broker_on_pause(): begins or ends one of these standstills. */
void sim_broker_pause(struct sim *s, int64_t until);
void sim_broker_on_pause(struct sim *s);
/* Stops the broker. `politely`: it publishes every will before it closes the connections. */
void sim_broker_down(struct sim *s, bool politely);
void sim_broker_up(struct sim *s, bool remembers);
void sim_broker_cut(struct sim *s, bool cut);
/* Breaks one of the monitor's connections, as when a NAT entry is lost: no packet arrives over it any more. The
 * client notices by its keepalive, after a minute. Its next connection works. */
void sim_broker_lose(struct sim *s, uint32_t client);
/* The first reader requests the states of the bridges once more. `end`: the packet that follows them. */
void sim_broker_replay(struct sim *s, enum sim_what end);
/* A group's bridge goes away, or comes back. */
void sim_broker_bridge(struct sim *s, unsigned group, bool away);

void sim_broker_on_in(struct sim *s, uint32_t client, uint32_t conn);
void sim_broker_on_serve(struct sim *s, uint32_t stamp);
void sim_broker_on_lapse(struct sim *s, uint32_t client, uint32_t conn);

#endif
