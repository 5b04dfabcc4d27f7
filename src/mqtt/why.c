/* SPDX-License-Identifier: MIT */
#include "mqtt/why.h"

#include <dlfcn.h>
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hw_why_begin(struct hw_why *w)
{
	w->explained = false;
	w->fault = HW_FAULT_UNREACHED;
	w->refusal = 0;
	w->tls[0] = '\0';
	w->tls_verdict = 0;
}

void hw_why_set(struct hw_why *w, const char *format, ...)
{
	if (w->explained)
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(w->text, sizeof(w->text), format, args);
	va_end(args);
	w->explained = true;
}

void hw_why_refuse(struct hw_why *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(w->text, sizeof(w->text), format, args);
	va_end(args);
	w->explained = true;
	w->fault = HW_FAULT_REFUSED;
}

static void set_errno(struct hw_why *w, int err)
{
	const struct hw_mqtt_conf *c = w->conf;
	if (err == ECONNREFUSED)
		hw_why_set(w, "connection to %s:%d refused: is the broker running?", c->host, c->port);
	else if (err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH)
		hw_why_set(w, "cannot reach %s:%d (%s): is [mqtt] host right?", c->host, c->port, strerror(err));
	else
		hw_why_set(w, "connection to %s:%d failed: %s", c->host, c->port,
		           err ? strerror(err) : "closed by the other side");
}

/*
 * Asks the TLS library that libmosquitto has loaded for the result of the check of the peer's certificate; 0: there is
 * none. The function is looked up at run time: one sentence for the log does not justify a dependency.
 */
static long certificate_verdict(struct mosquitto *m)
{
	long (*verdict)(const void *);
	const void *ssl = mosquitto_ssl_get(m);
	*(void **)(&verdict) = dlsym(RTLD_DEFAULT, "SSL_get_verify_result");
	return ssl && verdict ? verdict(ssl) : 0;
}

static const char *verdict_words(long verdict)
{
	const char *(*words)(long);
	*(void **)(&words) = dlsym(RTLD_DEFAULT, "X509_verify_cert_error_string");
	return verdict && words ? words(verdict) : NULL;
}

/*
 * Whether the broker's alert is about our certificate. In TLS 1.3, our side of the handshake ends before the broker
 * checks our certificate. The broker's alert then arrives later, or the connection is closed or reset before the alert
 * is read. set_tls() reports the same reason in all these cases.
 */
static bool alert_of_certificate(const char *words)
{
	return strstr(words, "alert") && (strstr(words, "certificate") || strstr(words, "unknown ca") ||
	                                  strstr(words, "decrypt error") || strstr(words, "access denied"));
}

static void set_tls(struct hw_why *w)
{
	enum { NOT_YET_VALID = 9, EXPIRED = 10, SELF_SIGNED = 18, SELF_SIGNED_CA = 19, NO_ISSUER = 20, NO_LEAF = 21 };
	const struct hw_mqtt_conf *c = w->conf;
	long code = w->tls_verdict;
	const char *fault = verdict_words(code);
	if (strstr(w->tls, "host name"))
		hw_why_set(w, "TLS with %s:%d failed: the broker's certificate is not for %s", c->host, c->port,
		           c->host);
	else if (fault && (code == EXPIRED || code == NOT_YET_VALID))
		hw_why_set(w, "TLS with %s:%d failed: the broker's %s: renew it, or set the clock", c->host, c->port,
		           fault);
	else if (fault && code >= SELF_SIGNED && code <= NO_LEAF)
		hw_why_set(w, "TLS with %s:%d failed: %s: did [mqtt] tls_ca sign the broker's certificate?", c->host,
		           c->port, fault);
	else if (fault || (w->tls[0] && !strstr(w->tls, "reset by peer") && !alert_of_certificate(w->tls)))
		hw_why_set(w, "TLS with %s:%d failed: %s", c->host, c->port, fault ? fault : w->tls);
	else
		hw_why_set(w, "the broker at %s:%d ended the TLS handshake: %s", c->host, c->port,
		           c->tls_cert[0] ? "does it accept [mqtt] tls_cert?"
		                          : "does it ask for a certificate, [mqtt] tls_cert and tls_key?");
}

/* Returns the remedy if another client has the same client id. In a cluster, an eviction by another node has the same
 * effect. */
