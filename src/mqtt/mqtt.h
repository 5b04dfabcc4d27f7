/* SPDX-License-Identifier: MIT */
/*
 * The interface to all code that uses libmosquitto. That code has its own threads: the readers, each with a connection
 * and a ring into the loop, and the publisher. The loop never blocks: it polls the descriptors given here, and takes
 * events and answers.
 *
 * Events contain their text. This code logs nothing; the loop logs the texts.
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
	const char *password;                    /* "": none; read from its file by the caller */
	const char *tls_ca, *tls_cert, *tls_key; /* "": none. If tls_ca is set, TLS is used, always with verification */
	const char *client_id;                   /* of this connection */
	bool evictable;            /* another node may evict this one, by connecting with the client id of this one */
	const char *barrier_topic; /* "heartwheel/NODE_ID/barrier" */
	const char *share_topic;   /* "heartwheel/NODE_ID/share" */
	int qos;                   /* of heartbeats and barriers */
	/* how long the broker keeps the session of a lost connection (3.1.1: for ever); 0: clean session */
	uint32_t session_s;
};

/* --- readers ----------------------------------------------------------------------------------------------------- */

struct hw_reader;

/* A filter to subscribe to. `replay`: with retained messages (MQTT 5: retain handling 0; in 3.1.1 they always come).
 * `plain`: never a shared subscription, so each reader gets every message. `as_published`: keep the retain flag as
 * published (MQTT 5: retain-as-published; 3.1.1 sets the flag only for stored messages). `renew`: hw_reader_renew()
 * requests it again. */
struct hw_mqtt_filter {
	const char *filter;
	bool replay, plain, as_published, renew;
};

enum hw_reader_event_kind {
	HW_READER_MESSAGE,
	HW_READER_BARRIER, /* .number with .run_id */
	HW_READER_SHARE,   /* .number with .run_id: of hw_publisher_share() */
	HW_READER_UP,      /* connected, and all subscriptions are granted */
	/* .text: the reason, and the remedy if known; sent once for each loss, and again when the reason changes */
	HW_READER_DOWN,
	HW_READER_REFUSED,     /* a subscription was refused; .text names the filter */
	HW_READER_STALL,       /* the thread woke up later than planned while messages came; .planned_ns (monotonic) */
	HW_READER_DRAINED,     /* the socket was found empty after a stall, or after hw_reader_drain() */
	HW_READER_REPLAYED,    /* after hw_reader_replay(): the broker has granted the request; its retained messages
	                        * have come or will follow */
	HW_READER_RENEWED,     /* after hw_reader_renew(), like REPLAYED; the broker may have refused filters */
	HW_READER_NEARLY_FULL, /* the receive buffer was 90 % full, so the broker may be discarding messages */
	HW_READER_TOO_LONG     /* .text: a message was discarded because its properties are too long, and the remedy */
};

/* The event's pointers point into the ring, and are valid until hw_reader_release(). */
struct hw_reader_event {
	enum hw_reader_event_kind kind;
	const char *topic;
	size_t topic_len;
	const void *payload;
	size_t payload_len;
	bool retained;
	bool truncated; /* the payload is cut at HW_READER_PAYLOAD_MAX bytes */
	uint64_t number, run_id;
	int64_t planned_ns;
	const char *text; /* NUL-terminated */
};

#define HW_READER_PAYLOAD_MAX 65536

/* Counters that the thread updates and any thread may read. */
struct hw_reader_stats {
	uint64_t messages, bytes, wakeups, reconnects, ring_waits;
	uint64_t junk_barriers; /* messages on the barrier topic that are no barriers */
	uint64_t gathered;      /* waits to let messages gather before a read */
	bool taken;             /* the last loss was probably caused by another client with the same client id */
};

/*
 * Initialises a reader and starts its thread, which connects, and reconnects after a loss (backoff.h). `share_group`:
 * name of the shared subscription, or NULL. `ring_bytes`: the size of the ring, at least 1 MiB, so that the largest
 * message fits. While the ring is full, the reader does not read. `stall_after_ms`: see HW_READER_STALL. Returns 0 or
 * -errno.
 */
int hw_reader_start(struct hw_reader **out, const struct hw_mqtt_conf *conf, const struct hw_mqtt_filter *filters,
                    size_t n_filters, const char *share_group, size_t ring_bytes, int64_t stall_after_ms);
