/* SPDX-License-Identifier: MIT */
/*
 * A small interface to SQL with two backends: SQLite 3, and MariaDB or MySQL through libmariadb. configure decides
 * which backends are built in. If a statement needs different texts for the backends, it is written twice
 * (hw_sql_pick()). Names that a backend reserves are in backticks, which both backends accept.
 *
 * A connection and its statements are used by one thread at a time. Calls block. After an error, the state of the open
 * transaction is unknown. The owner then closes the connection, opens a new one, and reads what is stored.
 */
#ifndef HW_HISTORY_SQL_H
#define HW_HISTORY_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_sql;      /* opaque */
struct hw_sql_stmt; /* opaque; owned by its connection */

#define HW_SQL_WHY      512
#define HW_SQL_TEXT_MAX 1023 /* bytes of a text in a row; longer texts are cut */

/* "sqlite:/PATH" or "mysql://USER@HOST[:PORT]/DB", "mysql://USER@[/PATH/OF/SOCKET]/DB". */
struct hw_sql_place {
	bool mysql;
	char path[256];             /* of a SQLite file */
	char user[81], host[256];   /* host "": connect to the socket */
	char socket[108], base[65]; /* base: name of the database */
	int port;
};

/* Returns NULL and fills *out, or returns what is wrong with the text. */
const char *hw_sql_place_parse(const char *text, struct hw_sql_place *out);
/* Returns NULL if the backend for `p` is built in, or else a text that describes to the operator what to do. */
const char *hw_sql_place_missing(const struct hw_sql_place *p);

struct hw_sql_conf {
	struct hw_sql_place place;
	const char *password; /* "": none */
	const char *tls_ca;   /* "": no TLS */
};

/* Call once, before any thread starts. */
void hw_sql_init(void);
/* Connects. Creates a missing SQLite file. On an error returns NULL, with the reason in `why`. */
struct hw_sql *hw_sql_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY]);
/* Closes the connection and frees its statements. `s` may be NULL. */
void hw_sql_close(struct hw_sql *s);
bool hw_sql_is_mysql(const struct hw_sql *s);
/* Returns the text for the backend of this connection. */
const char *hw_sql_pick(const struct hw_sql *s, const char *sqlite, const char *mysql);
/* The last error; valid until the next call. */
const char *hw_sql_error(struct hw_sql *s);

/* Runs a statement without parameters and ignores its rows. Returns 0 or -EIO. */
int hw_sql_run(struct hw_sql *s, const char *text);

/* Prepares a statement for repeated use. On an error returns NULL: see hw_sql_error(). Parameters are counted from 1.
 */
struct hw_sql_stmt *hw_sql_prepare(struct hw_sql *s, const char *text);
/* Frees all statements of the connection. */
void hw_sql_finish_all(struct hw_sql *s);
void hw_sql_int(struct hw_sql_stmt *q, int i, int64_t v);
/* The text is borrowed until hw_sql_reset(). */
void hw_sql_bytes(struct hw_sql_stmt *q, int i, const char *text, size_t len);
void hw_sql_text(struct hw_sql_stmt *q, int i, const char *text);
void hw_sql_null(struct hw_sql_stmt *q, int i);
/* Returns 1 with a row, 0 after the last row, or -EIO. The first call after a reset runs the statement. */
int hw_sql_step(struct hw_sql_stmt *q);
/* Ends the statement and makes it ready for new parameters. */
void hw_sql_reset(struct hw_sql_stmt *q);
/* Runs a statement that returns no rows, and resets it. Returns the number of changed rows, or -EIO. */
int64_t hw_sql_do(struct hw_sql_stmt *q);
/* hw_sql_column_int() and the functions below read a column; the first column is 0. A text is valid until the next
 * step. */
int64_t hw_sql_column_int(struct hw_sql_stmt *q, int i);
/* Like hw_sql_column_int() for a count, or a time or duration in ms. The value is limited to 0 up to the year 9999, so
 * that sums do not overflow. */
int64_t hw_sql_column_ms(struct hw_sql_stmt *q, int i);
bool hw_sql_column_is_null(struct hw_sql_stmt *q, int i);
const char *hw_sql_column_text(struct hw_sql_stmt *q, int i, size_t *len);
/* Returns the row number that the last insertion by hw_sql_do() got. */
int64_t hw_sql_inserted(struct hw_sql_stmt *q);

/* Begins a transaction that may write from its start. Returns 0 or -EIO. */
int hw_sql_begin(struct hw_sql *s);
/* Commits the transaction. Returns 0, or -EIO, and it is then unknown whether the transaction was committed. */
int hw_sql_commit(struct hw_sql *s);
void hw_sql_rollback(struct hw_sql *s);

#endif
