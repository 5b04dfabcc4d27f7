/* SPDX-License-Identifier: MIT */
/*
 * A simulated fleet that uses real MQTT through a real broker, and an observer: a connection of its own that subscribes
 * to the devices' status topics. The observer notes when each transition arrives, and how long after the moment at
 * which it became true. quickstart shows the fleet; the system tests measure with it.
 *
 * There is one thread with one poll loop. Device i wakes up at start + i * interval / devices + k * interval, so a
 * single cursor finds the next device, however many there are. What a device does when it wakes up is a pure function
 * of its number and the time, the script. The detection delay begins just before the last heartbeat was handed to the
 * library, so it can only be overestimated. If it is negative, a device was called offline too early.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <mosquitto.h>

#include "fleet.h"
#include "fleet_account.h"

#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_S     INT64_C(1000000000)
#define WAKES_A_TURN 64
#define READS_A_TURN 256
#define NAP_MS       4000 /* the demo's sleeper: how long it sleeps, and the timeout that it announces */
#define NAP_TIMEOUT  5000

enum mode { MODE_BEAT, MODE_QUIET, MODE_GOODBYE, MODE_CUT, MODE_NAP };

struct conn {
	struct mosquitto *mosq;
	bool up;
	bool cut;         /* by the script: it stays away until one of its devices sends again */
	int64_t retry_ns; /* when to try again; 0: not lost */
};

struct device {
	struct conn *conn;
	enum mode mode;
	int64_t sent_ns; /* last heartbeat */
	int64_t gone_ns; /* its goodbye, or the cut that lets the broker publish its will */
	int64_t timeout_ms;
	int64_t first_ns, down_ns; /* its first heartbeat; how long it was gone */
	unsigned outages;
	uint64_t seq; /* of the last transition that was seen */
	bool online_seen, offline_seen;
	bool awaited; /* the next online transition answers the heartbeat at back_ns */
	int64_t back_ns;
};

