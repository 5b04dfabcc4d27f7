/* SPDX-License-Identifier: MIT */
/*
 * A connection to the broker.
 *
 * The library does not bound the time to a CONNACK, judges a link by PINGRESP alone, reports failures in five different
 * ways (return code, errno, resolver code, CONNACK, DISCONNECT), and says what TLS minded only to a log callback. This
 * file is where that ends: its users see open, lost and one sentence.
 */
#include "mqtt/link.h"

#include <dlfcn.h>
#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "heartwheel/time.h"
#include "mqtt/ahead.h"

#define HANDSHAKE_NS        (10 * HW_NS_PER_S)
#define GOOD_AFTER_NS       (10 * HW_NS_PER_S) /* a link that was up this long was good: back-off starts anew */
#define BACKOFF_MAX_S       60
#define QUICK_MIN_MS        50 /* the first retry: a restarted broker is the usual cause */
#define QUICK_SPREAD_MS     200
#define TEND_NS             HW_NS_PER_S /* who is awake anyway tends no more often */
#define KEEPALIVE_MIN_S     5           /* the library takes no less */
#define RECEIVE_MAX_DEFAULT 65535

/* The library sets up TLS once per process, unguarded: the first connection does it alone. */
static pthread_mutex_t tls_gate = PTHREAD_MUTEX_INITIALIZER;

int64_t hw_link_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * HW_NS_PER_S + t.tv_nsec;
}

/* --- words */

void hw_link_say(struct hw_link *l, const char *format, ...)
{
	if (l->explained)
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(l->why, sizeof(l->why), format, args);
	va_end(args);
	l->explained = true;
}

static void say_errno(struct hw_link *l, int err)
{
	const struct hw_mqtt_conf *c = &l->conf;
	if (err == ECONNREFUSED)
		hw_link_say(l, "connection to %s:%d refused: is the broker running?", c->host, c->port);
	else if (err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH)
		hw_link_say(l, "cannot reach %s:%d (%s): is [mqtt] host right?", c->host, c->port, strerror(err));
	else
		hw_link_say(l, "connection to %s:%d failed: %s", c->host, c->port,
		            err ? strerror(err) : "closed by the other side");
}

/*
 * Asks the TLS library that libmosquitto brought with it, found at run time: nothing else here needs it, and one
 * sentence is not worth a dependency. The verdict on the peer's certificate, or 0.
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
 * Whether the broker's alert is about our certificate. In TLS 1.3 the handshake is over for us before the broker looks
 * at it: whether its alert is still read before the connection is closed depends on the moment, and must not change
 * what is said.
 */
static bool alert_of_certificate(const char *words)
{
	return strstr(words, "alert") && (strstr(words, "certificate") || strstr(words, "unknown ca") ||
	                                  strstr(words, "decrypt error") || strstr(words, "access denied"));
}

static void say_tls(struct hw_link *l)
{
	enum { NOT_YET_VALID = 9, EXPIRED = 10, SELF_SIGNED = 18, SELF_SIGNED_CA = 19, NO_ISSUER = 20, NO_LEAF = 21 };
	const struct hw_mqtt_conf *c = &l->conf;
	long code = l->tls_verdict;
	const char *fault = verdict_words(code);
	if (strstr(l->tls, "host name"))
		hw_link_say(l, "TLS with %s:%d failed: the broker's certificate is not made out to %s", c->host,
		            c->port, c->host);
	else if (fault && (code == EXPIRED || code == NOT_YET_VALID))
		hw_link_say(l, "TLS with %s:%d failed: the broker's %s: renew it, or set the clock", c->host, c->port,
		            fault);
	else if (fault && code >= SELF_SIGNED && code <= NO_LEAF)
		hw_link_say(l, "TLS with %s:%d failed: %s: is [mqtt] tls_ca who signed the broker's certificate?",
		            c->host, c->port, fault);
	else if (fault || (l->tls[0] && !alert_of_certificate(l->tls)))
		hw_link_say(l, "TLS with %s:%d failed: %s", c->host, c->port, fault ? fault : l->tls);
	else
		hw_link_say(l, "TLS with %s:%d was broken off by the broker: %s", c->host, c->port,
		            c->tls_cert[0] ? "does it accept [mqtt] tls_cert?"
		                           : "does it ask for a certificate, [mqtt] tls_cert and tls_key?");
}

