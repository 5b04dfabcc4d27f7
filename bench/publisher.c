/* SPDX-License-Identifier: MIT */
/*
 * Measures the broker alone, without a monitor: how fast it accepts retained statuses with QoS 1, and when subscribers
 * get them. The topic of device N is ROOT/dN/status.
 *
 *     publisher send PORT PROTOCOL WINDOW FIRST COUNT ROOT
 *
 * publishes the statuses of COUNT devices, from dFIRST on, by libmosquitto. At most WINDOW of them are unacknowledged.
 * Prints `rate`: statuses per second.
 *
 *     publisher batch PORT PROTOCOL WINDOW FIRST COUNT ROOT WAIT
 *
 * does the same without a library. One write contains all statuses for which the window has room. The program reads
 * when WAIT statuses are acknowledged. Also prints `window`, which is less than WINDOW if the broker allows only less.
 *
 *     publisher watch PORT ROOT DEVICES TIMEOUT_S [WORD]
 *
 * subscribes to ROOT/+/status and prints `ready`. Waits until each device has had a status that contains WORD (default:
 * "online":false), but at most TIMEOUT_S. Prints the number of these devices (`seen`), and when the first and the last
 * of their statuses arrived (`first`, `last`; CLOCK_MONOTONIC, s). Reads until SIGTERM, and then prints how many
 * further statuses with WORD were received from devices that had been seen (`again`).
 *
 *     publisher retained PORT ROOT DEVICES
 *
 * requests the retained status of each device as a new subscriber. Prints the number of devices whose status is
 * `right`: retained, with QoS 1, and with "online":false.
 *
 *     publisher company PORT FILTER
 *
 * subscribes, prints `ready`, and reads.
 *
 * PROTOCOL is 4 (MQTT 3.1.1) or 5. `send` publishes the next status in the callback of an acknowledgement, in the
 * thread that reads. No faster way to use libmosquitto was found. The other commands send and read MQTT packets
 * themselves. `watch` and `company` take almost no processor time, because they read many packets at a time.
 */
#include <arpa/inet.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (1 << 18)
#define OFFLINE    "\"online\":false"

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "publisher: %s\n", what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- send -------------------------------------------------------------------------------------------------------- */

struct sender {
	const char *root;
	unsigned window, first, count, sent, acked;
	bool failed;
};

#define PAYLOAD                                                                                                        \
	"{\"time\":1700000000,\"online\":false,\"reason\":\"timeout\",\"last_seen\":1700000000,\"by\":\"bench\","      \
	"\"seq\":1700000000000}"

static void publish_next(struct mosquitto *m, struct sender *s)
{
	char topic[100];
	snprintf(topic, sizeof(topic), "%s/d%u/status", s->root, s->first + s->sent);
	s->failed |= mosquitto_publish(m, NULL, topic, strlen(PAYLOAD), PAYLOAD, 1, true) != MOSQ_ERR_SUCCESS;
	s->sent++;
}

static void on_publish(struct mosquitto *m, void *arg, int mid)
{
	struct sender *s = arg;
	(void)mid;
	s->acked++;
	if (s->sent < s->count)
		publish_next(m, s);
}

static void on_connect(struct mosquitto *m, void *arg, int reason)
{
	struct sender *s = arg;
	s->failed = reason != 0;
	while (!s->failed && s->sent < s->window && s->sent < s->count)
		publish_next(m, s);
}

static int send_all(int port, int protocol, struct sender *s)
{
	mosquitto_lib_init();
	struct mosquitto *m = mosquitto_new(NULL, true, s);
	if (!m)
		die("out of memory");
	mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, protocol == 5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
	mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_max_inflight_messages_set(m, s->window);
	mosquitto_connect_callback_set(m, on_connect);
	mosquitto_publish_callback_set(m, on_publish);
	if (mosquitto_connect(m, "127.0.0.1", port, 60))
		die("cannot connect");
	double began = now_s();
	while (s->acked < s->count && !s->failed)
		s->failed |= mosquitto_loop(m, 1000, 1) != MOSQ_ERR_SUCCESS;
	if (s->failed)
		die("the connection failed");
	printf("rate %.0f\n", s->count / (now_s() - began));
	mosquitto_disconnect(m);
	mosquitto_destroy(m);
	return 0;
}