/* Writes how a reader with this configuration reads heartbeats, for the log: "read from the socket, past libmosquitto
 * 2.0.11". */
void hw_reader_path(const struct hw_mqtt_conf *conf, char *text, size_t size);
#define HW_READER_PATH_TEXT 160
/* hw_reader_end() orders the thread to disconnect and end. hw_reader_ended() returns whether it has. A thread that
 * is blocked in name resolution or in a connect ends later: after that call has returned and a CONNECT was sent. */
void hw_reader_end(struct hw_reader *r);
bool hw_reader_ended(struct hw_reader *r);
/* Stops the thread, disconnects, joins, frees. The wait is limited: a thread that is still blocked in name
 * resolution then is left to end by itself. After hw_reader_end() this function does not wait. */
void hw_reader_stop(struct hw_reader *r);

/* Readable when events wait. */
int hw_reader_fd(const struct hw_reader *r);
/* The next event, or false. */
bool hw_reader_take(struct hw_reader *r, struct hw_reader_event *ev);
/* Releases all events taken so far. */
void hw_reader_release(struct hw_reader *r);
/* Called before the loop waits for the descriptor. Returns false if more events have come meanwhile. */
bool hw_reader_rest(struct hw_reader *r);

/* Replaces the filters (after a reload): unsubscribes from removed ones and subscribes to new ones. Copies them. 0
 * or -ENOMEM. */
int hw_reader_set_filters(struct hw_reader *r, const struct hw_mqtt_filter *filters, size_t n_filters);
/* Requests the retained messages on the filters with `replay` again. HW_READER_REPLAYED follows, unless the connection
 * is lost. Retained messages may come before that event, as they may come before HW_READER_UP. */
void hw_reader_replay(struct hw_reader *r);
/* Like hw_reader_replay(), but only for the filters with `renew`. HW_READER_RENEWED follows, unless the connection is
 * lost or hw_reader_replay() is called. If the broker refuses a filter, HW_READER_REFUSED comes only once until the
 * broker grants the filter again. The connection stays open. */
void hw_reader_renew(struct hw_reader *r);
/* Closes the connection and opens it again. */
void hw_reader_reconnect(struct hw_reader *r);
/* Called when the loop has noticed that this process was stopped. HW_READER_DRAINED follows when the socket is empty,
 * or at once without a connection. */
void hw_reader_drain(struct hw_reader *r);
/* Without a connection, tries to connect at once although the delay is not over, because another connection has just
 * reached the broker. */
void hw_reader_retry(struct hw_reader *r);
/* Called when a barrier is in flight. Until `until_ns` (CLOCK_MONOTONIC), the reader reads each message at once,
 * without waiting for more. 0: the barrier is back. */
void hw_reader_expect(struct hw_reader *r, int64_t until_ns);
struct hw_reader_stats hw_reader_stats(const struct hw_reader *r);

/* --- publisher --------------------------------------------------------------------------------------------------- */

struct hw_publisher;

enum hw_publisher_event_kind {
	HW_PUBLISHER_UP, /* connected */
	/* .text; .publish_id: like hw_reader_stats.taken. All unacknowledged messages are dropped, and get no further
	 * event */
	HW_PUBLISHER_DOWN,
	HW_PUBLISHER_ACKED, /* .publish_id: the broker has acknowledged the message; with QoS 0: the message was sent */
	/* .publish_id, .text: the broker answered with a reason code >= 0x80, or the library refused the message. If
	 * there is no text, a limit that LIMIT has reported is the cause. .reason is then 0x95 if the message is too
	 * long, or 0 if the publisher sends no status for a while */
	HW_PUBLISHER_REFUSED,
	HW_PUBLISHER_LIMIT, /* .text: a limit of the broker and its consequence; sent once for each limit */
	/* .publish_id; .text: "" if the broker accepted the canary (MQTT 5 only), otherwise the reason. .reason 0:
	 * the canary could not be sent */
	HW_PUBLISHER_CANARY,
	/* .publish_id: whether the broker accepts barriers from this user (MQTT 5 only); sent when this is first known,
	 * and when it changes */
	HW_PUBLISHER_BARRIERS
};

struct hw_publisher_event {
	enum hw_publisher_event_kind kind;
	uint64_t publish_id;
	/* of ACKED, REFUSED, CANARY: the broker's reason code (0x10: no subscribers); 0 before MQTT 5 */
	unsigned reason;
	char text[256];
};

