/* SPDX-License-Identifier: MIT */
/*
 * Connections that do not come about: each must give one clear line, once, keep trying, and end when told to.
 */
#include <arpa/inet.h>
#include <check.h>
#include <glob.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bound.h"
#include "mqtt_broker.h"

#define OPEN "allow_anonymous true\n"

static const int protocols[] = {5, 311};
static const struct hw_mqtt_filter filter = {.filter = "nodes/+/heartbeat"};

static struct hw_reader *reader_start(const struct hw_mqtt_conf *conf)
{
	struct hw_reader *r;
	ck_assert_int_eq(hw_reader_start(&r, conf, &filter, 1, NULL, 0, 500), 0);
	return r;
}

/* The first event must be this one, with both of these in its text. */
static void expect_text(struct hw_reader *r, enum hw_reader_event_kind kind, const char *text, const char *also)
{
	struct hw_reader_event ev;
	ck_assert_msg(reader_next(r, &ev, PATIENCE), "nothing is said, instead of '%s'", text);
	ck_assert_msg(ev.kind == kind && strstr(ev.text, text) && strstr(ev.text, also),
	              "event %d '%s' instead of %d '%s … %s'", (int)ev.kind, ev.text, (int)kind, text, also);
}

static void expect_silence(struct hw_reader *r, int ms)
{
	struct hw_reader_event ev;
	ck_assert_msg(!reader_next(r, &ev, ms), "event %d '%s' although nothing is new", (int)ev.kind, ev.text);
}

/* --- nobody there */

START_TEST(test_refused)
{
	struct broker b;
	char want[64];
	broker_init(&b, OPEN);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	snprintf(want, sizeof(want), "connection to 127.0.0.1:%d refused", b.port);
	expect_text(r, HW_READER_DOWN, want, "is the broker running?");
	expect_silence(r, 2500);
	broker_start(&b);
	reader_await(r, HW_READER_UP);
	hw_reader_stop(r);
	broker_stop(&b, SIGTERM);
}
END_TEST

START_TEST(test_unknown_host)
{
	struct broker b = {.port = 1};
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	conf.host = "no-such-host.invalid";
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN, "cannot resolve no-such-host.invalid: ", "; see [mqtt] host");
	hw_reader_stop(r);
}
END_TEST

static int listening(int *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

/* Connects, without waiting, until nobody can any more: a connect() that waits then hangs. */
static void fill_backlog(int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	for (int i = 0; i < 8; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fd, (struct sockaddr *)&a, sizeof(a));
	}
}

START_TEST(test_stop_while_connecting)
{
	struct broker b = {0};
	struct hw_publisher *p;
	int fd = listening(&b.port);
	fill_backlog(b.port);
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	ck_assert_int_eq(hw_publisher_start(&p, &conf, "w", "x", 1), 0);
	expect_silence(r, 500); /* it hangs */
	int64_t start = now_ms();
	hw_reader_stop(r);
	hw_publisher_stop(p, 1000);
	ck_assert_int_lt(now_ms() - start, 2000 + 3000 + PATIENCE);
	close(fd);
}
END_TEST

START_TEST(test_stop_is_quick)
{
	struct broker b;
	broker_init(&b, OPEN);
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN, "refused", "");
	int64_t start = now_ms();
	hw_reader_stop(r); /* in its back-off */
	broker_start(&b);
	r = reader_start(&conf);
	reader_await(r, HW_READER_UP);
	hw_reader_stop(r); /* in its sleep */
	ck_assert_within(now_ms() - start, 10000, "ms");
	broker_stop(&b, SIGTERM);
}
END_TEST

START_TEST(test_silent_server)
{
	struct broker b = {0};
	int fd = listening(&b.port);
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN, "accepts connections but does not answer", "");
	hw_reader_stop(r);
	close(fd);
}
END_TEST

START_TEST(test_no_mqtt_server)
{
	struct broker b = {0};
	int fd = listening(&b.port);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	int client = accept(fd, NULL, NULL);
	ck_assert_int_ge(client, 0);
	char request[256];
	ck_assert_int_gt(read(client, request, sizeof(request)), 0);
	close(client);
	expect_text(r, HW_READER_DOWN, "closed the connection before it answered",
	            protocols[_i] == 5 ? "try [mqtt] protocol = 3.1.1" : "without TLS");
	hw_reader_stop(r);
	close(fd);
}
END_TEST

/* --- not let in */