/* One connection after the other is closed as soon as it is up: most likely two clients that throw each other out. */
static void say_closed(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	bool soon = l->up_ns && hw_link_clock() - l->up_ns < GOOD_AFTER_NS;
	if (soon && l->closed_soon)
		hw_link_say(l,
		            "connection to %s:%d lost again: closed by the broker: is another client connected as "
		            "'%s'? Each monitor needs a node_id of its own",
		            c->host, c->port, c->client_id);
	else
		hw_link_say(l, "connection to %s:%d lost: closed by the broker", c->host, c->port);
	l->closed_soon = soon;
}

void hw_link_lost(struct hw_link *l, int rc, int err)
{
	const struct hw_mqtt_conf *c = &l->conf;
	bool opening = l->state != HW_LINK_OPEN;
	if (rc == MOSQ_ERR_EAI)
		hw_link_say(l, "cannot resolve %s: %s; see [mqtt] host", c->host, gai_strerror(err));
	else if (rc == MOSQ_ERR_TLS || (opening && l->tls[0]) ||
	         (opening && c->tls_ca[0] && (err == EPROTO || l->state == HW_LINK_OPENING)))
		say_tls(l);
	else if (rc == MOSQ_ERR_KEEPALIVE)
		hw_link_say(l, "%s:%d has not answered for %d s: connection closed", c->host, c->port, c->keepalive_s);
	else if (rc == MOSQ_ERR_ERRNO)
		say_errno(l, err);
	else if (opening && (rc == MOSQ_ERR_CONN_LOST || rc == MOSQ_ERR_PROTOCOL || rc == MOSQ_ERR_MALFORMED_PACKET))
		hw_link_say(l, "%s:%d closed the connection before it answered: is it an MQTT broker%s?", c->host,
		            c->port, c->tls_ca[0] ? "" : ", and without TLS");
	else if (rc == MOSQ_ERR_CONN_LOST || rc == MOSQ_ERR_NO_CONN || rc == MOSQ_ERR_SUCCESS)
		say_closed(l);
	else
		hw_link_say(l, "connection to %s:%d failed: %s", c->host, c->port, mosquitto_strerror(rc));
}

/* MQTT 3.1.1 and 5 number the same refusals differently. */
static void say_refused(struct hw_link *l, int reason)
{
	const struct hw_mqtt_conf *c = &l->conf;
	switch (reason) {
	case CONNACK_REFUSED_PROTOCOL_VERSION:
	case MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION:
		hw_link_say(l, "the broker does not speak MQTT %s: set [mqtt] protocol = %s",
		            c->protocol == 5 ? "5" : "3.1.1", c->protocol == 5 ? "3.1.1" : "5");
		break;
	case CONNACK_REFUSED_IDENTIFIER_REJECTED:
	case MQTT_RC_CLIENTID_NOT_VALID:
		hw_link_say(l, "client id '%s' refused by the broker: see [mqtt] client_id_prefix", c->client_id);
		break;
	case CONNACK_REFUSED_BAD_USERNAME_PASSWORD:
	case CONNACK_REFUSED_NOT_AUTHORIZED:
	case MQTT_RC_BAD_USERNAME_OR_PASSWORD:
	case MQTT_RC_NOT_AUTHORIZED:
		hw_link_say(l, "user name or password refused by the broker: see [mqtt] username, password_file");
		break;
	case CONNACK_REFUSED_SERVER_UNAVAILABLE:
		hw_link_say(l, "refused by the broker: not available now");
		break;
	default:
		hw_link_say(l, "refused by the broker: %s", mosquitto_reason_string(reason));
	}
}

/* --- callbacks of the library */

static void on_connect(struct mosquitto *m, void *arg, int reason, int flags, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	uint16_t max = RECEIVE_MAX_DEFAULT;
	(void)m;
	(void)flags;
	l->progress++;
	if (reason) {
		say_refused(l, reason);
		return;
	}
	mosquitto_property_read_int16(properties, MQTT_PROP_RECEIVE_MAXIMUM, &max, false);
	l->receive_max = max;
	l->state = HW_LINK_OPEN;
}

