/* SPDX-License-Identifier: MIT */
/* Where the control API listens: its socket, and an address for clients that may only read. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../suite.h"
#include "control_rig.h"

/* --- the socket */

START_TEST(socket_has_its_mode)
{
	struct stat st;
	static const mode_t masks[] = {0, 077, 0777};
	for (size_t i = 0; i < 3; i++) {
		struct hw_control *c;
		char path[128];
		snprintf(path, sizeof(path), "%s/%zu", s.dir, i);
		mode_t was = umask(masks[i]);
		ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
		umask(was);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 07777, 0660);
		hw_control_free(c);
		ck_assert_int_eq(stat(path, &st), -1);
	}
}
END_TEST

START_TEST(socket_has_its_group)
{
	struct hw_control *c;
	struct stat st;
	char path[128], group[16];
	snprintf(path, sizeof(path), "%s/g", s.dir);
	snprintf(group, sizeof(group), "%u", geteuid() == 0 ? 12345u : (unsigned)getegid());
	ck_assert_int_eq(hw_control_new(&c, s.base, path, group, s.monitor, NULL, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_gid, (gid_t)atoi(group));
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
	hw_control_free(c);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "no such group", s.monitor, NULL, NULL), -EINVAL);
	ck_assert_ptr_null(c);
	ck_assert_int_eq(stat(path, &st), -1);
}
END_TEST

START_TEST(socket_in_use_is_refused)
{
	struct hw_control *c;
	ck_assert_int_eq(hw_control_new(&c, s.base, s.path, "", s.monitor, NULL, NULL), -EADDRINUSE);
	ck_assert_int_eq(get(&s, "/healthz", &r), 200); /* and is still served */
}
END_TEST

START_TEST(stale_socket_is_replaced)
{
	struct hw_control *c;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/stale", s.dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	ck_assert_int_eq(hw_control_new(&c, s.base, sa.sun_path, "", s.monitor, NULL, NULL), 0);
	hw_control_free(c);
}
END_TEST

START_TEST(other_files_are_left_alone)
{
	struct hw_control *c;
	struct stat st;
	char path[256];
	snprintf(path, sizeof(path), "%s/file", s.dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENOTSOCK);
	ck_assert_int_eq(stat(path, &st), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/none/sock", s.dir);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENOENT);
	memset(path, 'a', 200);
	path[200] = '\0';
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), -ENAMETOOLONG);
}
END_TEST

START_TEST(successors_socket_stays)
{
	struct hw_control *c;
	char moved[128];
	struct stat st;
	/* Another program moves the file away and puts its own there. */
	snprintf(moved, sizeof(moved), "%s/moved", s.dir);
	ck_assert_int_eq(rename(s.path, moved), 0);
	ck_assert_int_eq(hw_control_new(&c, s.base, s.path, "", s.monitor, NULL, NULL), 0);
	hw_control_free(s.control);
	ck_assert_int_eq(stat(s.path, &st), 0);
	s.control = c;
	unlink(moved);
}
END_TEST

/* --- an address for reading alone */

static int tcp_port(int family)
{
	struct sockaddr_storage sa = {.ss_family = (sa_family_t)family};
	socklen_t len = sizeof(sa);
	int fd = socket(family, SOCK_STREAM, 0);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&sa,
	         family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return -1;
	close(fd);
	return ntohs(((struct sockaddr_in *)(void *)&sa)->sin_port);
}

/* One request to 127.0.0.1; the status, and the answer in `r`. */
static int tcp_ask(int port, const char *method, const char *target)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[256];
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	int n = snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	                 method, target);
	ck_assert(client_send(&s, fd, request, (size_t)n));
	reply_fini(&r);
	client_read(&s, fd, NULL, &r);
	close(fd);
	return r.code;
}

START_TEST(an_address_reads_alone)
{
	char address[64];
	int port = tcp_port(AF_INET);
	bool local = false;
	server_see(&s);
	server_beat(&s, 0, "a", NULL);
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	ck_assert_int_eq(hw_control_listen(s.control, address, &local), 0);
	ck_assert(local);
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/status"), 200);
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/devices/a"), 200);
	ck_assert_int_eq(tcp_ask(port, "GET", "/metrics"), 200);
	ck_assert_int_eq(tcp_ask(port, "DELETE", "/v1/devices/a"), 405);
	ck_assert_ptr_nonnull(strstr(r.body, "{\"error\":\"this address is read-only"));
	ck_assert_ptr_nonnull(strstr(r.head, "\r\nAllow: GET, HEAD\r\n"));
	ck_assert_uint_eq(s.forgets, 0);
	ck_assert_int_eq(tcp_ask(port, "DELETE", "/v1/devices"), 405);
	ck_assert_int_eq(tcp_ask(port, "POST", "/v1/reload"), 405);
	ck_assert_ptr_nonnull(strstr(r.body, "{\"error\":\"this address is read-only"));
	ck_assert_int_eq(tcp_ask(port, "GET", "/v1/reload"), 405);
	ck_assert_int_eq(tcp_ask(port, "GET", "/none"), 404);
	reply_fini(&r);
	ask(&s, "DELETE", "/v1/devices/a", NULL, &r);
	ck_assert_int_eq(r.code, 204);
	/* Twice is once too often. */
	struct hw_control *c;
	char path[128];
	snprintf(path, sizeof(path), "%s/other", s.dir);
	ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
	ck_assert_int_eq(hw_control_listen(c, address, &local), -EADDRINUSE);
	hw_control_free(c);
}
END_TEST

START_TEST(addresses_of_every_kind)
{
	static const struct {
		const char *host;
		int family;
		bool local;
	} cases[] = {{"127.0.0.1", AF_INET, true},
	             {"127.9.9.9", AF_INET, true},
	             {"0.0.0.0", AF_INET, false},
	             {"[::1]", AF_INET6, true},
	             {"[::]", AF_INET6, false}};
	static const char *const wrong[] = {"", "127.0.0.1", "x:1", "127.0.0.1:0", "[::1]", "127.0.0.1:99999"};
	char path[128], address[64];

	snprintf(path, sizeof(path), "%s/other", s.dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hw_control *c;
		bool local = !cases[i].local;
		int port = tcp_port(cases[i].family);
		if (port < 0)
			continue; /* no IPv6 here */
		ck_assert_int_eq(hw_control_new(&c, s.base, path, "", s.monitor, NULL, NULL), 0);
		snprintf(address, sizeof(address), "%s:%d", cases[i].host, port);
		int rc = hw_control_listen(c, address, &local);
		ck_assert(rc == 0 || (cases[i].family == AF_INET6 && rc == -EADDRNOTAVAIL));
		if (rc == 0)
			ck_assert_msg(local == cases[i].local, "%s", address);
		hw_control_free(c);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		bool local;
		ck_assert_int_eq(hw_control_listen(s.control, wrong[i], &local), -EINVAL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_socket");
	TCase *tc = tcase_create("basic");
	tcase_add_checked_fixture(tc, rig_set_up_blind, rig_tear_down);
	tcase_add_test(tc, socket_has_its_mode);
	tcase_add_test(tc, an_address_reads_alone);
	tcase_add_test(tc, addresses_of_every_kind);
	tcase_add_test(tc, socket_has_its_group);
	tcase_add_test(tc, socket_in_use_is_refused);
	tcase_add_test(tc, stale_socket_is_replaced);
	tcase_add_test(tc, other_files_are_left_alone);
	tcase_add_test(tc, successors_socket_stays);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