/* --- MQTT by hand ------------------------------------------------------------------------------------------------ */

struct conn {
	int fd;
	size_t have;
	char in[READ_BYTES];
};

static void write_all(int fd, const char *from, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, from, len);
		if (n <= 0)
			die("the broker has closed the connection");
		from += n;
		len -= (size_t)n;
	}
}

/* Returns the length of the packet that begins at `at`, and sets *head to where its body begins. 0: the packet is
 * not complete. */
static size_t packet_len(const char *at, size_t len, size_t *head)
{
	size_t rest = 0, shift = 0;
	unsigned char byte = 0x80;
	for (*head = 1; byte & 0x80 && *head < len; shift += 7) {
		byte = (unsigned char)at[(*head)++];
		rest |= (size_t)(byte & 0x7f) << shift;
	}
	return byte & 0x80 || *head + rest > len ? 0 : *head + rest;
}

typedef void on_packet(void *arg, unsigned char type, const char *body, size_t len);

/* Reads what has arrived, and passes complete packets to `handle`. */
static void receive(struct conn *c, on_packet *handle, void *arg)
{
	size_t done = 0, head, len;
	ssize_t n = read(c->fd, c->in + c->have, sizeof(c->in) - c->have);
	if (n <= 0)
		die("the broker has closed the connection");
	c->have += (size_t)n;
	for (; (len = packet_len(c->in + done, c->have - done, &head)) > 0; done += len)
		handle(arg, (unsigned char)c->in[done], c->in + done + head, len - head);
	c->have -= done;
	memmove(c->in, c->in + done, c->have);
}

/* Returns the Receive Maximum in a CONNACK of MQTT 5. The properties before it have values of one, two or four
 * bytes. */
static unsigned receive_max(const char *body, size_t len)
{
	for (size_t at = 3; at + 2 < len;) {
		unsigned char what = (unsigned char)body[at];
		if (what == MQTT_PROP_RECEIVE_MAXIMUM)
			return (unsigned)(unsigned char)body[at + 1] << 8 | (unsigned char)body[at + 2];
		if (what == MQTT_PROP_ASSIGNED_CLIENT_IDENTIFIER || what == MQTT_PROP_REASON_STRING)
			at += 3 + ((size_t)(unsigned char)body[at + 1] << 8 | (unsigned char)body[at + 2]);
		else
			at += what == MQTT_PROP_TOPIC_ALIAS_MAXIMUM || what == MQTT_PROP_SERVER_KEEP_ALIVE         ? 3
			      : what == MQTT_PROP_SESSION_EXPIRY_INTERVAL || what == MQTT_PROP_MAXIMUM_PACKET_SIZE ? 5
			                                                                                           : 2;
	}
	return UINT16_MAX;
}

struct granted {
	bool done;
	unsigned window;
};

static void on_connack(void *arg, unsigned char type, const char *body, size_t len)
{
	struct granted *g = arg;
	if (type != 0x20 || len < 2 || body[1] != 0)
		die("refused by the broker");
	*g = (struct granted){true, receive_max(body, len)};
}

/* Connects. Returns how many messages may be unacknowledged. */
static unsigned connect_to(struct conn *c, int port, int protocol, const char *id)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct granted g = {0};
	char hello[64] = {0x10, 0, 0, 4, 'M', 'Q', 'T', 'T', (char)protocol, 2, 0, 0};
	size_t len = protocol == 5 ? 13 : 12; /* no properties */
	int one = 1, room = 8 << 20;
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	c->have = 0;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	hello[len + 1] = (char)strlen(id);
	memcpy(hello + len + 2, id, strlen(id));
	len += 2 + strlen(id);
	hello[1] = (char)(len - 2);
	if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		die("cannot connect");
	write_all(c->fd, hello, len);
	while (!g.done)
		receive(c, on_connack, &g);
	return g.window;
}

/* Writes the head of a packet that has an id to `to`. `rest`: the number of bytes after the head, at most 16383. */
static char *put_head(char *to, unsigned char type, size_t rest)
{
	*to++ = (char)type;
	if (rest > 127)
		*to++ = (char)((rest & 127) | 128);
	*to++ = (char)(rest > 127 ? rest >> 7 : rest);
	return to;
}