START_TEST(test_password)
{
	struct broker b;
	struct hw_publisher *p;
	char extra[256];
	broker_init(&b, "");
	snprintf(extra, sizeof(extra), "listener %d 127.0.0.1\nuser root\npassword_file %s\nlog_dest file %s", b.port,
	         broker_file(&b, "passwords"), broker_file(&b, "log"));
	broker_write(&b, "conf", extra);
	broker_shell(&b, "mosquitto_passwd -b -c passwords monitor right && chmod 600 passwords");
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-r0");
	conf.username = "monitor";
	conf.password = "wrong";
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN,
	            "user name or password refused by the broker: see [mqtt] username, password_file", "");
	int64_t until = now_ms() + PATIENCE;
	while (broker_logged(&b, "not authorised") < 3) {
		ck_assert_msg(now_ms() < until, "it does not try again");
		expect_silence(r, 100);
	}
	hw_reader_stop(r);
	ck_assert_int_eq(hw_publisher_start(&p, &conf, "w", "x", 1), 0);
	struct hw_publisher_event down = publisher_await(p, HW_PUBLISHER_DOWN);
	ck_assert_ptr_nonnull(strstr(down.text, "password_file"));
	hw_publisher_stop(p, 1000);
	conf.password = "right";
	hw_reader_stop(reader_up(&conf, "nodes/+", false));
	broker_stop(&b, SIGTERM);
}
END_TEST

