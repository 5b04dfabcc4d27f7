/* SPDX-License-Identifier: MIT */
/* The daemon's log: to syslog, stderr or a file, with levels, and with a limit for lines that input can cause. One
 * thread only. */
#ifndef HW_LOG_H
#define HW_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"

/* Lines that outside events can repeat at will: each kind is written at most once in 10 s, with how many were held
 * back. */
enum hw_log_kind {
	HW_LIMIT_READER,
	HW_LIMIT_BROKER,
	HW_LIMIT_REDIS,
	HW_LIMIT_REDIS_TROUBLE,
	HW_LIMIT_FOREIGN,
	HW_LIMIT_STATUS_REFUSED,
	HW_LIMIT_DISCOVERY_REFUSED,
	HW_LIMIT_NOTIFY,
	HW_LIMIT_KEYSPACE,
	HW_LIMIT_KEYSPACE_TROUBLE,
	HW_LIMITS
};

struct hw_log {
	int level; /* enum hw_log_level: less is not written */
	enum { HW_LOG_TO_STDERR, HW_LOG_TO_SYSLOG, HW_LOG_TO_FILE } to;
	int fd;        /* of a file, -1 otherwise */
	bool starting; /* errors are said on stderr too: whoever starts the daemon should see why it fails */
	char *path;
	int64_t limit_ns[HW_LIMITS]; /* when a line of the kind was written last; 0: never */
	uint64_t held[HW_LIMITS];
	char last[HW_LIMITS][512]; /* a line that differs is news, and not held back */
};

/* Logs to stderr until hw_log_open(). */
void hw_log_init(struct hw_log *l);

/* Opens what `where` says ("syslog", "stderr" or a path). Returns 0, or -errno with the log as it was. */
int hw_log_open(struct hw_log *l, const char *where, int level);

/* Whether hw_log_open() could open it: 0 or -errno. Makes the file. */
int hw_log_try(const char *where);

/* Opens a log file anew after it was renamed; -errno leaves the old one in use. */
int hw_log_reopen(struct hw_log *l);
void hw_log_close(struct hw_log *l);

void hw_log(struct hw_log *l, enum hw_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void hw_log_limited(struct hw_log *l, enum hw_log_kind kind, enum hw_log_level level, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