struct fleet {
	struct fleet_options opt;
	struct device *devices;
	struct conn *conns; /* the last one is the observer's */
	struct pollfd *polls;
	bool observing, colour;
	int64_t start_ns;
	unsigned cursor;
	int64_t round;
	struct fleet_account account;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static unsigned n_conns(const struct fleet *f)
{
	return f->opt.conns + 1;
}

static struct conn *observer(struct fleet *f)
{
	return &f->conns[f->opt.conns];
}

/* --- what the devices do ------------------------------------------------------------------------------------------ */

/* Silent from `from` to `to`, then again every `every`; times in ms. */
static bool quiet_at(int64_t t, int64_t from, int64_t to, int64_t every)
{
	return t >= from && (t - from) % every < to - from;
}

/*
 * The demo's cast, counted from the last device backwards: one dies for good, one is cut off and has a last will, one
 * says goodbye, one sleeps and has said so, two fall silent and come back. All others beat.
 */
static enum mode demo_mode(const struct fleet_options *o, unsigned i, int64_t t)
{
	switch (o->devices - 1 - i) {
	case 0:
		return t < 4000 ? MODE_BEAT : MODE_QUIET;
	case 1:
		return quiet_at(t, 5500, 10500, 13000) ? MODE_CUT : MODE_BEAT;
	case 2:
		return quiet_at(t, 3000, 8000, 12000) ? MODE_GOODBYE : MODE_BEAT;
	case 3:
		return MODE_NAP;
	case 4:
		return quiet_at(t, 3500, 8500, 11000) ? MODE_QUIET : MODE_BEAT;
	case 5:
		return quiet_at(t, 6500, 10000, 14000) ? MODE_QUIET : MODE_BEAT;
	default:
		return MODE_BEAT;
	}
}

/* The last `silent` devices fall silent, one after the other over silent_spread_ms, and may come back. */
static enum mode steady_mode(const struct fleet_options *o, unsigned i, int64_t t)
{
	unsigned first = o->devices - o->silent;
	if (i < first)
		return MODE_BEAT;
	int64_t from = o->silent_at_ms + o->silent_spread_ms * (i - first) / o->silent;
	if (t < from || (o->return_after_ms > 0 && t >= from + o->return_after_ms))
		return MODE_BEAT;
	return MODE_QUIET;
}

/* The template with `id` in the place of {id}. */
static void topic_of(char *buf, size_t cap, const char *template, const char *id)
{
	const char *hole = strstr(template, "{id}");
	snprintf(buf, cap, "%.*s%s%s", (int)(hole - template), template, id, hole + strlen("{id}"));
}

static void id_of(const struct fleet *f, unsigned i, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s%0*u", f->opt.prefix, f->opt.devices < 100 ? 2 : 6, i + 1);
}

static bool say(struct fleet *f, unsigned i, const char *payload)
{
	char id[128], topic[512];
	id_of(f, i, id, sizeof(id));
	topic_of(topic, sizeof(topic), f->opt.heartbeat, id);
	return mosquitto_publish(f->devices[i].conn->mosq, NULL, topic, (int)strlen(payload), payload, f->opt.qos,
	                         false) == MOSQ_ERR_SUCCESS;
}

/* Since when a device has been away, by its own actions; INT64_MAX: it is there. */
static int64_t gone_since(const struct device *d, int64_t at)
{
	int64_t due = d->sent_ns + d->timeout_ms * NS_PER_MS, from = d->gone_ns > d->sent_ns ? d->gone_ns : due;
	return d->sent_ns > 0 && from <= at ? from : INT64_MAX;
}

/* It is gone until now. */
static void add_outage(struct device *d, int64_t at)
{
	int64_t from = gone_since(d, at);
	if (from == INT64_MAX)
		return;
	d->outages++;
	d->down_ns += at - from;
}

static void beat(struct fleet *f, unsigned i)
{
	struct device *d = &f->devices[i];
	char payload[160];
	int64_t at = now_ns();
	if (!d->conn->up)
		return;
	if (d->mode == MODE_NAP)
		snprintf(payload, sizeof(payload), "{\"time\":%lld,\"timeout\":%d}", (long long)time(NULL),
		         NAP_TIMEOUT / 1000);
	else
		snprintf(payload, sizeof(payload), "{\"time\":%lld,\"battery\":%u,\"rssi\":%d,\"uptime\":%lld}",
		         (long long)time(NULL), 100 - i % 60, -40 - (int)(i % 50),
		         (long long)((at - f->start_ns) / NS_PER_S));
	if (!say(f, i, payload))
		return;
	if (!d->awaited) {
		d->awaited = true;
		d->back_ns = at;
	}
	add_outage(d, at);
	if (d->first_ns == 0)
		d->first_ns = at;
	d->sent_ns = at;
	f->account.beats++;
}

/* Cuts the connection as a power failure would: no DISCONNECT, so that the broker publishes the will. */
static void cut(struct conn *c)
{
	int fd = mosquitto_socket(c->mosq);
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	c->cut = true;
	c->up = false;
}

static void enter(struct fleet *f, unsigned i, enum mode mode)
{
	struct device *d = &f->devices[i];
	if (mode == MODE_CUT) {
		d->gone_ns = now_ns();
		cut(d->conn);
	} else if (mode == MODE_GOODBYE) {
		d->gone_ns = now_ns();
		say(f, i, "{\"online\":false}");
	} else if (d->mode == MODE_CUT) {
		d->conn->cut = false;
		d->conn->retry_ns = now_ns();
	}
	if (mode != MODE_BEAT && mode != MODE_NAP)
		d->awaited = false;
	d->mode = mode;
}

static void wake(struct fleet *f, unsigned i, int64_t t_ms)
{
	enum mode mode = f->opt.demo ? demo_mode(&f->opt, i, t_ms) : steady_mode(&f->opt, i, t_ms);
	if (mode != f->devices[i].mode)
		enter(f, i, mode);
	if (mode == MODE_BEAT || (mode == MODE_NAP && now_ns() - f->devices[i].sent_ns >= NAP_MS * NS_PER_MS))
		beat(f, i);
}

static int64_t next_wake_ns(const struct fleet *f)
{
	int64_t interval = f->opt.interval_ms * NS_PER_MS;
	return f->start_ns + f->round * interval + interval / f->opt.devices * f->cursor;
}

static void wake_due(struct fleet *f)
{
	for (int n = 0; n < WAKES_A_TURN; n++) {
		int64_t at = next_wake_ns(f);
		if (at > now_ns())
			return;
		wake(f, f->cursor, (at - f->start_ns) / NS_PER_MS);
		if (++f->cursor == f->opt.devices) {
			f->cursor = 0;
			f->round++;
		}
	}
}

/* --- what the observer sees --------------------------------------------------------------------------------------- */

__attribute__((format(printf, 5, 6))) static void show(struct fleet *f, unsigned i, bool online, const char *reason,
                                                       const char *fmt, ...)
{
	struct timespec ts;
	struct tm tm;
	char clock[16], id[128], text[128];
	const char *on = f->colour ? (online ? "\033[32m" : "\033[31m") : "", *off = f->colour ? "\033[0m" : "";
	va_list ap;
	if (!f->opt.verbose)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	id_of(f, i, id, sizeof(id));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%s.%03ld  %s  %s%-7s%s  %-9s  %s\n", clock, ts.tv_nsec / 1000000, id, on, online ? "ONLINE" : "OFFLINE",
	       off, reason, text);
	fflush(stdout);
}

