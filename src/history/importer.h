/* SPDX-License-Identifier: MIT */
/*
 * The importer: a thread that reads the streams from Redis and writes them to SQL in batches, until it is stopped. A
 * COMMIT may take long, and neither the watchdog nor a request may wait for it, so this is not done on the loop.
 *
 * The loop gets copies of the importer's log lines and of its view, under one lock. If SQL cannot be reached or
 * refuses, the importer reconnects after 1 s, then after growing times up to 60 s. Meanwhile the entries stay in Redis.
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
	int64_t events_max;               /* about how many events Redis keeps */
	unsigned pages;                   /* most pages per transaction: a batch */
};

/* Called from the loop. */
struct hw_importer_ops {
	void (*on_line)(void *arg, enum hw_log_level level, const char *text);
};

enum hw_importer_rows {
	HW_ROWS_TRANSITION,
	HW_ROWS_FOUND,
	HW_ROWS_SIGHT,
	HW_ROWS_TASK,
	HW_ROWS_INCIDENT,
	HW_ROWS_KINDS
};

struct hw_importer_view {
	bool sql, redis;                                 /* redis: connected, and all parts can be read */
	char sql_why[HW_SQL_WHY], redis_why[HW_SQL_WHY]; /* why sql or redis is false */
	struct hw_stream_cursor cursor[HW_STREAMS];
	int64_t lag_entries[HW_STREAMS]; /* -1: unknown */
	int64_t lag_ms[HW_STREAMS];
	int64_t until_ms[HW_STREAMS]; /* the Unix ms up to which SQL has all entries of Redis; 0: the stream was not
	                                 read yet in this run */
	int64_t gaps, lost;           /* all that SQL holds */
	uint64_t rows[HW_ROWS_KINDS], odd[HW_ODD_KINDS], yielded, sql_losses;
	struct hw_histogram batch;
	bool pending; /* hashes are still to be read after a gap */
};

/* Starts the thread. `conf` is copied, but its texts are borrowed, and so is `ops`. Returns NULL if there is no memory.
 */
struct hw_importer *hw_importer_new(struct event_base *base, const struct hw_importer_conf *conf,
                                    const struct hw_importer_ops *ops, void *arg);
/* Stops after the batch that is being written. `c` may be NULL. */
void hw_importer_free(struct hw_importer *c);
void hw_importer_view(struct hw_importer *c, struct hw_importer_view *out);
/* The label values in the metrics. */
const char *hw_importer_rows_name(enum hw_importer_rows kind);
const char *hw_importer_odd_name(enum hw_source_odd kind);

#endif
