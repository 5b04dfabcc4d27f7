/* SPDX-License-Identifier: MIT */
/* See log.h. A line is one write(), so that lines of two processes do not mix. A full disk loses lines, never the
 * daemon. */
#include "run/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "conf/file.h"
#include "heartwheel/print.h"

#define LINE_MAX_BYTES 2048
#define LIMIT_NS       (INT64_C(10) * 1000 * 1000 * 1000)

const struct hw_conf_choice hw_log_levels[] = {{"debug", HW_LOG_DEBUG},   {"info", HW_LOG_INFO},
                                               {"notice", HW_LOG_NOTICE}, {"warning", HW_LOG_WARNING},
                                               {"error", HW_LOG_ERROR},   {NULL, 0}};
static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARNING, LOG_ERR};

void hw_log_init(struct hw_log *l, const char *name)
{
	memset(l, 0, sizeof(*l));
	l->name = name;
	l->fd = -1;
	l->level = HW_LOG_INFO;
}

/* A pipe to which this process writes anyway: /dev/stderr may be one. */
static bool is_own_output(const struct stat *st)
{
	struct stat own;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
			return true;
	return false;
}

/* A regular file, or a device as /dev/null. A FIFO would block open(), and each line while its reader is slow. */
static int check_file(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return 0;
	if (!S_ISCHR(st.st_mode) && !is_own_output(&st))
		return -EMEDIUMTYPE;
	return fcntl(fd, F_SETFL, O_APPEND) < 0 ? -errno : 0;
}

static int open_file(const char *path, const struct hw_user *u)
{
	int fd = hw_user_open(u, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
	if (fd == -ENXIO)
		return -EMEDIUMTYPE; /* a FIFO without a reader, or a socket */
	int rc = fd < 0 ? fd : check_file(fd);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

int hw_log_open(struct hw_log *l, const char *where, int level, const struct hw_user *u)
{
	int fd = -1;
	char *path = NULL;
	bool file = where[0] == '/';
	if (file) {
		path = strdup(where);
		if (!path)
			return -ENOMEM;
		fd = open_file(where, u);
		if (fd < 0) {
			free(path);
			return fd;
		}
	}
	hw_log_close(l);
	l->level = level;
	l->path = path;
	l->fd = fd;
	l->to = file ? HW_LOG_TO_FILE : strcmp(where, "syslog") == 0 ? HW_LOG_TO_SYSLOG : HW_LOG_TO_STDERR;
	if (l->to == HW_LOG_TO_SYSLOG)
		openlog(l->name, LOG_PID | LOG_NDELAY, LOG_DAEMON);
	return 0;
}

int hw_log_try(const char *where)
{
	int fd = where[0] == '/' ? open_file(where, NULL) : 0;
	if (fd > 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int open_anew(struct hw_log *l)
{
	if (l->to != HW_LOG_TO_FILE)
		return 0;
	int fd = open_file(l->path, NULL);
	if (fd < 0)
		return fd;
	close(l->fd);
	l->fd = fd;
	return 0;
}

int hw_log_reopen(struct hw_log *l)
{
	int rc = open_anew(l);
	if (rc)
		hw_log(l, HW_LOG_ERROR, "cannot reopen %s: %s; logging goes on where it was", l->path,
		       hw_file_error(-rc));
	else
		hw_log(l, HW_LOG_NOTICE, "log reopened");
	return rc;
}

void hw_log_close(struct hw_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->to == HW_LOG_TO_SYSLOG)
		closelog();
	free(l->path);
	l->fd = -1;
	l->path = NULL;
	l->to = HW_LOG_TO_STDERR;
}

/* A line from outside must not forge another one. */
static void tame(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static void write_line(struct hw_log *l, enum hw_log_level level, const char *text)
{
	l->failed |= l->starting && level >= HW_LOG_ERROR;
	if (l->starting && l->to != HW_LOG_TO_STDERR && level >= HW_LOG_ERROR)
		dprintf(STDERR_FILENO, "%s: %s\n", l->name, text);
	if (l->to == HW_LOG_TO_SYSLOG) {
		syslog(priorities[level], "%s", text);
		return;
	}
	char line[LINE_MAX_BYTES + 64];
	struct timespec t;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += hw_print(line + n, sizeof(line) - n, ".%03ldZ %s: %s\n", t.tv_nsec / 1000000, hw_log_levels[level].name,
	              text);
	ssize_t written = write(l->fd >= 0 ? l->fd : STDERR_FILENO, line, n);
	(void)written; /* nowhere to complain to */
}

static void format_line(char *text, size_t cap, const char *format, va_list args)
{
	vsnprintf(text, cap, format, args);
	tame(text);
}

void hw_log(struct hw_log *l, enum hw_log_level level, const char *format, ...)
{
	if ((int)level < l->level)
		return;
	char text[LINE_MAX_BYTES];
	va_list args;
	va_start(args, format);
	format_line(text, sizeof(text), format, args);
	va_end(args);
	write_line(l, level, text);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_recent(const struct hw_log_line *line, int64_t now)
{
	return line->at_ns && now - line->at_ns < LIMIT_NS;
}

/* Whether a line is one too many. */
static bool holds(const struct hw_log_limit *m, const char *text, int64_t now)
{
	for (unsigned i = 0; i < HW_LOG_NEWS; i++)
		if (is_recent(&m->line[i], now) && strncmp(text, m->line[i].text, sizeof(m->line[i].text) - 1) == 0)
			return true;
	return is_recent(&m->line[m->next], now);
}

static void keep(struct hw_log_limit *m, const char *text, int64_t now)
{
	struct hw_log_line *line = &m->line[m->next];
	size_t kept = strnlen(text, sizeof(line->text) - 1);
	memcpy(line->text, text, kept);
	line->text[kept] = '\0';
	line->at_ns = now;
	m->next = (m->next + 1) % HW_LOG_NEWS;
	m->held = 0;
}

void hw_log_limited(struct hw_log *l, unsigned kind, enum hw_log_level level, const char *format, ...)
{
	if ((int)level < l->level)
		return;
	struct hw_log_limit *m = &l->limit[kind];
	char text[LINE_MAX_BYTES];
	va_list args;
	va_start(args, format);
	format_line(text, sizeof(text) - 64, format, args);
	va_end(args);
	int64_t now = now_ns();
	if (holds(m, text, now)) {
		m->held++;
		return;
	}
	uint64_t held = m->held;
	keep(m, text, now);
	if (held) {
		size_t n = strlen(text);
		snprintf(text + n, sizeof(text) - n, " (%llu like it since)", (unsigned long long)held);
	}
	write_line(l, level, text);
}
