/* SPDX-License-Identifier: MIT */
/*
 * A connection to the broker.
 *
 * The library does not limit the wait for a CONNACK, and checks a connection only by PINGRESP. This file adds time
 * limits. Its callers see only that a connection opens or is lost, and one sentence with the reason (why.h).
 */
#include "mqtt/link.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "conf/file.h"
#include "heartwheel/time.h"
#include "mqtt/clock.h"
#include "mqtt/receive.h"

#define HANDSHAKE_NS (10 * HW_NS_PER_S)
/* hw_link_tend() is called at most once in this time, however often the thread wakes up */
#define TEND_NS             HW_NS_PER_S
#define KEEPALIVE_MIN_S     5 /* minimum of the library */
#define RECEIVE_MAX_DEFAULT 65535
#define UNANSWERED_NS       (10 * HW_NS_PER_S)

/* The library initialises TLS once in the process, without a lock. So no other connection is opened at the same time
 * as the first one. */
static pthread_mutex_t tls_gate = PTHREAD_MUTEX_INITIALIZER;

/* --- callbacks of the library */

static struct hw_granted granted(const mosquitto_property *all, int own_keepalive_s)
{
	uint16_t receive = RECEIVE_MAX_DEFAULT, keepalive = (uint16_t)own_keepalive_s;
	uint32_t packet = 0;
	uint8_t qos = 2, retain = 1, shared = 1;
	mosquitto_property_read_int16(all, MQTT_PROP_RECEIVE_MAXIMUM, &receive, false);
	mosquitto_property_read_int32(all, MQTT_PROP_MAXIMUM_PACKET_SIZE, &packet, false);
	mosquitto_property_read_int16(all, MQTT_PROP_SERVER_KEEP_ALIVE, &keepalive, false);
	mosquitto_property_read_byte(all, MQTT_PROP_MAXIMUM_QOS, &qos, false);
	mosquitto_property_read_byte(all, MQTT_PROP_RETAIN_AVAILABLE, &retain, false);
	mosquitto_property_read_byte(all, MQTT_PROP_SHARED_SUB_AVAILABLE, &shared, false);
	return (struct hw_granted){.keepalive_s = keepalive,
	                           .receive_max = receive,
	                           .packet_max = packet,
	                           .qos_max = qos,
	                           .retain = retain,
	                           .shared = shared};
}

static void on_connect(struct mosquitto *m, void *arg, int reason, int flags, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	(void)m;
	(void)flags;
	l->progress++;
	l->why.refusal = reason;
	if (reason) {
		hw_why_refused(&l->why, reason);
		return;
	}
	l->granted = granted(properties, l->conf.keepalive_s);
	l->why.keepalive_s = l->granted.keepalive_s;
	l->state = HW_LINK_OPEN;
	hw_why_answered(&l->why);
}

static void on_disconnect(struct mosquitto *m, void *arg, int reason, const mosquitto_property *properties)
{
	struct hw_link *l = arg;
	(void)m;
	(void)properties;
	hw_why_disconnected(&l->why, reason);
}

/* Called with the library's log lines. Used only until the CONNACK: with a log callback, the library formats a line
 * for every message. */
static void on_log(struct mosquitto *m, void *arg, int level, const char *line)
{
	struct hw_link *l = arg;
	if (level == MOSQ_LOG_ERR)
		hw_why_log(&l->why, m, line);
}

void hw_link_lost(struct hw_link *l, int rc, int err)
{
	if (l->why.explained)
		return;
	bool closed = l->state == HW_LINK_OPEN && l->up_ns && hw_why_is_close(rc);
	bool counts = closed && !(l->is_suspect && l->is_suspect(l->owner));
	bool taken = counts && hw_backoff_taken_over(&l->backoff, hw_mqtt_clock_ns() - l->up_ns);
	hw_why_lost(&l->why, l->state, taken, rc, err);
}

void hw_link_failed(struct hw_link *l, int err)
{
	hw_link_lost(l, err == ECONNRESET ? MOSQ_ERR_CONN_LOST : MOSQ_ERR_ERRNO, err);
}

/* --- opening */

static void drop_strings(struct hw_mqtt_conf *c)
{
	const char *const all[] = {c->host,    c->username,  c->password,      c->tls_ca,     c->tls_cert,
	                           c->tls_key, c->client_id, c->barrier_topic, c->share_topic};
	if (c->password)
		explicit_bzero((char *)(uintptr_t)c->password, strlen(c->password));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free((char *)(uintptr_t)all[i]);
}

