/* SPDX-License-Identifier: MIT */
/*
 * Everything that libmosquitto does, in threads of its own: the readers, each with its connection and its ring into the
 * loop, and the publisher. The loop's side never blocks: it watches the descriptors given here, and takes events and
 * answers.
 *
 * Events carry their text with them, and the loop's side logs: nothing here logs.
 */
#ifndef HW_MQTT_H
#define HW_MQTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shared by readers and publisher; borrowed for their lifetime. */
struct hw_mqtt_conf {
	const char *host;
	int port;
	int protocol; /* 5 or 311 */
	int keepalive_s;
	const char *username;                    /* "": none */
	const char *password;                    /* "": none; already read from its file */
	const char *tls_ca, *tls_cert, *tls_key; /* "": none; tls_ca set: TLS, verification always on */
	const char *client_id;                   /* of this connection */
	bool evictable;                          /* another node may connect with this client id to cut this one off */
	const char *barrier_topic;               /* "heartwheel/NODE_ID/barrier" */
	const char *share_topic;                 /* "heartwheel/NODE_ID/share" */
	int qos;                                 /* of heartbeats and barriers */
	uint32_t session_s; /* how long the broker keeps the session of a lost connection (3.1.1: for ever); 0: not */
};

/* --- readers
 * -------------------------------------------------------------------------------------------------------------------------
 */

struct hw_reader;

/* A filter to subscribe to; `replay` asks for retained messages too (MQTT 5: retain handling 0; 3.1.1 always gets
 * them); `plain`: never a shared subscription, so each reader that has it gets every message. `as_published`: the
 * retain flag comes as it was published (MQTT 5: retain-as-published; 3.1.1 has it of what is retained alone).
 */
struct hw_mqtt_filter {
	const char *filter;
	bool replay, plain, as_published;
};

enum hw_reader_event_kind {
	HW_READER_MESSAGE,
	HW_READER_BARRIER, /* .number with .mark */
	HW_READER_SHARE,   /* .number with .mark: of hw_publisher_share() */
	HW_READER_UP,      /* connected, and every subscription granted */
	HW_READER_DOWN, /* .text: why, and what to do where that is known; said once per loss, then once when the reason
	                   changes */
	HW_READER_REFUSED,    /* a subscription was refused: .text names the filter */
	HW_READER_STALL,      /* while messages came, the thread woke later than planned: .planned_ns (monotonic) */
	HW_READER_DRAINED,    /* the socket was empty after a stall, or after hw_reader_drain() */
	HW_READER_REPLAYED,   /* hw_reader_replay() is granted: what is retained has come or follows */
	HW_READER_NEARLY_FULL /* the receive buffer was 90 % full: the broker may be dropping */
};

/* Points into the ring: valid until hw_reader_release(). */
struct hw_reader_event {
	enum hw_reader_event_kind kind;
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;
	bool truncated; /* the payload was longer than HW_READER_PAYLOAD_MAX: only its beginning is here */
	uint64_t number, mark;
	int64_t planned_ns;
	const char *text; /* NUL-terminated */
};

#define HW_READER_PAYLOAD_MAX 65536

/* Counters that the thread keeps and anyone may read at any time. */
struct hw_reader_stats {
	uint64_t messages, bytes, wakeups, reconnects, ring_waits;
	uint64_t junk_barriers; /* messages on the barrier topic that no monitor wrote */
	uint64_t gathered;      /* how often it let messages gather before it read them */
	bool taken; /* the last connection seems to be lost because another client has connected with the client id */
};

/*
 * Readies a reader and starts its thread, which connects, and reconnects as backoff.h says. `share_group`: NULL, or the
 * name of the shared subscription. `ring_bytes`: bound of what waits for the loop; when it is full the reader stops
 * reading until there is room (at least 1 MiB, so that the largest message fits). `stall_after_ms`: see
 * HW_READER_STALL. Returns 0 or -errno.
 */
int hw_reader_start(struct hw_reader **out, const struct hw_mqtt_conf *conf, const struct hw_mqtt_filter *filters,
                    size_t n_filters, const char *share_group, size_t ring_bytes, int64_t stall_after_ms);
/* Has the thread disconnect and end; whether it has. One that is in the resolver, or in a connect, does so when it
 * comes back, and not before it has said its client id to the broker. */
void hw_reader_end(struct hw_reader *r);
bool hw_reader_ended(struct hw_reader *r);
/* Stops the thread, disconnects, joins, frees. Bounded: a connect that blocks in name resolution is left behind, not
 * waited for, and at once if it was told to end before. */
void hw_reader_stop(struct hw_reader *r);

/* Readable when events wait. */
int hw_reader_fd(const struct hw_reader *r);
/* The next event, or false. */
bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev);
/* Gives back all events taken so far. */
void hw_reader_release(struct hw_reader *r);
/* Before sleeping on the descriptor: false if more events came meanwhile. */
bool hw_reader_rest(struct hw_reader *r);

/* Subscribes to another set of filters (after a reload): unsubscribes what went, subscribes what came. Copies them.
 * Returns 0 or -ENOMEM. */
int hw_reader_set_filters(struct hw_reader *r, const struct hw_mqtt_filter *filters, size_t n_filters);
/* Asks once more for what is retained on the filters with `replay`: HW_READER_REPLAYED follows, unless the connection
 * is lost before. Retained messages may come ahead of it, as they may ahead of HW_READER_UP. */
void hw_reader_replay(struct hw_reader *r);
/* Closes the connection and opens it again. */
void hw_reader_reconnect(struct hw_reader *r);
/* The loop has found that this process stood still: HW_READER_DRAINED follows once the socket has been read empty; at
 * once if there is no connection. */
