/* SPDX-License-Identifier: MIT */
/*
 * A front that forwards requests, and a server behind it, each a process with a unix socket. The server uses real HTTP,
 * except for /broken and /interim, which write arbitrary bytes.
 */
#ifndef PASS_SERVERS_H
#define PASS_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "http/router.h"

#define PASS_PATIENCE_MS 1500 /* of the front with the answerer */
#define PASS_BIG         (64 * 1024 * 1024)

extern char pass_front_path[128], pass_answerer_path[128];
extern pid_t pass_front_pid, pass_answerer_pid; /* 0: it does not run */
extern const struct hw_http_table pass_answerer;

/* Both processes run when this returns. Fixtures of Check. */
void pass_setup(void);
void pass_teardown(void);

/* A process that serves `table` on `path`; `passes`: as a front. */
pid_t pass_start(const char *path, const struct hw_http_table *table, bool passes);
/* Ends it, if it runs: it must exit with 0. */
void pass_stop(pid_t *pid);

/* A connection; -1 if no process listens, as at first, when the file already exists. */
int pass_connect(const char *path);

#endif