int hw_link_init(struct hw_link *l, const struct hw_mqtt_conf *conf)
{
	*l = (struct hw_link){.conf = *conf, .why.conf = &l->conf};
	const char **all[] = {&l->conf.host,      &l->conf.username,      &l->conf.password,
	                      &l->conf.tls_ca,    &l->conf.tls_cert,      &l->conf.tls_key,
	                      &l->conf.client_id, &l->conf.barrier_topic, &l->conf.share_topic};
	bool ok = true;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = strdup(*all[i] ? *all[i] : "");
		ok = ok && *all[i];
	}
	if (l->conf.keepalive_s < KEEPALIVE_MIN_S)
		l->conf.keepalive_s = KEEPALIVE_MIN_S;
	l->granted.keepalive_s = l->why.keepalive_s = l->conf.keepalive_s;
	/* the library counts these calls without a lock, so all are made by the loop's thread */
	if (ok && mosquitto_lib_init() == MOSQ_ERR_SUCCESS)
		return 0;
	drop_strings(&l->conf);
	return -ENOMEM;
}

/* Frees a link. Does not call mosquitto_lib_cleanup(): a thread that still resolves a name may use the library
 * later. */
void hw_link_fini(struct hw_link *l)
{
	if (l->m)
		mosquitto_destroy(l->m);
	l->m = NULL;
	drop_strings(&l->conf);
}

const char *hw_link_layer(const struct hw_mqtt_conf *conf)
{
	int major, minor, revision;
	mosquitto_lib_version(&major, &minor, &revision);
	if (conf->tls_ca[0])
		return "the connection is encrypted";
	return major > 2 || (major == 2 && minor > 0) ? "libmosquitto has a read buffer since 2.1" : NULL;
}

bool hw_link_is_bare(const struct hw_link *l)
{
	return !hw_link_layer(&l->conf);
}

static bool readable(struct hw_link *l, const char *key, const char *path)
{
	int rc = path[0] ? hw_file_check(path) : 0;
	if (rc)
		hw_why_set(&l->why, "cannot read [mqtt] %s = %s: %s", key, path, hw_file_error(-rc));
	return rc == 0;
}

/* Gives no password. Without this callback, OpenSSL would ask for the key's password at the terminal and wait for
 * it. */
static int no_password(char *buf, int size, int writing, void *m)
{
	struct hw_link *l = mosquitto_userdata(m);
	(void)buf, (void)size, (void)writing;
	hw_why_set(&l->why, "[mqtt] tls_key = %s has a password: name a file without a password", l->conf.tls_key);
	return -1;
}

