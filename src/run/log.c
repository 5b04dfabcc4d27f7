/* SPDX-License-Identifier: MIT */
/* See log.h. Each line is written with one write(), so that the lines of two processes do not mix. If the reader of the
 * log is slow, a line waits for it, but only for a moment, because the loop waits too: meanwhile no device is judged
 * and no signal is handled. */
#include "run/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "conf/file.h"
#include "heartwheel/print.h"
#include "heartwheel/utf8.h"

#define LINE_MAX_BYTES 2048
#define HEAD_MAX_BYTES 128 /* what stands before the text in a line */
#define TERMINAL_PIECE 128 /* bytes for which a terminal has room if poll() calls it writable */
/* How long a line waits for a slow reader. For example, /dev/log may have room for only 10 lines. */
#define PATIENCE_MS    10
#define WAITS_A_SECOND 20
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
	l->syslog_path = "/dev/log";
}

/* --- syslog --------------------------------------------------------------------------------------------------------
 * The syslog() of glibc waits if the daemon that reads /dev/log does not read. This code does not wait. Its lines have
 * the same format. */

static int connect_syslog(const char *path, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	int error = errno;
	close(fd);
	return -error;
}

/* Opens /dev/log. Without a syslog daemon, fd stays -1, and the next line tries again. */
static void open_syslog(struct hw_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	int fd = connect_syslog(l->syslog_path, SOCK_DGRAM);
	l->syslog_stream = fd == -EPROTOTYPE;
	if (l->syslog_stream)
		fd = connect_syslog(l->syslog_path, SOCK_STREAM);
	l->fd = fd < 0 ? -1 : fd;
}

/* On a stream a NUL ends the line. */
static int send_syslog(const struct hw_log *l, const char *line, size_t len)
{
	if (l->fd < 0)
		return -ENOTCONN;
	len += l->syslog_stream ? 1 : 0;
	ssize_t n = send(l->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EPIPE;
}

/* Whether the descriptor accepts a line. If it does not, waits a moment, because the reader of the log may only be
 * slow. For a reader that does not read at all, waits only once in a second. */
static bool is_writable(struct hw_log *l, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	if (poll(&p, 1, 0) == 1)
		return true;
	int64_t now = time(NULL);
	if (now != l->waited_s)
		l->waits = 0;
	l->waited_s = now;
	if (l->waits++ >= WAITS_A_SECOND)
		return false;
	if (poll(&p, 1, PATIENCE_MS) == 1)
		return true;
	l->waits = WAITS_A_SECOND;
	return false;
}

static bool put_syslog(struct hw_log *l, enum hw_log_level level, const char *text)
{
	char line[LINE_MAX_BYTES + HEAD_MAX_BYTES], when[32];
	time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%b %e %T", &tm);
	size_t n = hw_print(line, sizeof(line), "<%d>%s %s[%ld]: %s", LOG_DAEMON | priorities[level], when, l->name,
	                    (long)getpid(), text);
	int rc = send_syslog(l, line, n);
	if (rc == -EAGAIN && is_writable(l, l->fd))
		rc = send_syslog(l, line, n);
	if (rc && rc != -EAGAIN) {
		open_syslog(l);
		rc = send_syslog(l, line, n);
	}
	return rc == 0;
}

/* --- stderr and files --------------------------------------------------------------------------------------------- */

/* Writes if the descriptor is writable (is_writable()). A pipe that poll() calls writable has room for PIPE_BUF bytes.
 * O_NONBLOCK is not used, because it would also affect other processes that share the descriptor. */
static bool put_bytes(struct hw_log *l, int fd, const char *bytes, size_t len)
{
	size_t most = isatty(fd) ? TERMINAL_PIECE : PIPE_BUF;
	while (len > 0) {
		if (!is_writable(l, fd))
			return false;
		ssize_t n = write(fd, bytes, len < most ? len : most);
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static bool put_file(struct hw_log *l, enum hw_log_level level, const char *text)
{
	char line[LINE_MAX_BYTES + HEAD_MAX_BYTES];
	_Static_assert(sizeof(line) <= PIPE_BUF, "a line is one write()");
	struct timespec t;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += hw_print(line + n, sizeof(line) - n, ".%03ldZ %s: %s\n", t.tv_nsec / 1000000, hw_log_levels[level].name,
	              text);
	return put_bytes(l, l->fd >= 0 ? l->fd : STDERR_FILENO, line, n);
}

/* Whether the file is this process's stdout or stderr. /dev/stderr may be a pipe. */
static bool is_own_output(const struct stat *st)
{
	struct stat own;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
			return true;
	return false;
}

/* Accepts only a regular file, or a device such as /dev/null. A FIFO would block open(), and would block each write
 * while its reader is slow. */
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
		open_syslog(l);
	return 0;
}

int hw_log_try(const char *where)
{
	int fd = where[0] == '/' ? open_file(where, NULL) : 0;
	if (fd > 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int open_again(struct hw_log *l)
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
	int rc = open_again(l);
	if (rc)
		hw_log(l, HW_LOG_ERROR, "cannot reopen %s: %s; logging continues in the old file", l->path,
		       hw_file_error(-rc));
	else
		hw_log(l, HW_LOG_NOTICE, "log reopened");
	return rc;
}

void hw_log_close(struct hw_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	l->fd = -1;
	l->path = NULL;
	l->to = HW_LOG_TO_STDERR;
}

static bool put_line(struct hw_log *l, enum hw_log_level level, const char *text)
{
	return l->to == HW_LOG_TO_SYSLOG ? put_syslog(l, level, text) : put_file(l, level, text);
}

/* Logs how many lines were left out, before the next line that can be written. */
static void put_left_out(struct hw_log *l)
{
	char text[160];
	hw_print(text, sizeof(text),
	         "left out %llu log lines, which could not be written at once; check what reads or stores this log",
	         (unsigned long long)l->left_out);
	if (put_line(l, HW_LOG_WARNING, text))
		l->left_out = 0;
}

static void write_line(struct hw_log *l, enum hw_log_level level, const char *text)
{
	l->failed |= l->starting && level >= HW_LOG_ERROR;
	if (l->starting && l->to != HW_LOG_TO_STDERR && level >= HW_LOG_ERROR) {
		char line[LINE_MAX_BYTES + HEAD_MAX_BYTES];
		put_bytes(l, STDERR_FILENO, line, hw_print(line, sizeof(line), "%s: %s\n", l->name, text));
	}
	if (l->left_out)
		put_left_out(l);
	if (l->left_out || !put_line(l, level, text))
		l->left_out++;
}

/* Replaces control characters, so that input in a line can neither look like another line nor control a terminal. */
static void format_line(char *text, size_t cap, const char *format, va_list args)
{
	char raw[LINE_MAX_BYTES];
	size_t n = hw_vprint(raw, sizeof(raw), format, args);
	hw_utf8_show(raw, n, text, cap);
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

/* Whether the line must be suppressed. */
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