static void on_disconnect(struct mosquitto *m, void *arg, int reason, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	(void)m;
	(void)properties;
	if (reason == MQTT_RC_SESSION_TAKEN_OVER)
		hw_link_say(l, "another client has connected as '%s': give each monitor a node_id of its own",
		            l->conf.client_id);
	else if (reason >= MQTT_RC_UNSPECIFIED)
		hw_link_say(l, "connection closed by the broker: %s", mosquitto_reason_string(reason));
}

/* Only until the CONNACK: with a log callback the library formats a line for every message. */
static void on_log(struct mosquitto *m, void *arg, int level, const char *line)
{
	struct hw_link *l = arg;
	if (level != MOSQ_LOG_ERR)
		return;
	if (l->tls_verdict == 0) /* now or never: the library frees the session when connect() itself fails */
		l->tls_verdict = certificate_verdict(m);
	if (l->tls[0]) /* the first is the cause */
		return;
	const char *colon = strncmp(line, "OpenSSL", 7) == 0 ? strrchr(line, ':') : NULL;
	if (strncmp(line, "Error: ", 7) == 0)
		line += 7;
	snprintf(l->tls, sizeof(l->tls), "%s", colon ? colon + 1 : line);
}

/* --- making one */

static void drop_strings(struct hw_mqtt_conf *c)
{
	const char *const all[] = {c->host,     c->username, c->password,  c->tls_ca,
	                           c->tls_cert, c->tls_key,  c->client_id, c->barrier_topic};
	if (c->password)
		explicit_bzero((char *)(uintptr_t)c->password, strlen(c->password));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free((char *)(uintptr_t)all[i]);
}

int hw_link_init(struct hw_link *l, const struct hw_mqtt_conf *conf)
{
	*l = (struct hw_link){.conf = *conf};
	const char **all[] = {&l->conf.host,     &l->conf.username, &l->conf.password,  &l->conf.tls_ca,
	                      &l->conf.tls_cert, &l->conf.tls_key,  &l->conf.client_id, &l->conf.barrier_topic};
	bool ok = true;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = strdup(*all[i] ? *all[i] : "");
		ok = ok && *all[i];
	}
	if (l->conf.keepalive_s < KEEPALIVE_MIN_S)
		l->conf.keepalive_s = KEEPALIVE_MIN_S;
	if (ok && mosquitto_lib_init() == MOSQ_ERR_SUCCESS) /* counted by the library; this is the loop's thread */
		return 0;
	drop_strings(&l->conf);
	return -ENOMEM;
}

/* The library's own clean-up is left out: a thread left behind in the resolver may still be in it. */
void hw_link_fini(struct hw_link *l)
{
	if (l->m)
		mosquitto_destroy(l->m);
	l->m = NULL;
	free(l->ahead);
	drop_strings(&l->conf);
}

static bool readable(struct hw_link *l, const char *key, const char *path)
{
	FILE *f = path[0] ? fopen(path, "re") : NULL;
	if (!f && path[0])
		hw_link_say(l, "cannot read [mqtt] %s = %s: %s", key, path, strerror(errno));
	if (f)
		fclose(f);
	return f || !path[0];
}