/* mosquitto does not report it: the broker is simply there again each time. */
START_TEST(test_taken_over)
{
	struct broker b;
	broker_init(&b, OPEN);
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-same-r0");
	struct hw_reader *first = reader_up(&conf, "nodes/+", false), *second = reader_start(&conf);
	struct hw_reader_event ev;
	do /* they throw each other out */
		ev = reader_await(first, HW_READER_DOWN);
	while (!strstr(ev.text, "node_id"));
	ck_assert_msg(strstr(ev.text, "'hw-same-r0'"), "%s", ev.text);
	hw_reader_retry(first); /* a broker that has been found is no reason to begin again */
	expect_silence(first, 700);
	hw_reader_stop(second);
	reader_await(first, HW_READER_UP);
	hw_reader_stop(first);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* The broker is found soon each time, however soon it ends again, and is never taken for another client. */
START_TEST(test_restarts)
{
	enum { RESTARTS = 10, FOUND_MS = 15000 };
	struct broker b;
	struct hw_reader_event ev;
	broker_init(&b, OPEN);
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-r0");
	struct hw_reader *r = reader_up(&conf, "nodes/+", false);
	for (int i = 0; i < RESTARTS; i++) {
		broker_stop(&b, i % 2 ? SIGKILL : SIGTERM);
		do
			ev = reader_await(r, HW_READER_DOWN);
		while (!strstr(ev.text, "refused"));
		broker_start(&b);
		int64_t back = now_ms();
		do {
			ck_assert_msg(reader_next(r, &ev, PATIENCE), "not found again, restart %d", i);
			ck_assert_msg(!strstr(ev.text, "another client"), "%s", ev.text);
		} while (ev.kind != HW_READER_UP);
		ck_assert_within(now_ms() - back, FOUND_MS, "ms");
	}
	hw_reader_stop(r);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* --- no right to subscribe */

static const char *security_plugin(void)
{
	static char path[256];
	glob_t g;
	if (glob("/usr/lib/*/mosquitto_dynamic_security.so", 0, NULL, &g) == 0)
		snprintf(path, sizeof(path), "%s", g.gl_pathv[0]);
	globfree(&g);
	return path;
}

static void write_rights(const struct broker *b, bool heartbeats)
{
	char text[1024];
	snprintf(text, sizeof(text),
	         "{\"defaultACLAccess\":{\"publishClientSend\":true,\"publishClientReceive\":true,\"subscribe\":false,"
	         "\"unsubscribe\":true},\"anonymousGroup\":\"all\",\"groups\":[{\"groupname\":\"all\",\"roles\":["
	         "{\"rolename\":\"r\"}]}],\"clients\":[],\"roles\":[{\"rolename\":\"r\",\"acls\":["
	         "{\"acltype\":\"subscribeLiteral\",\"topic\":\"heartwheel/t/barrier\",\"allow\":true}"
	         ",{\"acltype\":\"subscribeLiteral\",\"topic\":\"nodes/+/heartbeat\",\"allow\":%s}]}]}",
	         heartbeats ? "true" : "false");
	broker_write(b, "rights.json", text);
}

START_TEST(test_subscription_refused)
{
	struct broker b;
	char extra[512];
	broker_init(&b, "");
	snprintf(extra, sizeof(extra),
	         "listener %d 127.0.0.1\nuser root\nallow_anonymous true\nplugin %s\nplugin_opt_config_file %s\n",
	         b.port, security_plugin(), broker_file(&b, "rights.json"));
	broker_write(&b, "conf", extra);
	write_rights(&b, false);
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 0, "hw-t-r0");
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_REFUSED, "'nodes/+/heartbeat' refused by the broker", "right to subscribe");
	expect_silence(r, 2000); /* neither UP nor the same again */
	broker_stop(&b, SIGTERM);
	write_rights(&b, true);
	broker_start(&b);
	reader_await(r, HW_READER_UP);
	static const struct hw_mqtt_filter more[] = {{.filter = "nodes/+/heartbeat"}, {.filter = "other/+"}};
	ck_assert_int_eq(hw_reader_set_filters(r, more, 2), 0); /* a reload asks for more than it may */
	expect_text(r, HW_READER_REFUSED, "'other/+' refused", "");
	expect_text(r, HW_READER_DOWN, "'other/+' refused", "");
	ck_assert_int_eq(hw_reader_set_filters(r, more, 1), 0);
	reader_await(r, HW_READER_UP);
	hw_reader_stop(r);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* --- TLS */

static void make_certificates(const struct broker *b)
{
	static const struct {
		const char *name, *ca, *subject, *days;
	} made[] = {{"good", "ca", "127.0.0.1", "2"},
	            {"old", "ca", "127.0.0.1", "0"}, /* valid until the second in which it is made */
	            {"elsewhere", "ca", "other.example", "2"},
	            {"client", "ca", "monitor", "2"}};
	for (int i = 0; i < 2; i++)
		broker_shell(b,
		             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key "
		             "-out %s.crt -subj /CN=%s -days 2 2>>openssl.log",
		             i ? "wrong" : "ca", i ? "wrong" : "ca", i ? "Wrong" : "Right");
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		broker_shell(b,
		             "{ openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key -out "
		             "%s.csr -subj /CN=%s && openssl x509 -req -in %s.csr -CA %s.crt -CAkey %s.key "
		             "-CAcreateserial -out %s.crt -days %s; } 2>>openssl.log",
		             made[i].name, made[i].name, made[i].subject, made[i].name, made[i].ca, made[i].ca,
		             made[i].name, made[i].days);
}

static void tls_broker(struct broker *b, const char *certificate, bool ask_client)
{
	char extra[1024];
	broker_init(b, "");
	snprintf(extra, sizeof(extra),
	         "listener %d 127.0.0.1\nuser root\nallow_anonymous true\ncafile %s/ca.crt\ncertfile %s/%s.crt\n"
	         "keyfile %s/%s.key\nrequire_certificate %s\n",
	         b->port, b->dir, b->dir, certificate, b->dir, certificate, ask_client ? "true" : "false");
	broker_write(b, "conf", extra);
	make_certificates(b);
	broker_start(b);
}

static void tls_fails(const char *certificate, const char *ca, bool ask_client, const char *text, const char *also)
{
	struct broker b;
	char path[256];
	tls_broker(&b, certificate, ask_client);
	if (strcmp(certificate, "old") == 0)
		poll(NULL, 0, 2000);
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	snprintf(path, sizeof(path), "%s", broker_file(&b, ca));
	conf.tls_ca = path;
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN, text, also);
	expect_silence(r, 1500);
	hw_reader_stop(r);
	broker_stop(&b, SIGTERM);
}

START_TEST(test_tls_wrong_ca)
{
	tls_fails("good", "wrong.crt", false, "TLS with 127.0.0.1", "tls_ca");
}
END_TEST

START_TEST(test_tls_expired)
{
	tls_fails("old", "ca.crt", false, "certificate has expired", "renew it");
}
END_TEST

START_TEST(test_tls_other_host)
{
	tls_fails("elsewhere", "ca.crt", false, "broker's certificate is not for 127.0.0.1", "");
}
END_TEST

START_TEST(test_tls_no_client_certificate)
{
	tls_fails("good", "ca.crt", true, "ended the TLS handshake", "tls_cert and tls_key");
}
END_TEST

START_TEST(test_tls_no_ca_file)
{
	tls_fails("good", "missing.crt", false, "cannot read [mqtt] tls_ca", "No such file");
}
END_TEST

START_TEST(test_tls_ca_file_is_none)
{
	tls_fails("good", "conf", false, "TLS with 127.0.0.1", "CA certificates");
}
END_TEST