static void saw_offline(struct fleet *f, unsigned i, const char *reason, int64_t at)
{
	struct device *d = &f->devices[i];
	d->offline_seen = true;
	d->awaited = false;
	if (strcmp(reason, "timeout") != 0) {
		show(f, i, false, reason, "%7.1f ms after its %s", (double)(at - d->gone_ns) / 1e6,
		     d->mode == MODE_CUT ? "link was cut (last will)" : "goodbye");
		return;
	}
	double late = (double)(at - d->sent_ns) / 1e6 - (double)d->timeout_ms;
	fleet_account_death(&f->account, late);
	show(f, i, false, reason, "%7.1f ms %s its timeout", late < 0 ? -late : late,
	     late < 0 ? "BEFORE the end of" : "after");
}

static void saw_online(struct fleet *f, unsigned i, const char *reason, int64_t at)
{
	struct device *d = &f->devices[i];
	if (d->awaited)
		show(f, i, true, reason, "%7.1f ms after its %s heartbeat", (double)(at - d->back_ns) / 1e6,
		     d->online_seen ? "next" : "first");
	else
		show(f, i, true, reason, "without a heartbeat of ours");
	d->online_seen = true;
}

/* Which device a status topic is about, or -1. */
static int64_t device_of(const struct fleet *f, const char *topic)
{
	const char *hole = strstr(f->opt.status, "{id}");
	size_t head = (size_t)(hole - f->opt.status), prefix = strlen(f->opt.prefix);
	char *end;
	if (strncmp(topic, f->opt.status, head) != 0 || strncmp(topic + head, f->opt.prefix, prefix) != 0)
		return -1;
	unsigned long n = strtoul(topic + head + prefix, &end, 10);
	if (strcmp(end, hole + strlen("{id}")) != 0 || n < 1 || n > f->opt.devices)
		return -1;
	return (int64_t)n - 1;
}

/* After a broker's restart each status is published again: only one with a seq of its own tells of a transition. */
static bool is_news(struct device *d, const char *status)
{
	const char *p = strstr(status, "\"seq\":");
	uint64_t seq = p ? strtoull(p + strlen("\"seq\":"), NULL, 10) : 0;
	if (seq <= d->seq)
		return false;
	d->seq = seq;
	return true;
}