/*
 * Starts the publisher's thread. `will_topic`, `will_payload`: the presence topic, and the last will that the broker
 * publishes there (retained, QoS 1, as far as the broker accepts that). 0 or -errno.
 */
int hw_publisher_start(struct hw_publisher **out, const struct hw_mqtt_conf *conf, const char *will_topic,
                       const void *will_payload, size_t will_len);
/* Like hw_reader_end(). Messages that were handed over before have `timeout_ms` to be acknowledged. After this call, no
 * message may be handed over. */
void hw_publisher_end(struct hw_publisher *p, int64_t timeout_ms);
bool hw_publisher_ended(struct hw_publisher *p);
/* Waits at most `timeout_ms` for acknowledgements, disconnects cleanly (no will), joins, frees. After
 * hw_publisher_end() it does not wait. */
void hw_publisher_stop(struct hw_publisher *p, int64_t timeout_ms);

/* Readable when events wait. */
int hw_publisher_fd(const struct hw_publisher *p);
bool hw_publisher_take(struct hw_publisher *p, struct hw_publisher_event *ev);

/* Returns how many more statuses may be handed over now, so that not too many are in flight. 0 without a connection. */
unsigned hw_publisher_room(const struct hw_publisher *p);
/* A message to publish. The flags apply as far as the broker accepts them. */
struct hw_publication {
	const char *topic;
	const void *payload;
	size_t len;
	bool retain;
	int qos;             /* 0 or 1; with 0, ACKED means that it was sent */
	uint32_t expiry_s;   /* expiry interval at the broker (MQTT 5 only); 0: none */
	uint64_t publish_id; /* returned in ACKED or REFUSED */
	/* Identifies the content. A message that is published again has the same number, and no other message has
	 * it. With this number, the publisher finds a message on which the broker closes the connection again and
	 * again. 0: the message is never suspected. */
	uint64_t subject;
};

/* Hands a message over; copies it. False if there is no room or no connection. */
bool hw_publisher_publish(struct hw_publisher *p, const struct hw_publication *what);
/* Hands over a barrier. The barrier is sent before statuses, is not retained, and has the QoS conf.qos. If conf.qos is
 * 0, the barrier has QoS 1, unless an earlier barrier with QoS 1 is unacknowledged. The broker's acknowledgement shows
 * that the broker reads this connection, and in MQTT 5 the acknowledgement reports a refusal. Without a connection the
 * barrier is discarded. Payload: see barrier.h. */
void hw_publisher_barrier(struct hw_publisher *p, uint64_t run_id, uint64_t number);
/*
 * Hands over a message on the share topic, to which readers with a share group subscribe in that group. A barrier with
 * the number HW_FENCE + `number` follows. Discarded without a connection.
 */
void hw_publisher_share(struct hw_publisher *p, uint64_t run_id, uint64_t number);
#define HW_FENCE (UINT64_C(1) << 63) /* greater than any other barrier's number */
/* Hands over a canary: QoS 1, not retained, sent in order with the barriers. Returns false without a connection, or if
 * the canary is too long for the ring. */
bool hw_publisher_canary(struct hw_publisher *p, const char *topic, const void *payload, size_t len,
                         uint64_t publish_id);
/* Makes the messages visible to the thread and wakes it. Called once in each turn of the loop. */
void hw_publisher_flush(struct hw_publisher *p);
/* Like hw_reader_retry(). */
void hw_publisher_retry(struct hw_publisher *p);
/* Whether the broker accepts only QoS 0. A connection with a last will finds this out when it comes up. */
bool hw_publisher_is_without_qos(const struct hw_publisher *p);
/* Called for a connection without a last will, when another connection has found that the broker answers, and
 * whether it accepts only QoS 0. Before MQTT 5, a connection without a will cannot find this out, and uses QoS 0
 * until this call. */
void hw_publisher_set_broker(struct hw_publisher *p, bool lacks_qos);
/* Closes the connection and opens it again. */
void hw_publisher_reconnect(struct hw_publisher *p);
/* Returns when the broker last acknowledged a barrier, by CLOCK_MONOTONIC; 0: never. Callable from any thread. */
int64_t hw_publisher_answered_ns(const struct hw_publisher *p);

#endif