static char *put_16(char *to, size_t n)
{
	*to++ = (char)(n >> 8);
	*to++ = (char)n;
	return to;
}

static char *put_text(char *to, const char *text, size_t len)
{
	to = put_16(to, len);
	return (char *)memcpy(to, text, len) + len;
}

static void on_suback(void *arg, unsigned char type, const char *body, size_t len)
{
	bool *done = arg;
	if (type != 0x90)
		return; /* a retained message that arrived before the answer */
	if (len < 3 || (unsigned char)body[2] > 2)
		die("cannot subscribe");
	*done = true;
}

static void subscribe(struct conn *c, const char *filter)
{
	char packet[256], *to = put_16(put_head(packet, 0x82, strlen(filter) + 5), 1);
	bool done = false;
	if (strlen(filter) > 100)
		die("the filter is too long");
	to = put_text(to, filter, strlen(filter));
	*to++ = 0;
	write_all(c->fd, packet, (size_t)(to - packet));
	while (!done)
		receive(c, on_suback, &done);
	puts("ready");
	fflush(stdout);
}

/* --- batch ------------------------------------------------------------------------------------------------------- */

#define WINDOW_MAX 4096
#define PACKET_MAX 400

static void on_puback(void *arg, unsigned char type, const char *body, size_t len)
{
	struct sender *s = arg;
	if (type != 0x40)
		die("the broker sent a packet that is no PUBACK");
	s->failed |= len > 2 && (unsigned char)body[2] >= 0x80;
	s->acked++;
}

static char *put_status(char *to, const struct sender *s, int protocol)
{
	char topic[100];
	size_t topic_len = (size_t)snprintf(topic, sizeof(topic), "%s/d%u/status", s->root, s->first + s->sent);
	size_t properties = protocol == 5 ? 1 : 0;
	to = put_head(to, 0x33, 2 + topic_len + 2 + properties + strlen(PAYLOAD)); /* QoS 1, retained */
	to = put_text(to, topic, topic_len);
	to = put_16(to, s->sent % UINT16_MAX + 1);
	if (protocol == 5)
		*to++ = 0;
	return (char *)memcpy(to, PAYLOAD, strlen(PAYLOAD)) + strlen(PAYLOAD);
}

/*
 * The kernel wakes this thread when `wait` acknowledgements have arrived. This thread acknowledges at once by TCP: a
 * broker that has not set TCP_NODELAY delays its second acknowledgement until then.
 */
static void send_and_receive(struct conn *c, struct sender *s, int protocol, unsigned wait)
{
	static char out[WINDOW_MAX * PACKET_MAX];
	struct pollfd p = {c->fd, POLLIN, 0};
	int one = 1, low = -1;
	while (s->acked < s->count && !s->failed) {
		char *to = out;
		for (; s->sent < s->count && s->sent - s->acked < s->window; s->sent++)
			to = put_status(to, s, protocol);
		write_all(c->fd, out, (size_t)(to - out));
		unsigned open = s->sent - s->acked;
		int mark = open >= wait ? 4 * (int)wait - (int)c->have : 1;
		if (mark != low)
			setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
		low = mark;
		setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
		if (poll(&p, 1, 1) > 0) /* nothing to read: TCP_QUICKACK is set again, because the broker may wait for
		                           an acknowledgement */
			receive(c, on_puback, s);
	}
}

static int batch_all(int port, int protocol, struct sender *s, unsigned wait)
{
	static struct conn c;
	double began = now_s();
	unsigned granted = connect_to(&c, port, protocol, "batch");
	s->window = granted < s->window ? granted : s->window;
	s->window = s->window < WINDOW_MAX ? s->window : WINDOW_MAX;
	send_and_receive(&c, s, protocol, wait < s->window ? wait : s->window);
	if (s->failed)
		die("a status was refused");
	printf("rate %.0f\nwindow %u\n", s->count / (now_s() - began), s->window);
	close(c.fd);
	return 0;
}

/* --- watch ------------------------------------------------------------------------------------------------------- */

