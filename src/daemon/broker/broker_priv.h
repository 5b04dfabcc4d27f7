/* SPDX-License-Identifier: MIT */
/* Shared by the files about the connections to the broker: broker.c, barriers.c, feed.c, dial.c, share.c and
 * subscriptions.c. Other files use broker.h. */
#ifndef HW_DAEMON_BROKER_PRIV_H
#define HW_DAEMON_BROKER_PRIV_H

#include "broker.h"
#include "heartwheel/inflow.h"
#include "mqtt/copies.h"
#include "share.h"

struct event;

/* A reader, and the loop's data about it. */
struct hw_app_reader {
	struct hw_app *app;
	unsigned number;
	struct hw_reader *reader; /* owned */
	struct event *readable;   /* owned */
	bool unread;              /* the next turn reads this reader's ring, even if its descriptor has no new event */
	char client_id[256];
	struct hw_mqtt_conf conf;
	bool up, ever_up;
	bool stalled; /* the reader woke up too late, and has not emptied its socket since */
	bool renewed; /* the daemon itself closed the connection, so the loss is not logged */
	bool behind;  /* the loop woke up too late, and since then this reader's ring was never empty */
	uint64_t taken;
	int in_turn;   /* events taken in this turn of the loop */
	char why[512]; /* the cause while `up` is false */

	struct hw_inflow inflow;     /* the messages in the ring */
	struct hw_reader_event held; /* the event that was taken last */
	struct hw_copies_of copies;
};

/*
 * The connection for the monitor's messages to itself: barriers, canaries, the share topic. This connection carries no
 * statuses. While a socket contains data, a broker may continue to read it in the same turn. So if statuses came before
 * the barriers, the broker might read both barriers of a pair in one turn. A pair that was read in one turn proves
 * nothing.
 */
struct hw_app_barriers {
	struct hw_publisher *publisher;
	struct event *readable;
	struct hw_mqtt_conf conf;
	char client_id[256], why[512];
	/* Whether the broker's ACL accepts barriers. */
	enum { HW_BARRIERS_UNKNOWN, HW_BARRIERS_REFUSED, HW_BARRIERS_TAKEN } taken;
	bool up, ever_up;
	uint64_t reconnects;
};

struct hw_app_broker {
	struct hw_publisher *publisher; /* owned */
	struct event *publisher_readable;
	struct hw_mqtt_conf publisher_conf;
	char publisher_id[256], publisher_why[512];
	struct hw_mono publisher_lost;
	bool publisher_up, publisher_ever_up;
	uint64_t publisher_reconnects;

	struct hw_app_barriers barriers;
	uint64_t barrier_out; /* number of the last barrier */
	struct hw_app_reader reader[HW_READERS_MAX];
	unsigned n_readers;
	struct hw_share share;
	struct hw_copies copies;
	char barrier_topic[256], share_group[128]; /* which the parts borrow until they are freed */
	char discovery[192];                       /* how each topic of HW_DISCOVERY_BEFORE begins */
	size_t discovery_len;
	char lacks[800]; /* hw_app_broker_text() */
};

/* Callbacks of libevent for a readable descriptor. Of the publisher and of the barriers' connection: `arg` is the
 * struct hw_app. Of a reader: `arg` is the struct hw_app_reader. */
void hw_app_on_publisher(int fd, short what, void *arg);
void hw_app_on_barriers(int fd, short what, void *arg);
void hw_app_on_reader(int fd, short what, void *arg);
/* Call this after the reader has its number. */
void hw_app_feed_init(struct hw_app_reader *r);

/* Called when a connection is up. The other connections then try to connect at once. */
void hw_app_retry_links(struct hw_app *a);
/* Logs why a connection to the broker is down, unless the same reason was logged for another connection. `taken`:
 * another client seems to use the client id, which is logged as an error. */
void hw_app_log_broker(struct hw_app *a, const char *text, bool taken);
/* Whether a connection that is down has this cause. */
bool hw_app_is_reported(const struct hw_app *a, const char *text);

/* The readers' filters. Their texts belong to the groups. */
struct hw_app_filters {
	struct hw_mqtt_filter *all; /* of reader 0; owned */
	size_t n;
	size_t n_devices; /* number of device filters, which come first; in a cluster, the filters for the presences of
	                     other nodes follow */
	/* The filters of each reader except reader 0. They are in the memory of `all`. Only reader 0 has the filters
	 * whose retained messages are needed: the `while` topics, the presences and, without a store, the statuses. */
	struct hw_mqtt_filter *shared;
	size_t n_shared;
};
/* Returns 0 or -ENOMEM. The caller frees `all`. */
int hw_app_filters(struct hw_app *a, struct hw_app_filters *out);
/* Called if the broker may deliver copies of a message because filters overlap (MQTT 5). From now on, a message
 * counts once, however many copies arrive. Returns 0 or -ENOMEM. */
int hw_app_expect_copies(struct hw_app *a, const struct hw_app_filters *f);

#endif