START_TEST(test_tls_to_plain_port)
{
	struct broker b;
	broker_init(&b, OPEN);
	make_certificates(&b);
	broker_start(&b);
	struct hw_mqtt_conf conf = conf_for(&b, 5, 0, "hw-t-r0");
	conf.tls_ca = broker_file(&b, "ca.crt");
	struct hw_reader *r = reader_start(&conf);
	expect_text(r, HW_READER_DOWN, "uses MQTT without TLS", "tls_ca");
	hw_reader_stop(r);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* Everything over TLS: many messages in one record, a ring that fills up, readers and publisher at once. */
START_TEST(test_tls_works)
{
	enum { MESSAGES = 400, SIZE = 5000, READERS = 2 };
	static const char *ids[READERS] = {"hw-t-r0", "hw-t-r1"};
	struct broker b;
	struct hw_reader *r[READERS];
	struct hw_publisher *p;
	struct hw_reader_event ev;
	char ca[256], cert[256], key[256];
	static char payload[SIZE];
	tls_broker(&b, "good", true);
	struct hw_mqtt_conf conf = conf_for(&b, protocols[_i], 1, "hw-t-pub");
	snprintf(ca, sizeof(ca), "%s", broker_file(&b, "ca.crt"));
	snprintf(cert, sizeof(cert), "%s", broker_file(&b, "client.crt"));
	snprintf(key, sizeof(key), "%s", broker_file(&b, "client.key"));
	conf.tls_ca = ca;
	conf.tls_cert = cert;
	conf.tls_key = key;
	ck_assert_int_eq(hw_publisher_start(&p, &conf, "w", "x", 1), 0);
	for (int i = 0; i < READERS; i++) {
		conf.client_id = ids[i];
		r[i] = reader_start(&conf);
	}
	for (int i = 0; i < READERS; i++)
		reader_await(r[i], HW_READER_UP);
	publisher_await(p, HW_PUBLISHER_UP);
	for (int i = 0, acked = 0; acked < MESSAGES;) {
		struct hw_publisher_event answer;
		memcpy(payload, &i, sizeof(i));
		while (i < MESSAGES && publisher_retain(p, "nodes/a/heartbeat", payload, SIZE, (uint64_t)i)) {
			i++;
			memcpy(payload, &i, sizeof(i));
		}
		hw_publisher_flush(p);
		ck_assert(publisher_next(p, &answer, PATIENCE));
		ck_assert_msg(answer.kind == HW_PUBLISHER_ACKED, "%s", answer.text);
		acked++;
	}
	for (int k = 0; k < READERS; k++) {
		for (int i = 0; i < MESSAGES; i++) {
			int got;
			ev = reader_await(r[k], HW_READER_MESSAGE);
			memcpy(&got, ev.payload, sizeof(got));
			ck_assert_int_eq(got, i);
			ck_assert_uint_eq(ev.payload_len, SIZE);
		}
		hw_reader_stop(r[k]);
	}
	hw_publisher_stop(p, 1000);
	broker_stop(&b, SIGTERM);
}
END_TEST

/* --- the list */

static void add(void *suite)
{
	TCase *t = tcase_create("link");
	tcase_set_timeout(t, 90);
	tcase_add_loop_test(t, test_refused, 0, 2);
	tcase_add_test(t, test_unknown_host);
	tcase_add_test(t, test_stop_while_connecting);
	tcase_add_test(t, test_stop_is_quick);
	tcase_add_test(t, test_silent_server);
	tcase_add_loop_test(t, test_no_mqtt_server, 0, 2);
	tcase_add_loop_test(t, test_password, 0, 2);
	tcase_add_loop_test(t, test_taken_over, 0, 2);
	tcase_add_loop_test(t, test_restarts, 0, 2);
	tcase_add_loop_test(t, test_subscription_refused, 0, 2);
	tcase_add_test(t, test_tls_wrong_ca);
	tcase_add_test(t, test_tls_expired);
	tcase_add_test(t, test_tls_other_host);
	tcase_add_test(t, test_tls_no_client_certificate);
	tcase_add_test(t, test_tls_no_ca_file);
	tcase_add_test(t, test_tls_ca_file_is_none);
	tcase_add_test(t, test_tls_to_plain_port);
	tcase_add_loop_test(t, test_tls_works, 0, 2);
	suite_add_tcase(suite, t);
}

int main(void)
{
	return test_mqtt_main("mqtt connections", add);
}
