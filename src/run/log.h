/* SPDX-License-Identifier: MIT */
/* A daemon's log: to syslog, stderr or a file, with levels, and with a limit for lines that input can cause. One
 * thread only. */
#ifndef HW_RUN_LOG_H
#define HW_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/table.h"
#include "run/user.h"

enum hw_log_level { HW_LOG_DEBUG, HW_LOG_INFO, HW_LOG_NOTICE, HW_LOG_WARNING, HW_LOG_ERROR };

/* Their names, for a program's table of options. */
extern const struct hw_conf_choice hw_log_levels[];

/*
 * Lines that outside events can repeat at will have a kind, a number of the program's own. A line is held back, and
 * counted, for 10 s after one of its kind said the same. One that says something else is news and written at once, but
 * no more than HW_LOG_NEWS lines of a kind in 10 s: what differs in each line can be what an outsider chose.
 */
#define HW_LOG_KINDS 24
#define HW_LOG_NEWS  5

struct hw_log {
	const char *name; /* of the program, borrowed */
	int level;        /* enum hw_log_level: less is not written */
	enum { HW_LOG_TO_STDERR, HW_LOG_TO_SYSLOG, HW_LOG_TO_FILE } to;
	int fd;        /* of a file, -1 otherwise */
	bool starting; /* errors are said on stderr too: whoever starts the daemon should see why it fails */
	bool failed;   /* while it was starting, an error was written */
	char *path;
	struct hw_log_limit {
		struct hw_log_line {
			int64_t at_ns; /* when it was written; 0: never */
			char text[256];
		} line[HW_LOG_NEWS]; /* the last ones */
		unsigned next;       /* the oldest of them */
		uint64_t held;       /* since the last line */
	} limit[HW_LOG_KINDS];
};

/* Logs to stderr until hw_log_open(). `name`: the program's, by which syslog knows it. */
void hw_log_init(struct hw_log *l, const char *name);

/* Opens what `where` says ("syslog", "stderr" or a path). `u`: the user that the daemon becomes later, to which a new
 * file belongs; NULL: none. Returns 0, or -errno with the log as it was. */
int hw_log_open(struct hw_log *l, const char *where, int level, const struct hw_user *u);

/* Whether hw_log_open() could open it: 0 or -errno. Makes the file. */
int hw_log_try(const char *where);

/* Opens a log file anew after it was renamed, and says so; -errno leaves the old one in use, which says that. */
int hw_log_reopen(struct hw_log *l);
void hw_log_close(struct hw_log *l);

void hw_log(struct hw_log *l, enum hw_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void hw_log_limited(struct hw_log *l, unsigned kind, enum hw_log_level level, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
