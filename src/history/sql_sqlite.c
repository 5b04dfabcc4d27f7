/* SPDX-License-Identifier: MIT */
/*
 * SQLite with a write-ahead log and synchronous = NORMAL. So reports can read while a batch is written, and a batch
 * needs no fsync. If the machine crashes, the last batches may be lost, each together with its offset. The importer
 * then reads their entries again.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "history/sql_backend.h"

#define PAGE      4096
#define LOG_MIN   200   /* pages in the log at which a checkpoint moves them to the database; it costs an fsync */
#define LOG_MAX   16384 /* 64 MB: few checkpoints during a long import */
#define LOG_SHARE 32    /* at most this fraction of the file system */
#define BUSY_MS   5000  /* how long to wait for another worker's transaction */

struct base {
	struct hw_sql s;
	sqlite3 *db;
};

struct stmt {
	struct hw_sql_stmt q;
	sqlite3_stmt *st;
};

static sqlite3 *db_of(struct hw_sql *s)
{
	return ((struct base *)s)->db;
}

static sqlite3_stmt *st_of(struct hw_sql_stmt *q)
{
	return ((struct stmt *)q)->st;
}

static const char *error(struct hw_sql *s)
{
	return sqlite3_errmsg(db_of(s));
}

static int run(struct hw_sql *s, const char *text)
{
	return sqlite3_exec(db_of(s), text, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static void close_base(struct hw_sql *s)
{
	sqlite3_close(db_of(s));
	free(s);
}

static void init(void)
{
	sqlite3_initialize();
}

/* Limits the log, so that it does not fill a small file system. */
static int set_log(struct base *b, const char *path)
{
	struct statvfs fs;
	char text[128];
	long long pages = LOG_MAX;
	if (statvfs(path, &fs) == 0)
		pages = (long long)fs.f_blocks * (long long)fs.f_frsize / PAGE / LOG_SHARE;
	pages = pages < LOG_MIN ? LOG_MIN : pages > LOG_MAX ? LOG_MAX : pages;
	snprintf(text, sizeof(text), "PRAGMA wal_autocheckpoint = %lld; PRAGMA journal_size_limit = %lld", pages,
	         pages * PAGE);
	return run(&b->s, text);
}

static struct hw_sql *open_base(const struct hw_sql_conf *c, char why[HW_SQL_WHY])
{
	static const char settings[] =
		"PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		"PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;";
	struct base *b = calloc(1, sizeof(*b));
	if (!b) {
		snprintf(why, HW_SQL_WHY, "out of memory");
		return NULL;
	}
	b->s.b = &hw_sql_sqlite;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	if (sqlite3_open_v2(c->place.path, &b->db, flags, NULL) == SQLITE_OK &&
	    sqlite3_busy_timeout(b->db, BUSY_MS) == SQLITE_OK && run(&b->s, settings) == 0 &&
	    set_log(b, c->place.path) == 0)
		return &b->s;
	snprintf(why, HW_SQL_WHY, "%.256s: %s", c->place.path, b->db ? sqlite3_errmsg(b->db) : "out of memory");
	close_base(&b->s);
	return NULL;
}

static struct hw_sql_stmt *prepare(struct hw_sql *s, const char *text)
{
	struct stmt *q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	if (sqlite3_prepare_v3(db_of(s), text, -1, SQLITE_PREPARE_PERSISTENT, &q->st, NULL) == SQLITE_OK)
		return &q->q;
	free(q);
	return NULL;
}

static void finish(struct hw_sql_stmt *q)
{
	sqlite3_finalize(st_of(q));
	free(q);
}

static void bind_int(struct hw_sql_stmt *q, int i, int64_t v)
{
	sqlite3_bind_int64(st_of(q), i, v);
}

static void bind_bytes(struct hw_sql_stmt *q, int i, const char *text, size_t len)
{
	sqlite3_bind_text64(st_of(q), i, text, len, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_null(struct hw_sql_stmt *q, int i)
{
	sqlite3_bind_null(st_of(q), i);
}

static int step(struct hw_sql_stmt *q)
{
	int rc = sqlite3_step(st_of(q));
	return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -EIO;
}

static void reset(struct hw_sql_stmt *q)
{
	sqlite3_reset(st_of(q));
}

static int64_t changes(struct hw_sql_stmt *q)
{
	return sqlite3_changes64(db_of(q->s));
}

static int64_t inserted(struct hw_sql_stmt *q)
{
	return sqlite3_last_insert_rowid(db_of(q->s));
}

static int64_t column_int(struct hw_sql_stmt *q, int i)
{
	return sqlite3_column_int64(st_of(q), i);
}

static bool column_is_null(struct hw_sql_stmt *q, int i)
{
	return sqlite3_column_type(st_of(q), i) == SQLITE_NULL;
}

static const char *column_text(struct hw_sql_stmt *q, int i, size_t *len)
{
	const char *text = (const char *)sqlite3_column_text(st_of(q), i);
	*len = (size_t)sqlite3_column_bytes(st_of(q), i);
	return text ? text : "";
}

const struct hw_sql_backend hw_sql_sqlite = {.init = init,
                                             .open = open_base,
                                             .close = close_base,
                                             .error = error,
                                             .run = run,
                                             .prepare = prepare,
                                             .finish = finish,
                                             .bind_int = bind_int,
                                             .bind_bytes = bind_bytes,
                                             .bind_null = bind_null,
                                             .step = step,
                                             .reset = reset,
                                             .changes = changes,
                                             .inserted = inserted,
                                             .column_int = column_int,
                                             .column_is_null = column_is_null,
                                             .column_text = column_text,
                                             .begin = "BEGIN IMMEDIATE"};
