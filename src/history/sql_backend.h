/* SPDX-License-Identifier: MIT */
/* A backend of sql.h: a table of functions. Its structs begin with struct hw_sql and struct hw_sql_stmt. */
#ifndef HW_HISTORY_SQL_BACKEND_H
#define HW_HISTORY_SQL_BACKEND_H

#include "history/sql.h"

struct hw_sql_backend {
	void (*init)(void);
	struct hw_sql *(*open)(const struct hw_sql_conf *c, char why[HW_SQL_WHY]);
	void (*close)(struct hw_sql *s);
	const char *(*error)(struct hw_sql *s);
	int (*run)(struct hw_sql *s, const char *text);
	struct hw_sql_stmt *(*prepare)(struct hw_sql *s, const char *text);
	void (*finish)(struct hw_sql_stmt *q);
	void (*bind_int)(struct hw_sql_stmt *q, int i, int64_t v);
	void (*bind_bytes)(struct hw_sql_stmt *q, int i, const char *text, size_t len);
	void (*bind_null)(struct hw_sql_stmt *q, int i);
	int (*step)(struct hw_sql_stmt *q);
	void (*reset)(struct hw_sql_stmt *q);
	int64_t (*changes)(struct hw_sql_stmt *q);
	int64_t (*inserted)(struct hw_sql_stmt *q);
	int64_t (*column_int)(struct hw_sql_stmt *q, int i);
	bool (*column_is_null)(struct hw_sql_stmt *q, int i);
	const char *(*column_text)(struct hw_sql_stmt *q, int i, size_t *len);
	const char *begin;
};

struct hw_sql {
	const struct hw_sql_backend *b;
	struct hw_sql_stmt *stmts; /* list of all its statements */
};

struct hw_sql_stmt {
	struct hw_sql *s;
	struct hw_sql_stmt *next;
};

extern const struct hw_sql_backend hw_sql_sqlite, hw_sql_mysql;

#endif
