/* SPDX-License-Identifier: MIT */
/*
 * MariaDB and MySQL, through the prepared statements of libmariadb. There are few columns, so each is read as text; the
 * library converts numbers to text. A result is stored as a whole, so the next statement may run before all rows are
 * read.
 */
#include <errno.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/sql_backend.h"

#define PARAMS_MAX  16
#define COLUMNS_MAX 16
#define CONNECT_S   5
#define ANSWER_S    10 /* a server that is silent this long counts as away */

struct base {
	struct hw_sql s;
	MYSQL *db;
	char why[HW_SQL_WHY];
};

struct column {
	char text[HW_SQL_TEXT_MAX + 1];
	unsigned long len;
	my_bool null;
};

struct stmt {
	struct hw_sql_stmt q;
	MYSQL_STMT *st;
	unsigned n_params, n_columns;
	MYSQL_BIND params[PARAMS_MAX];
	int64_t ints[PARAMS_MAX];
	unsigned long lens[PARAMS_MAX];
	MYSQL_BIND binds[COLUMNS_MAX];
	struct column *columns; /* n_columns elements; owned */
	bool ran;
};

static struct base *base_of(struct hw_sql *s)
{
	return (struct base *)s;
}

static struct stmt *st_of(struct hw_sql_stmt *q)
{
	return (struct stmt *)q;
}

static const char *error(struct hw_sql *s)
{
	return base_of(s)->why;
}

static int failed(struct base *b, const char *why)
{
	snprintf(b->why, sizeof(b->why), "%s", why && *why ? why : "out of memory");
	return -EIO;
}

static int run(struct hw_sql *s, const char *text)
{
	struct base *b = base_of(s);
	if (mysql_query(b->db, text) != 0)
		return failed(b, mysql_error(b->db));
	MYSQL_RES *res = mysql_store_result(b->db);
	if (res)
		mysql_free_result(res);
	return 0;
}

static void close_base(struct hw_sql *s)
{
	if (base_of(s)->db)
		mysql_close(base_of(s)->db);
	free(s);
}

static bool set_up(MYSQL *db, const struct hw_sql_conf *c)
{
	unsigned protocol = c->place.socket[0] ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
	unsigned connect_s = CONNECT_S, answer_s = ANSWER_S;
	my_bool verify = 1;
	bool fine = mysql_options(db, MYSQL_OPT_PROTOCOL, &protocol) == 0 &&
	            mysql_options(db, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s) == 0 &&
	            mysql_options(db, MYSQL_OPT_READ_TIMEOUT, &answer_s) == 0 &&
	            mysql_options(db, MYSQL_OPT_WRITE_TIMEOUT, &answer_s) == 0 &&
	            mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4") == 0;
	if (fine && *c->tls_ca)
		fine = mysql_ssl_set(db, NULL, NULL, c->tls_ca, NULL, NULL) == 0 &&
		       mysql_options(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify) == 0;
	return fine;
}

static void init(void)
{
	mysql_library_init(0, NULL, NULL);
}

static struct hw_sql *open_base(const struct hw_sql_conf *c, char why[HW_SQL_WHY])
{
	const struct hw_sql_place *p = &c->place;
	struct base *b = calloc(1, sizeof(*b));
	if (!b || !(b->db = mysql_init(NULL)) || !set_up(b->db, c)) {
		snprintf(why, HW_SQL_WHY, "out of memory");
	} else if (!mysql_real_connect(b->db, p->socket[0] ? NULL : p->host, p->user, c->password, p->base,
	                               (unsigned)p->port, p->socket[0] ? p->socket : NULL, 0)) {
		snprintf(why, HW_SQL_WHY, "%s", mysql_error(b->db));
	} else {
		b->s.b = &hw_sql_mysql;
		/* Numbers and texts that do not fit are errors. SQLite's types have no such limits. */
		if (run(&b->s, "SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'") == 0)
			return &b->s;
		snprintf(why, HW_SQL_WHY, "%s", b->why);
	}
	if (b)
		close_base(&b->s);
	return NULL;
}

static void finish(struct hw_sql_stmt *q)
{
	struct stmt *t = st_of(q);
	if (t->st)
		mysql_stmt_close(t->st);
	free(t->columns);
	free(t);
}

