/* SPDX-License-Identifier: MIT */
/*
 * The broker's limits: whether it accepts retained messages, QoS 1 and a last will, and the greatest packet size. An
 * MQTT 5 broker reports these limits in the CONNACK. An MQTT 3.1.1 broker closes the connection on a message beyond its
 * limits.
 *
 * Both may close the connection on a CONNECT whose will is beyond the limits. So if a CONNECT gets no answer, the next
 * one has no will. If the broker answers the CONNECT without a will, the will was the cause. At most five more CONNECTs
 * then find out which property of the will the broker refuses.
 *
 * A status on which the broker closes the connection is found in a similar way. From the second close on, statuses are
 * sent one at a time. If the same status was alone in flight at two closes, and was not acknowledged between them, the
 * publisher stops sending it. If a smaller status was accepted before, the publisher also skips all statuses of at
 * least that size. Otherwise it sends no status for a minute, then for two, up to an hour. Barriers are still sent.
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
	              HW_FORM_ASK, /* without the will, as a test whether the broker answers */
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
	unsigned reported;   /* bits of enum hw_missing_feature: limits that are already reported */
	size_t packet_max;   /* bytes; 0: unknown */
	size_t taken;        /* bytes of the largest acknowledged status */
	unsigned thrown_out; /* closed connections with statuses in flight */
	unsigned calm;       /* acknowledged statuses since then */
	/* Subject of the status that was alone in flight at the last close and is not acknowledged since; 0: none */
	uint64_t suspect;
	unsigned banned; /* number of pauses of all statuses */
	int64_t banned_until_ns;
};

/* The form of the next CONNECT. False: without a will. */
bool hw_limits_will(const struct hw_limits *l, bool *retain, int *qos);
/* Called when a CONNECT failed: it got no answer (`refusal` 0), or an MQTT 5 CONNACK with this reason code. Returns
 * true if another form must be tried at once, without a report. */
bool hw_limits_failed(struct hw_limits *l, int refusal);
/* Called when a CONNECT was accepted with these limits (packet_max 0: not reported). Returns false if it was only
 * the test without the will. */
bool hw_limits_answered(struct hw_limits *l, bool retain, int qos_max, size_t packet_max);
/* Forgets the broker's limits. Called when the broker was unreachable, because it may return with another
 * configuration. */
void hw_limits_forget(struct hw_limits *l);

/* Whether a packet of this size is beyond the broker's limit. */
bool hw_limits_too_long(const struct hw_limits *l, size_t bytes);
/* Whether a status of this size may be sent now. */
bool hw_limits_takes(const struct hw_limits *l, size_t bytes, int64_t now_ns);
/* Whether statuses must be sent one at a time. */
bool hw_limits_careful(const struct hw_limits *l);
/* Called when a status with this subject was acknowledged. The status is then not the cause of a close. */
void hw_limits_taken(struct hw_limits *l, uint64_t subject, size_t bytes);
/* Called when the broker closed the connection with `n` statuses in flight. The oldest has this subject; a status
 * with subject 0 is never suspected. */
void hw_limits_closed(struct hw_limits *l, unsigned n, uint64_t subject, size_t bytes, int64_t now_ns);

/* Returns a limit that is known and not reported yet; 0: none. The limit then counts as reported. */
enum hw_missing_feature hw_limits_news(struct hw_limits *l);
/* Writes the consequence and the remedy of a limit. */
void hw_limits_text(const struct hw_limits *l, enum hw_missing_feature which, char *to, size_t size);

#endif
