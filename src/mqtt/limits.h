/* SPDX-License-Identifier: MIT */
/*
 * What the broker takes from the publisher: retained messages or not, QoS 1 or not, up to how many bytes, and whether a
 * last will. MQTT 5 brokers say it in the CONNACK. One that speaks 3.1.1 closes the connection on what it does not
 * take, and one of either kind may do so on a CONNECT whose will it does not take. So after a CONNECT that was not
 * answered the next one is without a will: if that is answered, it was the will, and what the broker minds about it is
 * tried out in five more connects at most.
 *
 * In the same way a status is found on which the broker closes the connection: from the second time on statuses go one
 * by one, and one that ends two connections alone, and was never acknowledged in between, is left out. If smaller ones
 * were taken, all of its size are; if not, none is sent for a minute, then two, up to an hour. Barriers go on.
 *
 * Pure: no clock, no connection, no library.
 */
#ifndef HW_MQTT_LIMITS_H
#define HW_MQTT_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_limits_form { /* of the CONNECT */
	              HW_FORM_WHOLE,
	              HW_FORM_ASK, /* without the will, and only to see whether that is answered */
	              HW_FORM_AGAIN,
	              HW_FORM_NOT_RETAINED,
	              HW_FORM_QOS_0,
	              HW_FORM_NEITHER,
	              HW_FORM_NO_WILL
};

enum hw_lack { HW_LACK_RETAIN = 1, HW_LACK_QOS = 2, HW_LACK_WILL = 4, HW_LACK_PACKET = 8, HW_LACK_STATUS = 16 };

/* All zero at first. */
struct hw_limits {
	enum hw_limits_form form;
	bool settled;        /* a CONNECT of that form was answered */
	unsigned known;      /* enum hw_lack: what the broker does not take */
	unsigned told;       /* ... and what was told of it */
	size_t packet_max;   /* bytes; 0: unknown */
	size_t taken;        /* bytes of the largest status that was acknowledged */
	unsigned thrown_out; /* times, with statuses in flight */
	unsigned calm;       /* statuses that were acknowledged since */
	uint64_t suspect; /* subject of what ended a connection while it was in flight alone, and was not taken since;
	                     0: none */
	unsigned banned;  /* how often */
	int64_t banned_until_ns;
};

/* How the next CONNECT is to be: false: without a will. */
bool hw_limits_will(const struct hw_limits *l, bool *retain, int *qos);
/* A CONNECT was not answered, or refused with this CONNACK of MQTT 5 (0: not answered). True if another form is to be
 * tried at once, and nothing need be said. */
bool hw_limits_failed(struct hw_limits *l, int refusal);
/* It was answered, with this said in the CONNACK (0: nothing said of a packet's size). False if it was only asked. */
bool hw_limits_answered(struct hw_limits *l, bool retain, int qos_max, size_t packet_max);
/* The broker was away: it may be configured otherwise when it is back. */
void hw_limits_forget(struct hw_limits *l);

/* Whether the broker takes none of so many bytes. */
bool hw_limits_too_long(const struct hw_limits *l, size_t bytes);
/* Whether a status of so many bytes may be sent now. */
bool hw_limits_takes(const struct hw_limits *l, size_t bytes, int64_t now_ns);
/* Whether statuses go one by one. */
bool hw_limits_careful(const struct hw_limits *l);
/* A status about this subject was acknowledged: it is not what ended a connection. */
void hw_limits_taken(struct hw_limits *l, uint64_t subject, size_t bytes);
/* The broker closed the connection with `n` statuses in flight, of which the first was about this subject (0: nobody
 * knows, and it is never suspected). */
void hw_limits_thrown_out(struct hw_limits *l, unsigned n, uint64_t subject, size_t bytes, int64_t now_ns);

/* One of enum hw_lack that is known and was not told yet; 0: none. It counts as told from then on. */
enum hw_lack hw_limits_news(struct hw_limits *l);
/* What follows from it, and what to do. */
void hw_limits_text(const struct hw_limits *l, enum hw_lack which, char *to, size_t size);

#endif