static const char *taken_hint(const struct hw_mqtt_conf *c)
{
	return c->evictable ? "another node has disconnected this node to take over its partitions; if that recurs, "
	                      "give each node its own node_id"
	                    : "give each monitor its own node_id";
}

/* The broker closed the connection without a reason. */
static void set_closed(struct hw_why *w, bool taken)
{
	const struct hw_mqtt_conf *c = w->conf;
	if (taken) {
		w->fault = HW_FAULT_TAKEN;
		hw_why_set(w,
		           "connection to %s:%d lost again: closed by the broker: is another client connected as "
		           "'%s'? %s",
		           c->host, c->port, c->client_id,
		           c->evictable
		                   ? "Another node may have disconnected this node; each node needs its own node_id"
		                   : "Each monitor needs its own node_id");
	} else {
		hw_why_set(w, "connection to %s:%d lost: closed by the broker", c->host, c->port);
	}
}

/* Returns the kind of fault, which decides about the next attempt, unless a more specific kind is known. */
static enum hw_fault fault_of(enum hw_link_state state, int rc, int err)
{
	bool closed = rc != MOSQ_ERR_EAI && rc != MOSQ_ERR_TLS && rc != MOSQ_ERR_KEEPALIVE;
	if (rc == MOSQ_ERR_KEEPALIVE || (rc == MOSQ_ERR_ERRNO && err == ECONNREFUSED))
		return HW_FAULT_AWAY;
	if (closed && state == HW_LINK_OPEN)
		return HW_FAULT_CLOSED;
	return closed && state == HW_LINK_OPENING ? HW_FAULT_UNANSWERED : HW_FAULT_UNREACHED;
}

void hw_why_answered(struct hw_why *w)
{
	w->answered = true;
	w->port_tried = false;
	w->port = HW_PORT_UNKNOWN;
}

/* Whether the port speaks the other protocol: TLS if we do not use TLS, or MQTT without TLS if we do. */
static bool set_port(struct hw_why *w)
{
	const struct hw_mqtt_conf *c = w->conf;
	bool tls = c->tls_ca[0] != '\0';
	if (!w->port_tried)
		w->port = hw_port_protocol_try(c->host, c->port, tls ? HW_PORT_MQTT : HW_PORT_TLS);
	w->port_tried = true;
	if (w->port == HW_PORT_TLS)
		hw_why_set(w, "%s:%d uses TLS: set [mqtt] tls_ca, or the port without TLS, usually 1883", c->host,
		           c->port);
	else if (w->port == HW_PORT_MQTT)
		hw_why_set(w,
		           "%s:%d uses MQTT without TLS: remove [mqtt] tls_ca, or set the port with TLS, usually 8883",
		           c->host, c->port);
	return w->port != HW_PORT_UNKNOWN;
}

/* Explains a CONNECT that was not answered. RabbitMQ 3.10, NATS 2.9 and ActiveMQ 5.17 close the connection on an MQTT 5
 * CONNECT. */
static void set_unanswered(struct hw_why *w)
{
	const struct hw_mqtt_conf *c = w->conf;
	if (w->answered) {
		hw_why_set(w,
		           "%s:%d closed the connection before it answered, although it has answered before: it may be "
		           "starting, or have no room for clients",
		           c->host, c->port);
		return;
	}
	hw_why_set(w, "%s:%d closed the connection before it answered: is it an MQTT broker%s?%s", c->host, c->port,
	           c->tls_ca[0] ? "" : ", and without TLS",
	           c->protocol == 5 ? " If it does not support MQTT 5, try [mqtt] protocol = 3.1.1" : "");
}

bool hw_why_is_close(int rc)
{
	return rc == MOSQ_ERR_CONN_LOST || rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_SUCCESS;
}