static bool ready_columns(struct stmt *t)
{
	t->columns = calloc(t->n_columns + 1, sizeof(*t->columns));
	if (!t->columns || t->n_columns > COLUMNS_MAX || t->n_params > PARAMS_MAX)
		return false;
	for (unsigned i = 0; i < t->n_columns; i++)
		t->binds[i] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
		                           .buffer = t->columns[i].text,
		                           .buffer_length = HW_SQL_TEXT_MAX,
		                           .length = &t->columns[i].len,
		                           .is_null = &t->columns[i].null};
	return true;
}

static struct hw_sql_stmt *prepare(struct hw_sql *s, const char *text)
{
	struct base *b = base_of(s);
	struct stmt *t = calloc(1, sizeof(*t));
	if (!t || !(t->st = mysql_stmt_init(b->db))) {
		failed(b, "out of memory");
	} else if (mysql_stmt_prepare(t->st, text, strlen(text)) != 0) {
		failed(b, mysql_stmt_error(t->st));
	} else {
		t->n_params = (unsigned)mysql_stmt_param_count(t->st);
		t->n_columns = mysql_stmt_field_count(t->st);
		if (ready_columns(t))
			return &t->q;
		failed(b, "out of memory");
	}
	if (t)
		finish(&t->q);
	return NULL;
}

static void bind_int(struct hw_sql_stmt *q, int i, int64_t v)
{
	struct stmt *t = st_of(q);
	t->ints[i - 1] = v;
	t->params[i - 1] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &t->ints[i - 1]};
}

static void bind_bytes(struct hw_sql_stmt *q, int i, const char *text, size_t len)
{
	struct stmt *t = st_of(q);
	t->lens[i - 1] = len;
	t->params[i - 1] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
	                                .buffer = (void *)(uintptr_t)text,
	                                .buffer_length = len,
	                                .length = &t->lens[i - 1]};
}

static void bind_null(struct hw_sql_stmt *q, int i)
{
	st_of(q)->params[i - 1] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_NULL};
}

static int start(struct stmt *t)
{
	struct base *b = base_of(t->q.s);
	if ((t->n_params > 0 && mysql_stmt_bind_param(t->st, t->params)) || mysql_stmt_execute(t->st) != 0)
		return failed(b, mysql_stmt_error(t->st));
	t->ran = true;
	if (t->n_columns > 0 && (mysql_stmt_bind_result(t->st, t->binds) || mysql_stmt_store_result(t->st) != 0))
		return failed(b, mysql_stmt_error(t->st));
	return 0;
}

static int step(struct hw_sql_stmt *q)
{
	struct stmt *t = st_of(q);
	int rc = t->ran ? 0 : start(t);
	if (rc != 0 || t->n_columns == 0)
		return rc;
	rc = mysql_stmt_fetch(t->st);
	if (rc == 0 || rc == MYSQL_DATA_TRUNCATED)
		return 1;
	return rc == MYSQL_NO_DATA ? 0 : failed(base_of(q->s), mysql_stmt_error(t->st));
}

static void reset(struct hw_sql_stmt *q)
{
	struct stmt *t = st_of(q);
	if (t->ran && t->n_columns > 0)
		mysql_stmt_free_result(t->st);
	t->ran = false;
}

static int64_t changes(struct hw_sql_stmt *q)
{
	return (int64_t)mysql_stmt_affected_rows(st_of(q)->st);
}

static int64_t inserted(struct hw_sql_stmt *q)
{
	return (int64_t)mysql_stmt_insert_id(st_of(q)->st);
}

static const char *column_text(struct hw_sql_stmt *q, int i, size_t *len)
{
	struct column *c = &st_of(q)->columns[i];
	*len = c->null ? 0 : c->len < HW_SQL_TEXT_MAX ? c->len : HW_SQL_TEXT_MAX;
	c->text[*len] = '\0';
	return c->text;
}

static int64_t column_int(struct hw_sql_stmt *q, int i)
{
	size_t len;
	return strtoll(column_text(q, i, &len), NULL, 10);
}

static bool column_is_null(struct hw_sql_stmt *q, int i)
{
	return st_of(q)->columns[i].null;
}

const struct hw_sql_backend hw_sql_mysql = {.init = init,
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
                                            .begin = "START TRANSACTION"};
