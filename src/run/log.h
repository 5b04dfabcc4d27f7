/* SPDX-License-Identifier: MIT */
/* A daemon's log, to syslog, stderr or a file, with levels. It limits how often input can cause a line. Used by one
 * thread only. If the reader of the log is slow or has stopped, the log waits only for a moment: after that it leaves
 * lines out, and counts them. */
#ifndef HW_RUN_LOG_H
#define HW_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/table.h"
#include "run/user.h"

enum hw_log_level { HW_LOG_DEBUG, HW_LOG_INFO, HW_LOG_NOTICE, HW_LOG_WARNING, HW_LOG_ERROR };

/* The names of the levels, for a table of options. */
extern const struct hw_conf_choice hw_log_levels[];

/*
 * A line that input can repeat has a kind, a number that the program chooses. For 10 s after a line, equal lines of its
 * kind are not written but counted. A different line of that kind is written at once, but at most HW_LOG_NEWS lines of
 * a kind in 10 s, because input may control how lines differ.
 */
#define HW_LOG_KINDS 24
#define HW_LOG_NEWS  5

struct hw_log {
	const char *name; /* the program's name; borrowed */
	int level;        /* enum hw_log_level: lower levels are not written */
	enum { HW_LOG_TO_STDERR, HW_LOG_TO_SYSLOG, HW_LOG_TO_FILE } to;
	int fd;                  /* of the file, or the socket to syslog; else -1 */
	const char *syslog_path; /* syslog's socket; borrowed */
	bool syslog_stream;      /* the socket to syslog is a stream */
	int64_t waited_s;        /* wall clock: when a line last waited for the reader of the log */
	unsigned waits;          /* in that second */
	uint64_t left_out;       /* how many lines could not be written since the last written line */
	bool starting;           /* errors also go to stderr, so that the parent process shows them */
	bool failed;             /* an error was logged during the start */
	char *path;
	struct hw_log_limit {
		struct hw_log_line {
			int64_t at_ns; /* when it was written; 0: never */
			char text[256];
		} line[HW_LOG_NEWS]; /* the last lines */
		unsigned next;       /* index of the oldest */
		uint64_t held;       /* lines suppressed since the last line */
	} limit[HW_LOG_KINDS];
};

/* Logs to stderr until hw_log_open(). `name`: the program's name in syslog. */
void hw_log_init(struct hw_log *l, const char *name);

/* Opens `where` ("syslog", "stderr" or a path). `u` is the user that the daemon becomes later, who will own a new
 * file; NULL: there is none. Returns 0, or -errno with the log unchanged. */
int hw_log_open(struct hw_log *l, const char *where, int level, const struct hw_user *u);

/* Checks whether hw_log_open() would succeed: 0 or -errno. Creates the file. */
int hw_log_try(const char *where);

/* Reopens the log file, after logrotate has renamed it, and logs that. On -errno the old file stays in use, and the
 * error is logged there. */
int hw_log_reopen(struct hw_log *l);
void hw_log_close(struct hw_log *l);

void hw_log(struct hw_log *l, enum hw_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void hw_log_limited(struct hw_log *l, unsigned kind, enum hw_log_level level, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