void hw_reader_drain(struct hw_reader *r);
/* Without a connection: tries again at once, whatever the back-off says, since another connection of ours has just
 * found the broker. */
void hw_reader_hurry(struct hw_reader *r);
/* A barrier is on its way: what comes until `until_ns` (CLOCK_MONOTONIC) is read at once, and not gathered; 0: it is
 * back. */
void hw_reader_expect(struct hw_reader *r, int64_t until_ns);
struct hw_reader_stats hw_reader_stats(const struct hw_reader *r);

/* --- publisher
 * -----------------------------------------------------------------------------------------------------------------------
 */

struct hw_publisher;

enum hw_publisher_event_kind {
	HW_PUBLISHER_UP,      /* connected */
	HW_PUBLISHER_DOWN,    /* .text; .token: as hw_reader_stats' taken; every message not yet
	                         acknowledged is dropped and gets no further event */
	HW_PUBLISHER_ACKED,   /* .token: the broker has it; where it takes QoS 0 only: it was sent */
	HW_PUBLISHER_REFUSED, /* .token, .text: a reason code >= 0x80, or the library would not take it; without a
	                         text: what it is beyond was told by LIMIT, and .reason is 0x95 where it is too long,
	                         0 where none is tried for a while */
	HW_PUBLISHER_LIMIT,   /* .text: something that the broker does not take, and what follows: once each */
	HW_PUBLISHER_CANARY, /* .token; .text: "" if the broker took it (MQTT 5 only), why it did not otherwise; .reason
	                        0 then: it could not be sent */
	HW_PUBLISHER_BARRIERS /* .token: whether the broker takes barriers from this user (MQTT 5 only): told when it
	                         is known, and when it changes */
};

struct hw_publisher_event {
	enum hw_publisher_event_kind kind;
	uint64_t token;
	unsigned reason; /* of ACKED, REFUSED, CANARY: the broker's reason code (0x10: nobody is subscribed); 0 before
	                  * MQTT 5
	                  */
	char text[256];
};

/*
 * Starts the publisher's thread. `will_topic`, `will_payload`: the presence topic and what the broker says there when
 * the monitor is gone (retained, QoS 1, as far as the broker takes that). Returns 0 or -errno.
 */
int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len);
/* As hw_reader_end(); what was handed over has `timeout_ms` to be acknowledged. Hands nothing over any more. */
void hw_publisher_end(struct hw_publisher *p, int64_t timeout_ms);
bool hw_publisher_ended(struct hw_publisher *p);
/* Waits at most `timeout_ms` for what was handed over to be acknowledged, disconnects cleanly (no will), joins, frees.
 * Not at all if it was told to end before. */
void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms);

/* Readable when events wait. */
int hw_publisher_fd(const struct hw_publisher *p);
bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev);

/* How many more statuses may be handed over now: bounds what is in flight. 0 while not connected. */
unsigned hw_publisher_room(const struct hw_publisher *p);
/* A message to be published, as far as the broker takes that. */
struct hw_publication {
	const char *topic;
	const void *payload;
	size_t len;
	bool retain;
	int qos;           /* 0 or 1; with 0, ACKED says that it was sent */
	uint32_t expiry_s; /* after which the broker forgets it: MQTT 5 only; 0: never */
	uint64_t token;    /* comes back in ACKED or REFUSED */
	/* What it is about: the same whenever it is published again, and another message's never. By it a message on
	 * which the broker closes the connection each time is found out; with 0 it is not. */
	uint64_t subject;
};

/* Hands a message over; copies it. False if there is no room or no connection. */
bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what);
/* Hands a barrier over: not retained, ahead of statuses, with conf.qos. With QoS 0 it goes out with QoS 1 unless such a
 * one is unanswered: so the broker acknowledges that it reads this connection, and says in MQTT 5 that it refuses the
 * barrier. Dropped when not connected. Payload: "MARK NUMBER" in hex and decimal. */
void hw_publisher_barrier(struct hw_publisher *p, uint64_t mark, uint64_t number);
/*
 * Hands over a message to the share topic, which readers with a share group subscribe to in it, and a barrier with the
 * number HW_FENCE + `number` behind it. Dropped when not connected.
 */
void hw_publisher_share(struct hw_publisher *p, uint64_t mark, uint64_t number);
#define HW_FENCE (UINT64_C(1) << 63) /* more than any barrier's number */
/* Hands a canary over: QoS 1, not retained, in line with the barriers. False if there is no connection, or it is too
 * long for the line. */
bool hw_publisher_canary(struct hw_publisher *p, const char *topic, const void *payload, size_t len, uint64_t token);
/* Wakes the thread for what was handed over: once per turn of the loop. */
void hw_publisher_flush(struct hw_publisher *p);
/* As hw_reader_hurry(). */
void hw_publisher_hurry(struct hw_publisher *p);
/* Whether the broker takes QoS 0 only, as this connection, which has a last will, has found out when it came up. */
bool hw_publisher_lacks_qos(const struct hw_publisher *p);
/* Tells a connection without a last will what another one has found out: the broker answers, and whether it takes QoS 0
 * only, which such a connection cannot find out before MQTT 5 and supposes until then. */
void hw_publisher_tell_broker(struct hw_publisher *p, bool lacks_qos);
/* Closes the connection and opens it again. */
void hw_publisher_reconnect(struct hw_publisher *p);
/* CLOCK_MONOTONIC at the broker's last acknowledgement of a barrier, a canary or a message to the share topic; 0: none.
 * Any thread. */
int64_t hw_publisher_answered_ns(const struct hw_publisher *p);

#endif