void hw_why_lost(struct hw_why *w, enum hw_link_state state, bool taken, int rc, int err)
{
	const struct hw_mqtt_conf *c = w->conf;
	bool opening = state != HW_LINK_OPEN;
	if (w->explained)
		return;
	w->fault = fault_of(state, rc, err);
	bool unanswered = opening && (state == HW_LINK_OPENING || rc != MOSQ_ERR_ERRNO) && rc != MOSQ_ERR_EAI &&
	                  rc != MOSQ_ERR_KEEPALIVE;
	bool certificate = w->tls_verdict || alert_of_certificate(w->tls);
	if (unanswered && !w->answered && !certificate && set_port(w))
		return;
	if (rc == MOSQ_ERR_EAI)
		hw_why_set(w, "cannot resolve %s: %s; see [mqtt] host", c->host, gai_strerror(err));
	else if (rc == MOSQ_ERR_TLS || (opening && w->tls[0]) ||
	         (opening && c->tls_ca[0] && (err == EPROTO || state == HW_LINK_OPENING)))
		set_tls(w);
	else if (rc == MOSQ_ERR_KEEPALIVE)
		hw_why_set(w, "%s:%d has not answered for %d s: connection closed", c->host, c->port, w->keepalive_s);
	else if (rc == MOSQ_ERR_ERRNO)
		set_errno(w, err);
	else if (opening && (rc == MOSQ_ERR_CONN_LOST || rc == MOSQ_ERR_PROTOCOL || rc == MOSQ_ERR_MALFORMED_PACKET))
		set_unanswered(w);
	else if (hw_why_is_close(rc))
		set_closed(w, taken);
	else
		hw_why_set(w, "connection to %s:%d failed: %s", c->host, c->port, mosquitto_strerror(rc));
}

/* Sets the reason of a refusal. MQTT 3.1.1 and 5 use different numbers for the same refusals. */
void hw_why_refused(struct hw_why *w, int reason)
{
	const struct hw_mqtt_conf *c = w->conf;
	switch (reason) {
	case CONNACK_REFUSED_PROTOCOL_VERSION:
	case MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION:
		hw_why_refuse(w, "the broker does not support MQTT %s: set [mqtt] protocol = %s",
		              c->protocol == 5 ? "5" : "3.1.1", c->protocol == 5 ? "3.1.1" : "5");
		break;
	case CONNACK_REFUSED_IDENTIFIER_REJECTED:
	case MQTT_RC_CLIENTID_NOT_VALID:
		hw_why_refuse(w, "client id '%s' refused by the broker: see [mqtt] client_id_prefix", c->client_id);
		break;
	case CONNACK_REFUSED_BAD_USERNAME_PASSWORD:
	case CONNACK_REFUSED_NOT_AUTHORIZED:
	case MQTT_RC_BAD_USERNAME_OR_PASSWORD:
	case MQTT_RC_NOT_AUTHORIZED:
		if (*c->username)
			hw_why_refuse(
				w, "user name or password refused by the broker: see [mqtt] username, password_file");
		else
			hw_why_refuse(w, "the broker refused a client without a user name: set [mqtt] username and "
			                 "password_file; or the last will exceeds the broker's limit on messages");
		break;
	case CONNACK_REFUSED_SERVER_UNAVAILABLE:
		hw_why_refuse(w, "refused by the broker: not available now");
		break;
	default:
		hw_why_refuse(w, "refused by the broker: %s", mosquitto_reason_string(reason));
	}
}

void hw_why_disconnected(struct hw_why *w, int reason)
{
	if (reason >= MQTT_RC_UNSPECIFIED && !w->explained)
		w->fault = reason == MQTT_RC_SESSION_TAKEN_OVER ? HW_FAULT_TAKEN : HW_FAULT_CLOSED;
	if (reason == MQTT_RC_SESSION_TAKEN_OVER)
		hw_why_set(w, "another client has connected as '%s' (session taken over, 0x8E): %s", w->conf->client_id,
		           taken_hint(w->conf));
	else if (reason >= MQTT_RC_UNSPECIFIED)
		hw_why_set(w, "connection closed by the broker: %s", mosquitto_reason_string(reason));
}

void hw_why_log(struct hw_why *w, struct mosquitto *m, const char *line)
{
	if (w->tls_verdict == 0) /* the library frees the TLS session if connect() fails, so the result is read now */
		w->tls_verdict = certificate_verdict(m);
	if (w->tls[0] || !w->conf->tls_ca[0]) /* the first error is the cause */
		return;
	const char *colon = strncmp(line, "OpenSSL", 7) == 0 ? strrchr(line, ':') : NULL;
	if (strncmp(line, "Error: ", 7) == 0)
		line += 7;
	snprintf(w->tls, sizeof(w->tls), "%s", colon ? colon + 1 : line);
}
