/* SPDX-License-Identifier: MIT */
/* The parts that importer.c and read_back.c share. Private to both. */
#ifndef HW_HISTORY_IMPORTER_PRIV_H
#define HW_HISTORY_IMPORTER_PRIV_H

#include <pthread.h>

#include "history/importer.h"
#include "history/ledger.h"

#define HW_IMPORTER_LINES 64

/* The parts of Redis that are read: the streams, and the hashes of devices. */
enum { HW_PART_HASHES = HW_STREAMS, HW_PARTS };

struct hw_importer_line {
	enum hw_log_level level;
	char text[700];
};

struct hw_importer {
	struct hw_importer_conf conf;
	const struct hw_importer_ops *ops;
	void *arg;
	struct hw_source *source; /* owned */
	pthread_t thread;
	bool running;
	int wake_fd;
	struct event *wake;

	pthread_mutex_t lock; /* guards the members up to lost_lines */
	struct hw_importer_view view;
	struct hw_importer_line lines[HW_IMPORTER_LINES];
	unsigned n_lines, lost_lines;

	/* used by the thread alone */
	struct hw_ledger *ledger; /* NULL: SQL is away */
	struct hw_stream_cursor cursor[HW_STREAMS];
	bool cursors_known; /* true after the offsets were read from SQL once */
	unsigned again_s, rounds;
	int64_t sql_at_ms, expire_at_ms, lag_at_ms; /* monotonic */
	int64_t pending_ms;       /* time of the gap after which the hashes must be read; 0: there is none */
	bool refused[HW_PARTS];   /* Redis refuses to let this part be read */
	char refusal[HW_SQL_WHY]; /* text of the last refusal */
	int64_t hashes_at_ms;     /* monotonic; after a refusal, hashes are not read before */
	bool emptied;             /* see hw_ledger_read_pending() */
	bool half_reported, redis_reported;
	int64_t odd_reported_ms[HW_ODD_KINDS]; /* monotonic */
};

/* The functions below are called in the importer's thread. Functions that read or write return 0; -ENOTCONN if Redis
 * cannot be reached, if there is no memory, or if the importer ends; -EACCES if Redis refuses the read; -EIO if SQL
 * failed. */

/* Copies a batch of a stream's entries from Redis to SQL: the next ones after the stored offset. Sets *more if the
 * stream has further entries. Logs a refusal of Redis. */
int hw_importer_copy_batch(struct hw_importer *c, enum hw_stream stream, bool *more);
/* Logs when Redis begins or ceases to refuse the reading of a part. `rc`: the result of the read; hw_source_why() has
 * the text. */
void hw_importer_note_refusal(struct hw_importer *c, int part, int rc);
/* Counts and logs the impossible rows that the ledger has found in SQL. */
void hw_importer_account_rows(struct hw_importer *c);
/* Logs the impossible values of a page, each kind at most once in 10 s. */
void hw_importer_report_odd(struct hw_importer *c, int part, const struct hw_source_page *p);

/* In read_back.c: reads the hash of each device, and writes the transitions that the gap at c->pending_ms has lost.
 * After a complete reading, pending_ms is 0, or the time of a later gap. */
int hw_importer_read_back(struct hw_importer *c);

#endif
