/* SPDX-License-Identifier: MIT */
/*
 * Why a connection to the broker could not be had, or was lost: one sentence that says what to do, and what the failure
 * means for the next attempt (backoff.h). The library reports failures in five different ways: return code, errno,
 * resolver code, CONNACK and DISCONNECT; and says what TLS minded only to a log callback. They end here.
 */
#ifndef HW_MQTT_WHY_H
#define HW_MQTT_WHY_H

#include <stdbool.h>

#include "mqtt/backoff.h"
#include "mqtt/mqtt.h"
#include "mqtt/port_protocol.h"

struct mosquitto;

#define HW_WHY_TEXT 256

enum hw_link_state {
	HW_LINK_CLOSED,
	HW_LINK_OPENING, /* connected, waiting for CONNACK */
	HW_LINK_OPEN
};

/* Of one link, by the thread that owns it. */
struct hw_why {
	const struct hw_mqtt_conf *conf; /* of the link; borrowed */
	bool explained;                  /* `text` was set by who knew best */
	char text[HW_WHY_TEXT];          /* of the last failure */
	char said[HW_WHY_TEXT];          /* what the owner was told of it */
	char tls[128];                   /* what TLS minded first during the handshake */
	long tls_verdict;                /* on the broker's certificate; 0: none */
	enum hw_fault fault;             /* of the last failure */
	int refusal;                     /* what the CONNACK said; 0: nothing, or yes */
	bool answered;                   /* a CONNACK of this broker said yes, in this run */
	enum hw_port_protocol port;      /* what it was found to speak since it last answered; tried once */
	bool port_tried;
};

/* A new attempt: nothing is known of it. What was said of the last one stays. */
void hw_why_begin(struct hw_why *w);
/* Sets `text`, unless the reason is known already. */
void hw_why_say(struct hw_why *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The broker said no: sets `text` in any case, and the back-off that goes with it. */
void hw_why_refuse(struct hw_why *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A CONNACK that says yes. */
void hw_why_answered(struct hw_why *w);
/* A CONNACK that says no, with this code. */
void hw_why_refused(struct hw_why *w, int reason);
/* A DISCONNECT of the broker's, with its reason of MQTT 5. */
void hw_why_disconnected(struct hw_why *w, int reason);
/* An error line of the library, while the connection is made. */
void hw_why_log(struct hw_why *w, struct mosquitto *m, const char *line);

/* Whether a library call that returned this means that the broker closed the connection without a word. */
bool hw_why_is_close(int rc);
/* What a library call returned, with the errno it left. `taken`: the broker has closed the connection as often as it
 * does when another client has the same id. Nothing, if the reason is known already. */
void hw_why_lost(struct hw_why *w, enum hw_link_state state, bool taken, int rc, int err);

#endif
