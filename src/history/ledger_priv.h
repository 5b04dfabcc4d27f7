/* SPDX-License-Identifier: MIT */
/* What ledger.c, ledger_gaps.c and ledger_texts.c share. Other files use ledger.h. */
#ifndef HW_HISTORY_LEDGER_PRIV_H
#define HW_HISTORY_LEDGER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "history/ledger.h"

#define HW_LEDGER_PIECE 1000 /* rows deleted per statement */

enum hw_ledger_query {
	PLACE_NEW,
	PLACE,
	PLACE_RESET,
	MOVE,
	DEVICE,
	DEVICE_NEW,
	DEVICE_SET,
	TRANSITION_NEW,
	OUTAGE_NEW,
	OUTAGE_AGAIN,
	OUTAGE_END,
	OUTAGE_CLOSE,
	MONTH_ADD,
	SIGHT_PUT,
	TASK_NEW,
	TASK_SET,
	INCIDENT_NEW,
	INCIDENT_SET,
	INCIDENT_DROP,
	PLANNED_NEW,
	PLANNED_LAST,
	GAP_NEW,
	SET_PENDING,
	READ_PENDING,
	PAID,
	GAP,
	SILENT,
	GAPS,
	EXPIRE_TRANSITIONS,
	EXPIRE_TASKS,
	EXPIRE_OUTAGES,
	EXPIRE_SIGHT,
	EXPIRE_PLANNED,
	EXPIRE_INCIDENTS,
	QUERIES
};

/* The text of each statement for SQLite, and for MariaDB and MySQL (NULL: the same). */
extern const char *const hw_ledger_texts[QUERIES][2];

struct hw_ledger {
	struct hw_sql *sql; /* owned */
	struct hw_sql_stmt *q[QUERIES];
	int64_t clock_ms;            /* of the last entry that had a clock; 0: none yet */
	uint64_t odd;                /* rows with impossible values since hw_ledger_odd() */
	char odd_row[HW_ENTRY_NAME]; /* name of one of these rows */
};

static inline bool hw_ledger_is(const char *text, const char *word)
{
	return strcmp(text, word) == 0;
}

/* Returns the clock that times are compared with: that of the last entry, or this machine's. */
int64_t hw_ledger_now_ms(const struct hw_ledger *l);

/* Writes an offset as text. The largest ids do not fit into the column in decimal digits, so they are stored in
 * hexadecimal digits. */
void hw_ledger_offset_text(struct hw_stream_id at, char buf[HW_STREAM_ID_TEXT]);
int hw_ledger_offset_parse(const char *text, size_t len, struct hw_stream_id *out);

/* Sets a parameter to `v`, or, unless `holds`, to NULL. */
void hw_ledger_bind_if(struct hw_sql_stmt *q, int i, bool holds, int64_t v);

#endif