static int set_tls(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	if (!readable(l, "tls_ca", c->tls_ca) || !readable(l, "tls_cert", c->tls_cert) ||
	    !readable(l, "tls_key", c->tls_key))
		return -1;
	int rc = mosquitto_tls_set(l->m, c->tls_ca, NULL, c->tls_cert[0] ? c->tls_cert : NULL,
	                           c->tls_key[0] ? c->tls_key : NULL, no_password);
	if (rc)
		hw_why_set(&l->why, "TLS cannot be set up (%s): set tls_cert and tls_key together",
		           mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

static int set_options(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	int version = c->protocol == 5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311;
	int rc = mosquitto_int_option(l->m, MOSQ_OPT_PROTOCOL_VERSION, version);
	if (!rc)
		/* acknowledgements must not be delayed either */
		rc = mosquitto_int_option(l->m, MOSQ_OPT_TCP_NODELAY, 1);
	if (!rc) /* without this option, the library's limit of 20 messages would apply, and not the broker's limit */
		rc = mosquitto_int_option(l->m, MOSQ_OPT_RECEIVE_MAXIMUM, RECEIVE_MAX_DEFAULT);
	if (!rc && (c->username[0] || c->password[0]))
		rc = mosquitto_username_pw_set(l->m, c->username, c->password[0] ? c->password : NULL);
	if (rc) {
		hw_why_set(&l->why, "MQTT cannot be set up: %s", mosquitto_strerror(rc));
		return -1;
	}
	mosquitto_connect_v5_callback_set(l->m, on_connect);
	mosquitto_disconnect_v5_callback_set(l->m, on_disconnect);
	mosquitto_log_callback_set(l->m, on_log);
	return c->tls_ca[0] ? set_tls(l) : 0;
}

/* Connects. In MQTT 5, a session that the broker keeps after the connection must be requested. Returns the result of
 * mosquitto_connect(), which also sets errno. */
static int connect_to(struct hw_link *l)
{
	const struct hw_mqtt_conf *c = &l->conf;
	mosquitto_property *properties = NULL;
	if (c->session_s && c->protocol == 5 &&
	    mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, c->session_s) !=
	            MOSQ_ERR_SUCCESS)
		return MOSQ_ERR_NOMEM;
	errno = 0;
	int rc = mosquitto_connect_bind_v5(l->m, c->host, c->port, c->keepalive_s, NULL, properties), err = errno;
	mosquitto_property_free_all(&properties);
	errno = err;
	return rc;
}

int hw_link_open(struct hw_link *l)
{
	static bool tls_is_set_up; /* protected by tls_gate */
	const struct hw_mqtt_conf *c = &l->conf;
	hw_why_begin(&l->why);
	l->guard = (struct hw_guard){0};
	l->up_ns = 0;
	l->m = mosquitto_new(c->client_id, c->session_s == 0, l);
	if (!l->m) {
		hw_why_set(&l->why, "MQTT cannot be set up: %s", strerror(errno));
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
	int rc = connect_to(l), err = errno;
	if (alone) {
		tls_is_set_up = rc == MOSQ_ERR_SUCCESS;
		pthread_mutex_unlock(&tls_gate);
	}
	if (rc) {
		hw_link_lost(l, rc, err);
		return -1;
	}
	l->state = HW_LINK_OPENING;
	l->opened_ns = l->misc_ns = hw_mqtt_clock_ns();
	return 0;
}

/* --- an open link */

int hw_link_socket(const struct hw_link *l)
{
	return l->m ? mosquitto_socket(l->m) : -1;
}

bool hw_link_wants_write(const struct hw_link *l)
{
	return l->m && mosquitto_want_write(l->m);
}

/* Acknowledges a message that the library has not read. Four bytes do not fit only if the broker reads nothing. */
static bool acknowledge(struct hw_link *l, unsigned id)
{
	const uint8_t ack[] = {CMD_PUBACK, 2, (uint8_t)(id >> 8), (uint8_t)id};
	errno = EAGAIN;
	if (!mosquitto_want_write(l->m) &&
	    send(mosquitto_socket(l->m), ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(ack))
		return true;
	hw_link_failed(l, errno);
	return false;
}

/* Discards as much as is here of a message that is too long. Its end counts as the library's callback. */
static enum hw_link_read discard(struct hw_link *l)
{
	struct hw_too_long *message = &l->guard.too_long;
	ssize_t n = hw_receive_discard(mosquitto_socket(l->m), message->left);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HW_LINK_DRAINED;
	if (n <= 0) {
		hw_link_failed(l, n < 0 ? errno : ECONNRESET);
		return HW_LINK_LOST;
	}
	message->left -= (size_t)n;
	if (message->left > 0)
		return HW_LINK_MORE;
	l->progress++;
	return message->id == 0 || acknowledge(l, message->id) ? HW_LINK_MORE : HW_LINK_LOST;
}

/*
 * Reads once. The library reads one packet in each call, or several with TLS or with messages in flight. If a read ends
 * with EAGAIN and without a callback, no data is left. FIONREAD and poll() cannot show this, because they do not count
 * data that TLS has already decrypted.
 */
static enum hw_link_read read_one(struct hw_link *l)
{
	if (l->guard.too_long.left > 0)
		return discard(l);
	bool guarded = l->conf.protocol == 5 && hw_link_is_bare(l);
	enum hw_guard_answer may = guarded ? hw_guard_check(&l->guard, mosquitto_socket(l->m), &l->why) : HW_GUARD_PASS;
	if (may == HW_GUARD_TOO_LONG) {
		if (l->on_too_long)
			l->on_too_long(l->owner, &l->guard.too_long);
		return HW_LINK_MORE;
	}
	if (may != HW_GUARD_PASS)
		return may == HW_GUARD_WAIT ? HW_LINK_DRAINED : HW_LINK_LOST;
	uint64_t before = l->progress;
	errno = 0;
	int rc = mosquitto_loop_read(l->m, 1), err = errno;
	hw_guard_has_read(&l->guard, l->progress != before);
	if (rc || mosquitto_socket(l->m) < 0) {
		hw_link_lost(l, rc, err);
		return HW_LINK_LOST;
	}
	return err == EAGAIN && l->progress == before ? HW_LINK_DRAINED : HW_LINK_MORE;
}

enum hw_link_read hw_link_read_one(struct hw_link *l)
{
	enum hw_link_read got = read_one(l);
	l->guard.sound = 0; /* the next packet may be read past the library */
	return got;
}

static enum hw_link_read read_some(struct hw_link *l, unsigned budget)
{
	for (unsigned i = 0; i < budget; i++) {
		if (l->has_room && !l->has_room(l->owner))
			return HW_LINK_NO_ROOM;
		enum hw_link_read got = read_one(l);
		if (got != HW_LINK_MORE)
			return got;
	}
	return HW_LINK_MORE;
}

enum hw_link_read hw_link_read(struct hw_link *l, unsigned budget)
{
	/* While the connection opens, reads only once. A TLS handshake calls no callback, so further reads could not
	 * find out that no data is left. */
	enum hw_link_read got = read_some(l, l->state == HW_LINK_OPENING ? 1 : budget);
	l->guard.sound = 0;
	if (got == HW_LINK_MORE && l->state == HW_LINK_OPEN)
		mosquitto_log_callback_set(l->m, NULL);
	return got;
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

bool hw_link_is_of_message(int rc)
{
	return rc == MOSQ_ERR_INVAL || rc == MOSQ_ERR_MALFORMED_UTF8 || rc == MOSQ_ERR_PAYLOAD_SIZE ||
	       rc == MOSQ_ERR_OVERSIZE_PACKET || rc == MOSQ_ERR_QOS_NOT_SUPPORTED ||
	       rc == MOSQ_ERR_RETAIN_NOT_SUPPORTED || rc == MOSQ_ERR_NOMEM;
}

/* At least TEND_NS, because a broker may prescribe a keepalive of 0 (none) or of a few seconds. */
static int64_t tend_within_ns(const struct hw_link *l)
{
	int64_t ns = l->granted.keepalive_s * HW_NS_PER_S / 4;
	return ns > TEND_NS ? ns : TEND_NS;
}

static bool is_midway(const struct hw_link *l)
{
	return l->is_midway && l->is_midway(l->owner);
}

/*
 * Keeps the connection alive. mosquitto_loop_misc() closes a working connection if the PINGRESP is still behind other
 * data in the socket. So it is called only when all data is read, and no message is being discarded. Otherwise this
 * function sends an UNSUBSCRIBE for a filter that was never subscribed. This needs no right, and the answer shows that
 * the connection works.
 */
int hw_link_tend(struct hw_link *l, int64_t now_ns, bool drained)
{
	int64_t quiet_ns = now_ns - l->misc_ns;
	drained = drained && l->guard.too_long.left == 0;
	if (l->state != HW_LINK_OPEN || quiet_ns < (drained ? TEND_NS : tend_within_ns(l)))
		return 0;
	if (is_midway(l)) { /* try again soon: by then the owner has written the rest of its packet, or has closed the
		               connection */
		l->misc_ns = now_ns - tend_within_ns(l) + TEND_NS;
		return 0;
	}
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
 * Returns how long an open connection needs no call. The library checks its keepalive only when it is called, so a
 * PINGREQ may be a quarter of the keepalive late. Brokers wait for another half.
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
	hw_why_set(&l->why, "%s:%d accepts connections but does not answer: is it an MQTT broker, and does it hang?",
	           l->conf.host, l->conf.port);
	return true;
}

bool hw_link_unanswered(struct hw_link *l, int64_t since_ns, int64_t now_ns)
{
	if (now_ns - since_ns < UNANSWERED_NS)
		return false;
	hw_why_set(&l->why, "%s:%d has not acknowledged a message for %d s: connection closed", l->conf.host,
	           l->conf.port, (int)(UNANSWERED_NS / HW_NS_PER_S));
	return true;
}

/* --- up and down */

void hw_link_up(struct hw_link *l, int64_t now_ns)
{
	l->up_ns = now_ns;
	l->why.reported[0] = '\0';
	l->why.text[0] = '\0';
	l->why.explained = false;
}

static uint32_t random_number(void)
{
	uint32_t random;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)hw_mqtt_clock_ns();
	return random;
}

static void close_handle(struct hw_link *l)
{
	if (l->m)
		mosquitto_destroy(l->m);
	l->m = NULL;
	l->state = HW_LINK_CLOSED;
	l->why.explained = false;
	l->up_ns = 0;
}

bool hw_link_down(struct hw_link *l, int64_t now_ns)
{
	bool was_up = l->up_ns != 0, news = was_up || strcmp(l->why.text, l->why.reported) != 0;
	int64_t wait_ms = hw_backoff_ms(&l->backoff, l->why.fault, was_up ? now_ns - l->up_ns : 0, random_number());
	l->retry_ns = now_ns + wait_ms * HW_NS_PER_MS;
	memcpy(l->why.reported, l->why.text, sizeof(l->why.reported));
	close_handle(l);
	return news;
}

void hw_link_again(struct hw_link *l, int64_t now_ns)
{
	l->retry_ns = now_ns;
	close_handle(l);
}

void hw_link_leave(struct hw_link *l)
{
	if (l->m && l->state == HW_LINK_OPEN && !is_midway(l))
		mosquitto_disconnect(l->m);
	close_handle(l);
}