static int set_tls(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	if (!readable(l, "tls_ca", c->tls_ca) || !readable(l, "tls_cert", c->tls_cert) ||
	    !readable(l, "tls_key", c->tls_key))
		return -1;
	int rc = mosquitto_tls_set(l->m, c->tls_ca, NULL, c->tls_cert[0] ? c->tls_cert : NULL,
	                           c->tls_key[0] ? c->tls_key : NULL, NULL);
	if (rc)
		hw_link_say(l, "TLS cannot be set up (%s): tls_cert and tls_key go together", mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

static int set_options(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	int version = c->protocol == 5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311;
	int rc = mosquitto_int_option(l->m, MOSQ_OPT_PROTOCOL_VERSION, version);
	if (!rc)
		rc = mosquitto_int_option(l->m, MOSQ_OPT_TCP_NODELAY, 1); /* acknowledgements must not wait either */
	if (!rc) /* the broker's max_inflight_messages decides, not the library's 20 */
		rc = mosquitto_int_option(l->m, MOSQ_OPT_RECEIVE_MAXIMUM, RECEIVE_MAX_DEFAULT);
	if (!rc && (c->username[0] || c->password[0]))
		rc = mosquitto_username_pw_set(l->m, c->username, c->password[0] ? c->password : NULL);
	if (rc) {
		hw_link_say(l, "MQTT cannot be set up: %s", mosquitto_strerror(rc));
		return -1;
	}
	mosquitto_connect_v5_callback_set(l->m, on_connect);
	mosquitto_disconnect_v5_callback_set(l->m, on_disconnect);
	mosquitto_log_callback_set(l->m, on_log);
	return c->tls_ca[0] ? set_tls(l) : 0;
}

int hw_link_open(struct hw_link *l)
{
	static bool tls_is_set_up; /* under the gate */
	const struct hw_mqtt_conf *c = &l->conf;
	l->explained = false;
	l->tls[0] = '\0';
	l->tls_verdict = 0;
	l->up_ns = 0;
	l->m = mosquitto_new(c->client_id, true, l);
	if (!l->m) {
		hw_link_say(l, "MQTT cannot be set up: %s", strerror(errno));
		return -1;
	}
	if (set_options(l) || l->prepare(l))
		return -1;
	bool alone = false;
	if (c->tls_ca[0]) {
		pthread_mutex_lock(&tls_gate);
		alone = !tls_is_set_up;
		if (!alone)
			pthread_mutex_unlock(&tls_gate);
	}
	int rc = mosquitto_connect(l->m, c->host, c->port, c->keepalive_s), err = errno;
	if (alone) {
		tls_is_set_up = rc == MOSQ_ERR_SUCCESS;
		pthread_mutex_unlock(&tls_gate);
	}
	if (rc) {
		hw_link_lost(l, rc, err);
		return -1;
	}
	l->state = HW_LINK_OPENING;
	hw_ahead_begin(l);
	l->opened_ns = l->misc_ns = hw_link_clock();
	return 0;
}

/* --- using it */

int hw_link_socket(const struct hw_link *l)
{
	return l->m ? mosquitto_socket(l->m) : -1;
}

bool hw_link_wants_write(const struct hw_link *l)
{
	return l->m && mosquitto_want_write(l->m);
}

/*
 * The library reads one packet a call, or several when TLS or messages in flight say so. EAGAIN without a callback in
 * between is what tells that nothing is left: neither FIONREAD nor poll() knows what TLS has decrypted already.
 */
enum hw_link_read hw_link_read_one(struct hw_link *l)
{
	uint64_t before = l->progress;
	errno = 0;
	int rc = mosquitto_loop_read(l->m, 1), err = errno;
	if (rc || mosquitto_socket(l->m) < 0) {
		hw_link_lost(l, rc, err);
		return HW_LINK_LOST;
	}
	return err == EAGAIN && l->progress == before ? HW_LINK_DRAINED : HW_LINK_MORE;
}

static enum hw_link_read read_by_library(struct hw_link *l, unsigned budget)
{
	if (l->state == HW_LINK_OPENING)
		budget = 1; /* a TLS handshake has no callbacks to tell progress by */
	for (unsigned i = 0; i < budget; i++) {
		if (l->has_room && !l->has_room(l->owner))
			return HW_LINK_NO_ROOM;
		enum hw_link_read got = hw_link_read_one(l);
		if (got != HW_LINK_MORE)
			return got;
	}
	if (l->state == HW_LINK_OPEN)
		mosquitto_log_callback_set(l->m, NULL);
	return HW_LINK_MORE;
}

enum hw_link_read hw_link_read(struct hw_link *l, unsigned budget)
{
	return l->ahead && l->state == HW_LINK_OPEN ? hw_ahead_read(l, budget) : read_by_library(l, budget);
}

int hw_link_write(struct hw_link *l)
{
	errno = 0;
	int rc = mosquitto_loop_write(l->m, 1), err = errno;
	if (!rc && mosquitto_socket(l->m) >= 0)
		return 0;
	hw_link_lost(l, rc, err);
	return -1;
}

static int64_t tend_within_ns(const struct hw_link *l)
{
	return l->conf.keepalive_s * HW_NS_PER_S / 4;
}

/*
 * The library closes a live link when the PINGRESP is still behind a backlog. So it is asked only when there is none;
 * else an UNSUBSCRIBE from what was never subscribed tells the broker that we live, and needs no right.
 */
int hw_link_tend(struct hw_link *l, int64_t now_ns, bool drained)
{
	int64_t quiet_ns = now_ns - l->misc_ns;
	if (l->state != HW_LINK_OPEN || quiet_ns < (drained ? TEND_NS : tend_within_ns(l)))
		return 0;
	l->misc_ns = now_ns;
	int rc;
	if (drained) {
		rc = mosquitto_loop_misc(l->m);
	} else {
		char nothing[256];
		snprintf(nothing, sizeof(nothing), "%.240s/none", l->conf.barrier_topic);
		rc = mosquitto_unsubscribe(l->m, NULL, nothing);
	}
	int err = errno;
	if (!rc && mosquitto_socket(l->m) >= 0)
		return 0;
	hw_link_lost(l, rc, err);
	return -1;
}

/*
 * The library sees to its keepalive only when asked. A PINGREQ that is a quarter late is within the half that the
 * broker grants.
 */
int hw_link_rest_ms(const struct hw_link *l, int64_t now_ns)
{
	int64_t rest_ns = l->misc_ns + tend_within_ns(l) - now_ns;
	return rest_ns > 0 ? (int)((rest_ns + HW_NS_PER_MS - 1) / HW_NS_PER_MS) : 0;
}

bool hw_link_overdue(struct hw_link *l, int64_t now_ns)
{
	if (l->up_ns || now_ns - l->opened_ns < HANDSHAKE_NS)
		return false;
	hw_link_say(l, "%s:%d accepts connections but does not answer: is it an MQTT broker, and is it alive?",
	            l->conf.host, l->conf.port);
	return true;
}

/* --- up and down */

void hw_link_up(struct hw_link *l, int64_t now_ns)
{
	l->up_ns = now_ns;
	l->said[0] = '\0';
	l->why[0] = '\0';
	l->explained = false;
}

static int64_t spread(int64_t below)
{
	uint32_t random;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)hw_link_clock();
	return (int64_t)random % below;
}

static int64_t backoff_ms(unsigned failures)
{
	if (failures == 0)
		return QUICK_MIN_MS + spread(QUICK_SPREAD_MS);
	int64_t ms = 1000 * (failures > 6 ? BACKOFF_MAX_S : INT64_C(1) << (failures - 1));
	return ms * 3 / 4 + spread(ms / 2);
}

static void close_handle(struct hw_link *l)
{
	if (l->m)
		mosquitto_destroy(l->m);
	l->m = NULL;
	l->state = HW_LINK_CLOSED;
	l->explained = false;
	l->up_ns = 0;
}

bool hw_link_down(struct hw_link *l, int64_t now_ns)
{
	bool was_up = l->up_ns != 0, news = was_up || strcmp(l->why, l->said) != 0;
	if (was_up && now_ns - l->up_ns >= GOOD_AFTER_NS)
		l->failures = 0;
	l->retry_ns = now_ns + backoff_ms(l->failures) * HW_NS_PER_MS;
	l->failures++;
	memcpy(l->said, l->why, sizeof(l->said));
	close_handle(l);
	return news;
}

void hw_link_leave(struct hw_link *l)
{
	if (l->m && l->state == HW_LINK_OPEN)
		mosquitto_disconnect(l->m);
	close_handle(l);
}

/* --- threads */

int hw_thread_start(pthread_t *t, void *(*main)(void *), void *arg, const char *name)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(t, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(*t, name);
	return -rc;
}

int hw_thread_end(pthread_t t, int64_t timeout_ms)
{
	int64_t until = hw_link_clock() + timeout_ms * HW_NS_PER_MS;
	struct timespec at = {.tv_sec = until / HW_NS_PER_S, .tv_nsec = until % HW_NS_PER_S};
	int rc = pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &at);
	if (rc == ETIMEDOUT)
		pthread_detach(t);
	return -rc;
}
