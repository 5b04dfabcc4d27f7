/* SPDX-License-Identifier: MIT */
/* The largest state file of heartwheel-alert, and one that is written in part. Here a file has less than
 * HW_STATE_FILE_MAX = 3,000,000 bytes. Other cases are in tests/system/test_incidents_memory.py. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../suite.h"
#include "alert/memory/keys.h"
#include "alert/memory/state_file.h"

static char dir[32], path[64], why[300];
static struct hw_keys *keys;
static struct hw_state_file *file;

static void open_file(void)
{
	keys = hw_keys_new(1);
	ck_assert_ptr_nonnull(keys);
	file = hw_state_file_open(path, keys, why, sizeof(why));
	ck_assert_msg(file != NULL, "%s", why);
}

static void close_file(void)
{
	hw_state_file_close(file);
	hw_keys_free(keys);
}

static void setup(void)
{
	strcpy(dir, "/tmp/hw-state-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/alert.json", dir);
	open_file();
}

static void teardown(void)
{
	char name[80];
	close_file();
	unlink(path);
	snprintf(name, sizeof(name), "%s.lock", path);
	unlink(name);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* Sets a key to a text of `n` times `c`, and stores that. */
static int put(const char *key, char c, size_t n)
{
	char *text = malloc(n + 1);
	ck_assert_ptr_nonnull(text);
	memset(text, c, n);
	text[n] = '\0';
	hw_keys_do(keys, (const char *const[]){"SET", key, text, NULL});
	free(text);
	return hw_state_file_write(file, keys, why, sizeof(why));
}

static void ck_key(const char *key, char c, size_t n)
{
	const char *text = hw_keys_text(keys, key);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(strlen(text), n);
	ck_assert_int_eq(*text, c);
}

START_TEST(appended_lines_leave_the_file_readable)
{
	ck_assert_int_eq(put("a", 'a', 1800000), 0);
	for (char c = 'b'; c <= 'p'; c++)
		ck_assert_int_eq(put("b", c, 100000), 0);
	close_file();
	open_file();
	ck_key("a", 'a', 1800000);
	ck_key("b", 'p', 100000);
}
END_TEST

START_TEST(a_state_that_is_too_large_does_not_replace_the_file)
{
	ck_assert_int_eq(put("a", 'a', 1800000), 0);
	ck_assert_int_eq(put("b", 'b', 1800000), -EFBIG);
	ck_assert_ptr_nonnull(strstr(why, "alert.json cannot be written: File too large"));
	ck_assert_int_eq(put("b", 'c', 1000), 0);
	ck_assert_int_eq(put("d", 'd', 1800000), -EFBIG);
	close_file();
	open_file();
	ck_key("a", 'a', 1800000);
	ck_key("b", 'c', 1000);
	ck_assert_ptr_null(hw_keys_text(keys, "d"));
}
END_TEST

/* Files can have at most `n` bytes, as on a disk that becomes full in the middle of a write. */
static void limit_files(rlim_t n)
{
	struct rlimit limit;
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = n;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_line_that_was_written_in_part_is_not_read)
{
	struct stat st;
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(put("a", 'a', 1800000), 0);
	limit_files(1850000);
	ck_assert_int_eq(put("b", 'b', 100000), -EFBIG); /* neither the line nor a new file fits */
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, 1850000);
	close_file();
	open_file();
	ck_key("a", 'a', 1800000);
	ck_assert_ptr_null(hw_keys_text(keys, "b"));
	ck_assert_int_eq(put("b", 'c', 1000), 0); /* not appended after the part */
	close_file();
	open_file();
	ck_key("b", 'c', 1000);
	limit_files(1801500);
	ck_assert_int_eq(put("d", 'd', 1000), -EFBIG);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(put("e", 'e', 1000), 0); /* the same in one run */
	close_file();
	open_file();
	ck_key("d", 'd', 1000);
	ck_key("e", 'e', 1000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("state_file");
	TCase *all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, appended_lines_leave_the_file_readable);
	tcase_add_test(all, a_state_that_is_too_large_does_not_replace_the_file);
	tcase_add_test(all, a_line_that_was_written_in_part_is_not_read);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
