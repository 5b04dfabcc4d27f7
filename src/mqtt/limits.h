/* SPDX-License-Identifier: MIT */
/*
 * The limits of the broker for the publisher: whether it accepts retained messages, QoS 1 and a last will, and the
 * greatest packet size. MQTT 5 brokers report them in the CONNACK. A broker that speaks 3.1.1 closes the connection on
 * a message beyond its limits. A broker of either version may close it on a CONNECT whose will is beyond them. So after
 * a CONNECT without an answer, the next one has no will. If that is answered, the will was the cause. Then at most five
 * more connects find out which property of the will the broker refuses.
 *
 * A status on which the broker closes the connection is found in the same way. From the second close on, statuses are
 * sent one at a time. A status that was alone in flight at two closes, and was not acknowledged in between, is left
 * out. If a smaller status was accepted before, all statuses of its size are left out. If not, no status is sent for a
 * minute, then two, up to an hour. Barriers are still sent.
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
	              HW_FORM_ASK, /* without the will, only to see whether the broker answers */
	              HW_FORM_AGAIN,
	              HW_FORM_NOT_RETAINED,
	              HW_FORM_QOS_0,
	              HW_FORM_NEITHER,
	              HW_FORM_NO_WILL
};

enum hw_missing_feature {
	HW_MISSING_RETAIN = 1,
	HW_MISSING_QOS = 2,
	HW_MISSING_WILL = 4,
	HW_MISSING_PACKET = 8,
	HW_MISSING_STATUS = 16
};

/* All zero at first. */
struct hw_limits {
	enum hw_limits_form form;
	bool settled;        /* the broker has answered a CONNECT of this form */
	unsigned known;      /* enum hw_missing_feature: the known limits */
	unsigned reported;   /* enum hw_missing_feature: the limits that have been reported */
	size_t packet_max;   /* bytes; 0: unknown */
	size_t taken;        /* bytes of the largest acknowledged status */
	unsigned thrown_out; /* closed connections with statuses in flight */
	unsigned calm;       /* acknowledged statuses since then */
	/* subject of the status that was alone in flight at the last close, and was not acknowledged since; 0: none */
	uint64_t suspect;
	unsigned banned; /* number of pauses of all statuses */
	int64_t banned_until_ns;
};

/* The form of the next CONNECT. False: without a will. */
bool hw_limits_will(const struct hw_limits *l, bool *retain, int *qos);
/* A CONNECT was not answered (refusal 0), or refused with this CONNACK code of MQTT 5. True if another form must be
 * tried at once, without a report. */
bool hw_limits_failed(struct hw_limits *l, int refusal);
/* A CONNECT was answered with these limits (packet_max 0: not reported). False if the CONNECT was only a test
 * without the will. */
bool hw_limits_answered(struct hw_limits *l, bool retain, int qos_max, size_t packet_max);
/* The broker was unreachable: it may have another configuration when it is back. */
void hw_limits_forget(struct hw_limits *l);

/* Whether a packet of this size is beyond the broker's limit. */
bool hw_limits_too_long(const struct hw_limits *l, size_t bytes);
/* Whether a status of this size may be sent now. */
bool hw_limits_takes(const struct hw_limits *l, size_t bytes, int64_t now_ns);
/* Whether statuses must be sent one at a time. */
bool hw_limits_careful(const struct hw_limits *l);
/* A status with this subject was acknowledged, so it is not the cause of a close. */
void hw_limits_taken(struct hw_limits *l, uint64_t subject, size_t bytes);
/* The broker closed the connection with `n` statuses in flight, the oldest with this subject (0: unknown, never
 * suspected). */
void hw_limits_thrown_out(struct hw_limits *l, unsigned n, uint64_t subject, size_t bytes, int64_t now_ns);

/* A known limit that has not been reported yet; 0: none. It counts as reported from now on. */
enum hw_missing_feature hw_limits_news(struct hw_limits *l);
/* Writes the consequence and the remedy of a limit. */
void hw_limits_text(const struct hw_limits *l, enum hw_missing_feature which, char *to, size_t size);

#endif