#define CALM_MS 200 /* if no message arrives for this time, none will follow */

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static void stop_by_signal(void)
{
	struct sigaction stop = {.sa_handler = on_signal};
	sigaction(SIGTERM, &stop, NULL);
}

struct watch {
	const char *word;
	size_t root_len;
	unsigned devices, seen, again;
	uint8_t *is_seen;
	double first_s, last_s;
};

/* Returns N of a topic ROOT/dN/..., or UINT32_MAX if the topic is too short. */
static unsigned long device_of(const struct watch *w, const char *topic, size_t topic_len)
{
	return topic_len < w->root_len + 3 ? UINT32_MAX : strtoul(topic + w->root_len + 2, NULL, 10);
}

/* A PUBLISH of QoS 0: two bytes of length, the topic, the payload. */
static void on_status(void *arg, unsigned char type, const char *body, size_t len)
{
	struct watch *w = arg;
	size_t topic_len = len > 2 ? (size_t)(unsigned char)body[0] << 8 | (unsigned char)body[1] : 0;
	if ((type & 0xf1) != 0x30 || len < 2 + topic_len) /* no PUBLISH, or a retained status */
		return;
	unsigned long device = device_of(w, body + 2, topic_len);
	if (device >= w->devices || !memmem(body + 2 + topic_len, len - 2 - topic_len, w->word, strlen(w->word)))
		return;
	if (w->is_seen[device]) {
		w->again++;
		return;
	}
	w->last_s = now_s();
	w->first_s = w->seen ? w->first_s : w->last_s;
	w->seen++;
	w->is_seen[device] = 1;
}

/* Waits for packets and reads them. Returns false if none arrived in that time. */
static bool read_some(struct conn *c, on_packet *handle, void *arg, int within_ms)
{
	struct pollfd p = {c->fd, POLLIN, 0};
	if (poll(&p, 1, within_ms) <= 0)
		return false;
	poll(NULL, 0, 2); /* More statuses follow. A wake-up for each of them would take processor time from the
	                   * broker. */
	receive(c, handle, arg);
	return true;
}

static struct watch watch_new(const char *root, unsigned devices, const char *word)
{
	struct watch w = {.word = word, .root_len = strlen(root), .devices = devices, .is_seen = calloc(devices, 1)};
	if (!w.is_seen)
		die("out of memory");
	return w;
}

static int watch_all(int port, const char *root, unsigned devices, double timeout_s, const char *word)
{
	static struct conn c;
	char filter[100];
	struct watch w = watch_new(root, devices, word);
	double until = now_s() + timeout_s;
	stop_by_signal();
	snprintf(filter, sizeof(filter), "%s/+/status", root);
	connect_to(&c, port, 4, "watch");
	subscribe(&c, filter);
	while (w.seen < devices && now_s() < until && !stopped)
		read_some(&c, on_status, &w, CALM_MS);
	printf("seen %u\nfirst %.6f\nlast %.6f\n", w.seen, w.first_s, w.last_s);
	fflush(stdout);
	while (read_some(&c, on_status, &w, CALM_MS) || !stopped)
		;
	printf("again %u\n", w.again);
	free(w.is_seen);
	close(c.fd);
	return 0;
}

/* --- company ----------------------------------------------------------------------------------------------------- */

static void on_nothing(void *arg, unsigned char type, const char *body, size_t len)
{
	(void)arg;
	(void)type;
	(void)body;
	(void)len;
}

_Noreturn static void keep_company(int port, const char *filter)
{
	static struct conn c;
	connect_to(&c, port, 4, "company");
	subscribe(&c, filter);
	for (;;)
		read_some(&c, on_nothing, NULL, -1);
}

/* --- retained ---------------------------------------------------------------------------------------------------- */

#define ASK     100 /* topics in one SUBSCRIBE; a broker queues only a limited number of messages */
#define GIVE_UP 50  /* the program ends after this many SUBSCRIBEs for which a status was missing */

struct question {
	struct watch w;
	bool suback;
	unsigned n_acks;
	char acks[4 * READ_BYTES / 16];
};