static void on_message(struct mosquitto *mosq, void *arg, const struct mosquitto_message *msg)
{
	struct fleet *f = arg;
	int64_t at = now_ns(), i = device_of(f, msg->topic);
	char text[1024], reason[32] = "";
	(void)mosq;
	if (i < 0 || msg->retain || msg->payloadlen <= 0 || (size_t)msg->payloadlen >= sizeof(text))
		return;
	memcpy(text, msg->payload, (size_t)msg->payloadlen);
	text[msg->payloadlen] = '\0';
	const char *p = strstr(text, "\"reason\":\"");
	if (!p || !strstr(text, "\"by\":") || sscanf(p, "\"reason\":\"%31[a-z]", reason) != 1)
		return; /* a device's own word */
	if (!is_news(&f->devices[i], text))
		return;
	f->account.transitions++;
	if (strstr(text, "\"online\":false"))
		saw_offline(f, (unsigned)i, reason, at);
	else
		saw_online(f, (unsigned)i, reason, at);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static struct conn *conn_of(struct fleet *f, const struct mosquitto *mosq)
{
	for (unsigned i = 0; i < n_conns(f); i++)
		if (f->conns[i].mosq == mosq)
			return &f->conns[i];
	return NULL;
}

/*
 * A broker without set_tcp_nodelay keeps a small packet back until the one before is acknowledged, and the kernel
 * acknowledges after 40 ms. That is between the broker and its subscriber, and not what is measured here. The kernel
 * forgets the option: it is set again after each read.
 */
static void quick_ack(struct mosquitto *mosq)
{
	int one = 1;
	setsockopt(mosquitto_socket(mosq), IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
}

static void on_connect(struct mosquitto *mosq, void *arg, int rc)
{
	struct fleet *f = arg;
	struct conn *c = conn_of(f, mosq);
	char filter[512];
	if (!c || rc != 0)
		return;
	if (c != observer(f)) {
		c->up = true;
		return;
	}
	int size = 4 << 20;
	quick_ack(mosq);
	setsockopt(mosquitto_socket(mosq), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	topic_of(filter, sizeof(filter), f->opt.status, "+");
	mosquitto_subscribe(mosq, NULL, filter, 0);
}

static void on_subscribe(struct mosquitto *mosq, void *arg, int mid, int n, const int *granted)
{
	struct fleet *f = arg;
	(void)mosq, (void)mid;
	if (n < 1 || granted[0] > 2)
		return;
	observer(f)->up = true;
	f->observing = true;
}

/* Devices that have a connection of their own have a last will too: on the status topic and retained, as many do. */
static bool set_will(struct fleet *f, struct conn *c, unsigned i)
{
	char id[128], topic[512];
	static const char gone[] = "{\"online\":false}";
	if (f->opt.conns != f->opt.devices || c == observer(f) || !f->opt.demo)
		return true;
	id_of(f, i, id, sizeof(id));
	topic_of(topic, sizeof(topic), f->opt.status, id);
	return mosquitto_will_set(c->mosq, topic, (int)strlen(gone), gone, 1, true) == MOSQ_ERR_SUCCESS;
}

static int open_conn(struct fleet *f, unsigned i)
{
	struct conn *c = &f->conns[i];
	char client[64];
	snprintf(client, sizeof(client), "fleet-%ld-%u", (long)getpid(), i);
	c->mosq = mosquitto_new(client, true, f);
	if (!c->mosq || !set_will(f, c, i))
		return -ENOMEM;
	mosquitto_connect_callback_set(c->mosq, on_connect);
	mosquitto_message_callback_set(c->mosq, on_message);
	mosquitto_subscribe_callback_set(c->mosq, on_subscribe);
	if (mosquitto_connect(c->mosq, f->opt.host, f->opt.port, 60) == MOSQ_ERR_SUCCESS)
		return 0;
	fprintf(stderr, "fleet: no broker on %s:%d: %s\n", f->opt.host, f->opt.port, strerror(errno));
	return -ENOTCONN;
}

static void lost(struct conn *c)
{
	c->up = false;
	if (!c->cut && c->retry_ns == 0)
		c->retry_ns = now_ns() + NS_PER_S;
}

/* Everything of a connection but waiting. */
static void serve(struct conn *c, short revents)
{
	int rc = MOSQ_ERR_SUCCESS;
	if (c->retry_ns != 0 && !c->cut && now_ns() >= c->retry_ns) {
		c->retry_ns = mosquitto_reconnect(c->mosq) == MOSQ_ERR_SUCCESS ? 0 : now_ns() + NS_PER_S;
		return;
	}
	if (revents & (POLLIN | POLLHUP | POLLERR)) {
		int waiting = 1;
		for (int n = 0; n < READS_A_TURN && waiting > 0 && rc == MOSQ_ERR_SUCCESS; n++) {
			rc = mosquitto_loop_read(c->mosq, 1);
			int fd = mosquitto_socket(c->mosq);
			if (fd < 0 || ioctl(fd, FIONREAD, &waiting) != 0)
				break;
		}
		quick_ack(c->mosq);
	}
	if (rc == MOSQ_ERR_SUCCESS && mosquitto_want_write(c->mosq))
		rc = mosquitto_loop_write(c->mosq, 1);
	if (rc == MOSQ_ERR_SUCCESS)
		rc = mosquitto_loop_misc(c->mosq);
	if (rc != MOSQ_ERR_SUCCESS)
		lost(c);
}

static int turn(struct fleet *f, int64_t until_ns)
{
	unsigned n = n_conns(f);
	for (unsigned i = 0; i < n; i++) {
		f->polls[i].fd = mosquitto_socket(f->conns[i].mosq);
		f->polls[i].events = (short)(POLLIN | (mosquitto_want_write(f->conns[i].mosq) ? POLLOUT : 0));
		f->polls[i].revents = 0;
	}
	int64_t wait = until_ns - now_ns();
	if (wait < 0)
		wait = 0;
	if (wait > NS_PER_S)
		wait = NS_PER_S;
	struct timespec ts = {wait / NS_PER_S, wait % NS_PER_S};
	int ready = ppoll(f->polls, n, &ts, NULL);
	if (ready < 0 && errno != EINTR)
		return -errno;
	for (unsigned i = 0; i < n; i++)
		serve(&f->conns[i], ready > 0 ? f->polls[i].revents : 0);
	return 0;
}

static bool all_up(const struct fleet *f)
{
	for (unsigned i = 0; i < n_conns(f); i++)
		if (!f->conns[i].up)
			return false;
	return true;
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static int setup(struct fleet *f)
{
	const struct fleet_options *o = &f->opt;
	f->devices = calloc(o->devices, sizeof(*f->devices));
	f->conns = calloc(n_conns(f), sizeof(*f->conns));
	f->polls = calloc(n_conns(f), sizeof(*f->polls));
	if (!f->devices || !f->conns || !f->polls)
		return -ENOMEM;
	f->colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	for (unsigned i = 0; i < o->devices; i++) {
		f->devices[i].conn = &f->conns[(uint64_t)i * o->conns / o->devices];
		f->devices[i].timeout_ms = o->demo && o->devices - 1 - i == 3 ? NAP_TIMEOUT : o->timeout_ms;
	}
	for (unsigned i = 0; i < n_conns(f); i++) {
		int rc = open_conn(f, i);
		if (rc != 0)
			return rc;
	}
	for (int64_t until = now_ns() + 10 * NS_PER_S; !all_up(f) && !stopped;) {
		if (now_ns() > until) {
			fprintf(stderr, "fleet: the broker did not answer every connection within 10 s\n");
			return -ETIMEDOUT;
		}
		turn(f, now_ns() + 10 * NS_PER_MS);
	}
	f->start_ns = now_ns();
	return 0;
}

static int run(struct fleet *f)
{
	int64_t end = f->opt.duration_ms > 0 ? f->start_ns + f->opt.duration_ms * NS_PER_MS : INT64_MAX;
	while (!stopped && now_ns() < end) {
		wake_due(f);
		int64_t next = next_wake_ns(f);
		int rc = turn(f, next < end ? next : end);
		if (rc != 0)
			return rc;
	}
	return 0;
}

#define NEAR_NS (250 * NS_PER_MS)

/* By the wall clock as it is now. */
static int tell_truth(struct fleet *f)
{
	FILE *out = fopen(f->opt.truth, "w");
	struct timespec ts;
	int64_t at = now_ns();
	clock_gettime(CLOCK_REALTIME, &ts);
	int64_t wall_ns = ts.tv_sec * NS_PER_S + ts.tv_nsec - at;
	for (unsigned i = 0; out && i < f->opt.devices; i++) {
		struct device *d = &f->devices[i];
		char id[128];
		bool near = (gone_since(d, at) == INT64_MAX) != (gone_since(d, at + NEAR_NS) == INT64_MAX) ||
		            (gone_since(d, at) == INT64_MAX) != (gone_since(d, at - NEAR_NS) == INT64_MAX);
		add_outage(d, at);
		id_of(f, i, id, sizeof(id));
		fprintf(out, "%s %lld %lld %lld %u %d\n", id, (long long)((d->first_ns + wall_ns) / NS_PER_MS),
		        (long long)((at + wall_ns) / NS_PER_MS), (long long)(d->down_ns / NS_PER_MS), d->outages, near);
	}
	return out && fclose(out) == 0 ? 0 : -EIO;
}

static void count_seen(struct fleet *f)
{
	for (unsigned i = 0; i < f->opt.devices; i++) {
		f->account.online += f->devices[i].online_seen;
		f->account.offline += f->devices[i].offline_seen;
	}
}

/* A clean goodbye to the broker, so that no will is published. */
static void teardown(struct fleet *f)
{
	for (unsigned i = 0; f->conns && i < n_conns(f); i++) {
		if (!f->conns[i].mosq)
			continue;
		mosquitto_disconnect(f->conns[i].mosq);
		mosquitto_destroy(f->conns[i].mosq);
	}
	free(f->conns);
	free(f->devices);
	free(f->polls);
	fleet_account_fini(&f->account);
}

int main(int argc, char **argv)
{
	struct fleet f = {0};
	struct sigaction act = {.sa_handler = on_signal};
	int status = 3;
	if (!fleet_options_parse(&f.opt, argc, argv)) {
		fleet_options_usage(stderr);
		return 2;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	mosquitto_lib_init();
	if (setup(&f) == 0 && run(&f) == 0) {
		count_seen(&f);
		int truth = f.opt.truth ? tell_truth(&f) : 0;
		status = fleet_account_tell(&f.account, &f.opt);
		status = truth < 0 ? 1 : status;
	}
	teardown(&f);
	mosquitto_lib_cleanup();
	return status;
}
