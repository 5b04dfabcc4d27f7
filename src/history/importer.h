/* SPDX-License-Identifier: MIT */
/*
 * The clerk: a thread of its own that reads the streams from Redis and writes them into SQL, a batch at a time, until
 * it is stopped. A thread, and not batches on the loop: how long a COMMIT takes is the disk's or a server's to say, and
 * neither the watchdog nor a request may wait for it.
 *
 * What it says goes to the loop as lines, and what it has done as a view, both by value under one lock. Where SQL is
 * away, or refuses, it connects anew after 1 s, doubling to 60 s; what Redis holds waits there.
 */
#ifndef HW_HISTORY_IMPORTER_H
#define HW_HISTORY_IMPORTER_H

#include "history/entry.h"
#include "history/source.h"
#include "history/sql.h"
#include "http/metrics.h"
#include "run/log.h"

struct event_base;
struct hw_importer; /* opaque */

struct hw_importer_conf {
	struct hw_source_conf source;
	struct hw_sql_conf sql;
	int64_t keep_ms, keep_outages_ms; /* 0: for ever */
	int64_t events_max;               /* what the stream is kept at */
	unsigned pages;                   /* of a transaction, at most: a batch */
};

/* From the loop. */
struct hw_importer_ops {
	void (*on_line)(void *arg, enum hw_log_level level, const char *text);
};

enum hw_importer_rows { HW_ROWS_TRANSITION, HW_ROWS_FOUND, HW_ROWS_SIGHT, HW_ROWS_TASK, HW_ROWS_KINDS };

struct hw_importer_view {
	bool sql, redis;                                 /* Redis: it is there, and lets all of it be read */
	char sql_why[HW_SQL_WHY], redis_why[HW_SQL_WHY]; /* of the one that is not */
	struct hw_place place[HW_STREAMS];
	int64_t lag_entries[HW_STREAMS]; /* -1: Redis does not tell */
	int64_t lag_ms[HW_STREAMS];
	int64_t until_ms[HW_STREAMS]; /* SQL has all that Redis had until then; 0: this run has not read it yet */
	int64_t gaps, lost;           /* of all that SQL holds */
	uint64_t rows[HW_ROWS_KINDS], odd[HW_ODD_KINDS], yielded, sql_losses;
	struct hw_histogram batch;
	bool owes; /* hashes are to be read back */
};

/* Starts it. `conf` is copied but for its texts, which are borrowed; so is `ops`. NULL without memory. */
struct hw_importer *hw_importer_new(struct event_base *base, const struct hw_importer_conf *conf,
                                    const struct hw_importer_ops *ops, void *arg);
/* Stops it behind the batch that is being written. NULL may be given. */
void hw_importer_free(struct hw_importer *c);
void hw_importer_view(struct hw_importer *c, struct hw_importer_view *out);
/* The names of rows, as the metrics have them. */
const char *hw_importer_rows_name(enum hw_importer_rows kind);
const char *hw_importer_odd_name(enum hw_source_odd kind);

#endif
