/* SPDX-License-Identifier: MIT */
/*
 * One small interface to SQL, with two backends: SQLite 3, and MariaDB or MySQL through libmariadb. What is built in is
 * what configure found. A text that the two understand differently is written twice (hw_sql_pick()); names that one of
 * them reserves stand in backticks, which both take.
 *
 * A connection and its statements belong to one thread at a time. Calls block. After an error nothing is known of the
 * transaction that was open: the owner closes the connection, opens another one, and looks what is there.
 */
#ifndef HW_HISTORY_SQL_H
#define HW_HISTORY_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_sql;      /* opaque */
struct hw_sql_stmt; /* opaque; owned by its connection */

#define HW_SQL_WHY      512
#define HW_SQL_TEXT_MAX 1023 /* bytes of a text in a row; more is cut off */

/* "sqlite:/PATH" or "mysql://USER@HOST[:PORT]/DB", "mysql://USER@[/PATH/OF/SOCKET]/DB". */
struct hw_sql_place {
	bool mysql;
	char path[256];             /* of a SQLite file */
	char user[81], host[256];   /* host "": the socket */
	char socket[108], base[65]; /* base: the database's name */
	int port;
};

/* NULL and *out, or what is wrong with the text. */
const char *hw_sql_place_parse(const char *text, struct hw_sql_place *out);
/* Whether its backend is built in; else what is to be done. */
const char *hw_sql_place_lacks(const struct hw_sql_place *p);

struct hw_sql_conf {
	struct hw_sql_place place;
	const char *password; /* "": none */
	const char *tls_ca;   /* "": no TLS */
};

/* Once, before any thread. */
void hw_sql_init(void);
/* Connects; a SQLite file is made if it is missing. NULL with the reason in `why`. */
struct hw_sql *hw_sql_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY]);
/* With all its statements. NULL may be given. */
void hw_sql_close(struct hw_sql *s);
bool hw_sql_is_mysql(const struct hw_sql *s);
/* The text of the two that this backend understands. */
const char *hw_sql_pick(const struct hw_sql *s, const char *sqlite, const char *mysql);
/* What went wrong last; valid until the next call. */
const char *hw_sql_error(struct hw_sql *s);

/* Runs one statement that has no parameters and answers no rows that matter. 0 or -EIO. */
int hw_sql_run(struct hw_sql *s, const char *text);

/* Prepares a statement for many uses. NULL: hw_sql_error(). Parameters are counted from 1. */
struct hw_sql_stmt *hw_sql_prepare(struct hw_sql *s, const char *text);
/* Gives all statements of the connection back. */
void hw_sql_finish_all(struct hw_sql *s);
void hw_sql_int(struct hw_sql_stmt *q, int i, int64_t v);
/* Borrowed until hw_sql_reset(). */
void hw_sql_bytes(struct hw_sql_stmt *q, int i, const char *text, size_t len);
void hw_sql_text(struct hw_sql_stmt *q, int i, const char *text);
void hw_sql_null(struct hw_sql_stmt *q, int i);
/* 1: there is a row; 0: no more; -EIO. The first call after a reset runs the statement. */
int hw_sql_step(struct hw_sql_stmt *q);
/* Ends it, and makes it ready for the next parameters. */
void hw_sql_reset(struct hw_sql_stmt *q);
/* Runs a statement that answers no rows: how many it changed, or -EIO. Resets it. */
int64_t hw_sql_do(struct hw_sql_stmt *q);
/* The row's columns, counted from 0; texts are valid until the next step. */
int64_t hw_sql_column_int(struct hw_sql_stmt *q, int i);
/* The same of a time or a length in ms, or of a count, for sums: within 0 and the year 9999, whatever the row has. */
int64_t hw_sql_column_ms(struct hw_sql_stmt *q, int i);
bool hw_sql_column_is_null(struct hw_sql_stmt *q, int i);
const char *hw_sql_column_text(struct hw_sql_stmt *q, int i, size_t *len);
/* The number that the last insertion of hw_sql_do() was given. */
int64_t hw_sql_inserted(struct hw_sql_stmt *q);

/* A transaction that means to write: it has the right to from the start on. 0 or -EIO. */
int hw_sql_begin(struct hw_sql *s);
/* -EIO: it may have happened all the same. */
int hw_sql_commit(struct hw_sql *s);
void hw_sql_rollback(struct hw_sql *s);

#endif
