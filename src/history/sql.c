/* SPDX-License-Identifier: MIT */
/* See sql.h: the code that both backends share. */
#include "history/sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/sql_backend.h"

/* --- the text that names a database ----------------------------------------------------------------------------- */

/* Copies the text up to `end`. Returns false if it is empty or too long. */
static bool take(const char **text, const char *end, char *to, size_t cap)
{
	size_t len = end ? (size_t)(end - *text) : 0;
	if (len == 0 || len >= cap)
		return false;
	memcpy(to, *text, len);
	to[len] = '\0';
	*text = end + 1;
	return true;
}

static const char *parse_server(const char *text, struct hw_sql_place *out)
{
	static const char form[] = "must be mysql://USER@HOST[:PORT]/DB, or mysql://USER@[/PATH/OF/SOCKET]/DB";
	char port[8], *rest;
	out->mysql = true;
	out->port = 3306;
	if (!take(&text, strchr(text, '@'), out->user, sizeof(out->user)))
		return form;
	if (*text == '[') {
		text++;
		bool is_socket = *text == '/';
		if (!take(&text, strchr(text, ']'), is_socket ? out->socket : out->host,
		          is_socket ? sizeof(out->socket) : sizeof(out->host)))
			return form;
	} else {
		const char *end = text + strcspn(text, ":/");
		if (end == text || (size_t)(end - text) >= sizeof(out->host))
			return form;
		memcpy(out->host, text, (size_t)(end - text));
		text = end;
	}
	if (*text == ':') {
		text++;
		if (!take(&text, strchr(text, '/'), port, sizeof(port)))
			return form;
		out->port = (int)strtol(port, &rest, 10);
		if (*rest || out->port < 1 || out->port > 65535)
			return form;
		text--;
	}
	if (*text++ != '/' || !*text || strlen(text) >= sizeof(out->base))
		return form;
	snprintf(out->base, sizeof(out->base), "%s", text);
	return NULL;
}

const char *hw_sql_place_parse(const char *text, struct hw_sql_place *out)
{
	*out = (struct hw_sql_place){0};
	if (strncmp(text, "mysql://", 8) == 0)
		return parse_server(text + 8, out);
	if (strncmp(text, "sqlite:/", 8) != 0)
		return "must be sqlite:/PATH or mysql://USER@HOST[:PORT]/DB";
	if (!text[8] || strlen(text + 7) >= sizeof(out->path))
		return "must be sqlite:/PATH, with a path of at most 255 bytes";
	snprintf(out->path, sizeof(out->path), "%s", text + 7);
	return NULL;
}

static const struct hw_sql_backend *backend_of(const struct hw_sql_place *p)
{
	if (!p->mysql)
		return &hw_sql_sqlite;
#ifdef HW_HAVE_MARIADB
	return &hw_sql_mysql;
#else
	return NULL;
#endif
}

const char *hw_sql_place_missing(const struct hw_sql_place *p)
{
	return backend_of(p) ? NULL : "this program was built without libmariadb: use sqlite:/PATH";
}

void hw_sql_init(void)
{
	hw_sql_sqlite.init();
#ifdef HW_HAVE_MARIADB
	hw_sql_mysql.init();
#endif
}

/* --- a connection ----------------------------------------------------------------------------------------------- */

struct hw_sql *hw_sql_open(const struct hw_sql_conf *c, char why[HW_SQL_WHY])
{
	const struct hw_sql_backend *b = backend_of(&c->place);
	if (!b) {
		snprintf(why, HW_SQL_WHY, "%s", hw_sql_place_missing(&c->place));
		return NULL;
	}
	return b->open(c, why);
}

void hw_sql_finish_all(struct hw_sql *s)
{
	while (s->stmts) {
		struct hw_sql_stmt *q = s->stmts;
		s->stmts = q->next;
		s->b->finish(q);
	}
}

void hw_sql_close(struct hw_sql *s)
{
	if (!s)
		return;
	hw_sql_finish_all(s);
	s->b->close(s);
}

bool hw_sql_is_mysql(const struct hw_sql *s)
{
	return s->b != &hw_sql_sqlite;
}

const char *hw_sql_pick(const struct hw_sql *s, const char *sqlite, const char *mysql)
{
	return hw_sql_is_mysql(s) ? mysql : sqlite;
}

const char *hw_sql_error(struct hw_sql *s)
{
	return s->b->error(s);
}

int hw_sql_run(struct hw_sql *s, const char *text)
{
	return s->b->run(s, text);
}

int hw_sql_begin(struct hw_sql *s)
{
	return s->b->run(s, s->b->begin);
}

int hw_sql_commit(struct hw_sql *s)
{
	return s->b->run(s, "COMMIT");
}

void hw_sql_rollback(struct hw_sql *s)
{
	(void)s->b->run(s, "ROLLBACK");
}

/* --- statements ------------------------------------------------------------------------------------------------- */

struct hw_sql_stmt *hw_sql_prepare(struct hw_sql *s, const char *text)
{
	struct hw_sql_stmt *q = s->b->prepare(s, text);
	if (!q)
		return NULL;
	q->s = s;
	q->next = s->stmts;
	s->stmts = q;
	return q;
}

void hw_sql_int(struct hw_sql_stmt *q, int i, int64_t v)
{
	q->s->b->bind_int(q, i, v);
}

void hw_sql_bytes(struct hw_sql_stmt *q, int i, const char *text, size_t len)
{
	q->s->b->bind_bytes(q, i, text, len);
}

void hw_sql_text(struct hw_sql_stmt *q, int i, const char *text)
{
	hw_sql_bytes(q, i, text, strlen(text));
}

void hw_sql_null(struct hw_sql_stmt *q, int i)
{
	q->s->b->bind_null(q, i);
}

int hw_sql_step(struct hw_sql_stmt *q)
{
	return q->s->b->step(q);
}

void hw_sql_reset(struct hw_sql_stmt *q)
{
	q->s->b->reset(q);
}

int64_t hw_sql_do(struct hw_sql_stmt *q)
{
	int rc = hw_sql_step(q);
	int64_t n = rc < 0 ? rc : q->s->b->changes(q);
	hw_sql_reset(q);
	return n;
}

int64_t hw_sql_column_int(struct hw_sql_stmt *q, int i)
{
	return q->s->b->column_int(q, i);
}

int64_t hw_sql_column_ms(struct hw_sql_stmt *q, int i)
{
	static const int64_t latest_ms = INT64_C(253402300799999);
	int64_t ms = hw_sql_column_int(q, i);
	return ms < 0 ? 0 : ms < latest_ms ? ms : latest_ms;
}

bool hw_sql_column_is_null(struct hw_sql_stmt *q, int i)
{
	return q->s->b->column_is_null(q, i);
}

const char *hw_sql_column_text(struct hw_sql_stmt *q, int i, size_t *len)
{
	return q->s->b->column_text(q, i, len);
}

int64_t hw_sql_inserted(struct hw_sql_stmt *q)
{
	return q->s->b->inserted(q);
}