static void on_retained(void *arg, unsigned char type, const char *body, size_t len)
{
	struct question *q = arg;
	size_t topic_len = len > 2 ? (size_t)(unsigned char)body[0] << 8 | (unsigned char)body[1] : 0,
	       at = 2 + topic_len;
	bool qos1 = (type & 0x06) == 0x02;
	q->suback |= (type & 0xf0) == 0x90;
	if ((type & 0xf0) != 0x30 || len < at + 2)
		return;
	if (qos1)
		memcpy(q->acks + 4 * q->n_acks++, (char[4]){0x40, 2, body[at], body[at + 1]}, 4);
	unsigned long device = device_of(&q->w, body + 2, topic_len);
	if (device < q->w.devices && qos1 && type & 1 && memmem(body + at, len - at, q->w.word, strlen(q->w.word)) &&
	    !q->w.is_seen[device]) {
		q->w.seen++;
		q->w.is_seen[device] = 1;
	}
}

/* Writes SUBSCRIBE or UNSUBSCRIBE for `n` devices. Without UNSUBSCRIBE, a broker that scans all subscriptions of a
 * client would become slower and slower. */
static size_t ask(char *packet, const char *root, unsigned first, unsigned n, bool subscribes)
{
	static char body[ASK * 110];
	char topic[100], *to = put_16(body, first / ASK % UINT16_MAX + 1);
	for (unsigned i = first; i < first + n; i++) {
		int len = snprintf(topic, sizeof(topic), "%s/d%u/status", root, i);
		to = put_text(to, topic, (size_t)len);
		if (subscribes)
			*to++ = 1;
	}
	size_t len = (size_t)(to - body);
	return (size_t)((char *)memcpy(put_head(packet, subscribes ? 0x82 : 0xa2, len), body, len) + len - packet);
}

/* Subscribes to each device's topic separately. With one filter for all, a broker would drop the statuses for which
 * its queue has no room. */
static int ask_retained(int port, const char *root, unsigned devices)
{
	static struct conn c;
	static struct question q;
	static char packet[ASK * 110 + 8];
	q.w = watch_new(root, devices, OFFLINE);
	connect_to(&c, port, 4, "retained");
	for (unsigned first = 0, bad = 0; first < devices && bad < GIVE_UP; first += ASK) {
		unsigned n = devices - first < ASK ? devices - first : ASK, before = q.w.seen;
		bool more = true;
		q.suback = false;
		write_all(c.fd, packet, ask(packet, root, first, n, true));
		for (int one = 1; !q.suback || (q.w.seen - before < n && more);) {
			struct pollfd p = {c.fd, POLLIN, 0};
			more = poll(&p, 1, CALM_MS) > 0;
			if (!more)
				continue;
			setsockopt(c.fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
			receive(&c, on_retained, &q);
			write_all(c.fd, q.acks, 4 * q.n_acks);
			q.n_acks = 0;
		}
		write_all(c.fd, packet, ask(packet, root, first, n, false));
		bad += q.w.seen - before < n;
	}
	printf("right %u\n", q.w.seen);
	free(q.w.is_seen);
	close(c.fd);
	return 0;
}

int main(int argc, char **argv)
{
	bool sends = argc == 8 && strcmp(argv[1], "send") == 0, batches = argc == 9 && strcmp(argv[1], "batch") == 0;
	if (sends || batches) {
		struct sender s = {.root = argv[7],
		                   .window = (unsigned)atoi(argv[4]),
		                   .first = (unsigned)atoi(argv[5]),
		                   .count = (unsigned)atoi(argv[6])};
		return sends ? send_all(atoi(argv[2]), atoi(argv[3]), &s)
		             : batch_all(atoi(argv[2]), atoi(argv[3]), &s, (unsigned)atoi(argv[8]));
	}
	if ((argc == 6 || argc == 7) && strcmp(argv[1], "watch") == 0)
		return watch_all(atoi(argv[2]), argv[3], (unsigned)atoi(argv[4]), atof(argv[5]),
		                 argc == 7 ? argv[6] : OFFLINE);
	if (argc == 5 && strcmp(argv[1], "retained") == 0)
		return ask_retained(atoi(argv[2]), argv[3], (unsigned)atoi(argv[4]));
	if (argc == 4 && strcmp(argv[1], "company") == 0)
		keep_company(atoi(argv[2]), argv[3]);
	fprintf(stderr, "usage: see the head of bench/publisher.c\n");
	return 2;
}
