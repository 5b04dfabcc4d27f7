/* SPDX-License-Identifier: MIT */
/*
 * The reason why a connection to the broker failed or was lost: one sentence with the remedy, and the kind of fault for
 * the next attempt (backoff.h). The library reports failures in five ways: return code, errno, resolver code, CONNACK
 * and DISCONNECT. Details of a TLS failure go only to a log callback. This module collects all of them.
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

/* The reason of one link. Only the thread that owns the link uses it. */
struct hw_why {
	const struct hw_mqtt_conf *conf; /* of the link; borrowed */
	bool explained;                  /* `text` is set; a less specific reason must not replace it */
	char text[HW_WHY_TEXT];          /* the reason of the last failure */
	char reported[HW_WHY_TEXT];      /* the reason that was last reported to the owner */
	char tls[128];                   /* the first TLS error of the handshake */
	long tls_verdict;                /* verification result of the broker's certificate; 0: none */
	enum hw_fault fault;             /* of the last failure */
	int keepalive_s;                 /* of the connection */
	int refusal;                     /* reason code of the CONNACK; 0: none, or success */
	bool answered;                   /* this broker has accepted a CONNECT in this run */
	enum hw_port_protocol port;      /* the protocol found on the port since the last answer */
	bool port_tried;
};

/* Called when a new attempt begins. Clears the reason, but keeps the reason that was last reported. */
void hw_why_begin(struct hw_why *w);
/* Sets `text`, unless the reason is known already. */
void hw_why_set(struct hw_why *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets `text` to the reason why the broker has refused, and sets the fault that decides about the next attempt. */
void hw_why_refuse(struct hw_why *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A CONNACK with success. */
void hw_why_answered(struct hw_why *w);
/* A CONNACK with this refusal code. */
void hw_why_refused(struct hw_why *w, int reason);
/* Called when the broker has sent a DISCONNECT with this MQTT 5 reason code. */
void hw_why_disconnected(struct hw_why *w, int reason);
/* An error line of the library's log during the connect. */
void hw_why_log(struct hw_why *w, struct mosquitto *m, const char *line);

/* Whether this result of the library means that the broker closed the connection without a reason. */
bool hw_why_is_close(int rc);
/* Sets `text` from a result of the library and its errno, unless the reason is known already. `taken`: the way in which
 * connections were closed suggests another client with the same id. */
void hw_why_lost(struct hw_why *w, enum hw_link_state state, bool taken, int rc, int err);

#endif
