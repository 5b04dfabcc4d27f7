/* SPDX-License-Identifier: MIT */
/* See conf_rig.h. Its functions stand before those of libc and of libsettings. Each test is a process of its own. */
#include "conf_rig.h"

#include <check.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

const char *rig_host_name = "box.example";

int gethostname(char *name, size_t len)
{
	if (!rig_host_name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	snprintf(name, len, "%s", rig_host_name);
	return 0;
}

int rig_file(const void *text, size_t len, char *path, size_t cap)
{
	int fd = memfd_create("monitor.conf", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
	snprintf(path, cap, "/proc/self/fd/%d", fd);
	return fd;
}

void *rig_load_bytes(const struct hw_conf_table *table, const void *text, size_t len, struct hw_conf_errors *errors)
{
	char path[64];
	int fd = rig_file(text, len, path, sizeof(path));
	void *c = hw_conf_load(table, path, errors);
	close(fd);
	for (size_t i = 0; i < errors->n; i++) {
		ck_assert_msg(strncmp(errors->lines[i], path, strlen(path)) == 0, "%s", errors->lines[i]);
		memmove(errors->lines[i], errors->lines[i] + strlen(path), strlen(errors->lines[i] + strlen(path)) + 1);
	}
	return c;
}

void *rig_load(const struct hw_conf_table *table, const char *text)
{
	struct hw_conf_errors errors = {0};
	void *c = rig_load_bytes(table, text, strlen(text), &errors);
	ck_assert_msg(c != NULL, "refused: %s", errors.n ? errors.lines[0] : "");
	ck_assert_uint_eq(errors.n, 0);
	ck_assert_ptr_null(errors.lines);
	return c;
}

struct hw_settings *load(const char *text)
{
	return rig_load(&hw_settings_table, text);
}

void rig_refuse(const struct hw_conf_table *table, const void *text, size_t len, const char *const *expected)
{
	struct hw_conf_errors errors = {0};
	size_t n = 0;
	ck_assert_ptr_null(rig_load_bytes(table, text, len, &errors));
	for (size_t i = 0; expected[i]; i++) {
		if (expected[i][0] != '~') {
			ck_assert_msg(n < errors.n, "not reported: %s", expected[i]);
			ck_assert_msg(strncmp(errors.lines[n], expected[i], strlen(expected[i])) == 0,
			              "'%s' instead of '%s'", errors.lines[n], expected[i]);
			n++;
		} else {
			ck_assert_msg(strstr(errors.lines[n - 1], expected[i] + 1) != NULL, "'%s' lacks '%s'",
			              errors.lines[n - 1], expected[i] + 1);
		}
	}
	ck_assert_msg(n == errors.n, "too many: %s", n < errors.n ? errors.lines[n] : "");
	hw_conf_errors_fini(&errors);
	ck_assert_uint_eq(errors.n, 0);
}
