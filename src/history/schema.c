/* SPDX-License-Identifier: MIT */
/*
 * See schema.h. Every statement of a step can be repeated. In MariaDB and MySQL each DDL statement ends a transaction,
 * so a step may be half done when the program is killed.
 */
#include "history/schema.h"

#include <errno.h>
#include <stdio.h>

/* The text of a statement for each backend; NULL: the backend needs none. A text that begins with "? " is a query
 * that tests whether the next statement was carried out: if the query can be prepared, the next statement is
 * skipped. This is for a statement that cannot be repeated. MySQL's indexes are in its CREATE TABLE, because it has
 * no CREATE INDEX IF NOT EXISTS. */
struct step {
	const char *sqlite, *mysql;
};

#define ID   "VARBINARY(255) NOT NULL"
#define WORD "VARCHAR(40) NOT NULL"
#define NAME "VARCHAR(255) NOT NULL"
#define BIG  "BIGINT NOT NULL"
#define KIND " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

static const struct step version_1[] = {
	{"CREATE TABLE IF NOT EXISTS device (dev INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, grp TEXT NOT NULL,"
         " first_ms INTEGER NOT NULL, gone_ms INTEGER, state TEXT NOT NULL, since_ms INTEGER NOT NULL, seq INTEGER NOT "
         "NULL)",
         "CREATE TABLE IF NOT EXISTS device (dev BIGINT PRIMARY KEY AUTO_INCREMENT, id " ID " UNIQUE, grp " NAME ","
         " first_ms " BIG ", gone_ms BIGINT, state " WORD ", since_ms " BIG ", seq " BIG ","
         " INDEX device_grp (grp))" KIND},
	{"CREATE INDEX IF NOT EXISTS device_grp ON device (grp)", NULL},
	/* entry: the id in the stream as one number */
	{"CREATE TABLE IF NOT EXISTS transition (dev INTEGER NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
         " state TEXT NOT NULL, reason TEXT NOT NULL, last_seen_ms INTEGER NOT NULL, grp TEXT NOT NULL, node TEXT NOT "
         "NULL,"
         " found INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (dev, seq)) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS transition (dev " BIG ", seq " BIG ", at_ms " BIG ", state " WORD ", reason " NAME
         ","
         " last_seen_ms " BIG ", grp " NAME ", node " NAME ", found INT NOT NULL, entry " BIG ","
         " PRIMARY KEY (dev, seq), INDEX transition_at (at_ms), INDEX transition_entry (entry))" KIND},
	{"CREATE INDEX IF NOT EXISTS transition_at ON transition (at_ms)", NULL},
	{"CREATE INDEX IF NOT EXISTS transition_entry ON transition (entry)", NULL},
	/* to_ms NULL: the outage has not ended. reason `forgotten`: the time in which the device was forgotten, which
         * is no outage */
	{"CREATE TABLE IF NOT EXISTS outage (dev INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER, reason "
         "TEXT NOT NULL,"
         " PRIMARY KEY (dev, from_ms)) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS outage (dev " BIG ", from_ms " BIG ", to_ms BIGINT, reason " NAME ","
         " PRIMARY KEY (dev, from_ms), INDEX outage_from (from_ms))" KIND},
	{"CREATE INDEX IF NOT EXISTS outage_from ON outage (from_ms)", NULL},
	/* Sums for each month, for reports. outages: all that began; down_ms: length of ended outages; gone_ms: for how
         * long the device was forgotten */
	{"CREATE TABLE IF NOT EXISTS month (dev INTEGER NOT NULL, month INTEGER NOT NULL, outages INTEGER NOT NULL,"
         " down_ms INTEGER NOT NULL, gone_ms INTEGER NOT NULL, PRIMARY KEY (month, dev)) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS month (dev " BIG ", month INT NOT NULL, outages " BIG ", down_ms " BIG
         ", gone_ms " BIG ","
         " PRIMARY KEY (month, dev))" KIND},
	/* cause: '' if the node saw the fleet; else `stopped`, `down` or the cause of blindness */
	{"CREATE TABLE IF NOT EXISTS sight (node TEXT NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL,"
         " cause TEXT NOT NULL, PRIMARY KEY (node, from_ms)) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS sight (node " NAME ", from_ms " BIG ", to_ms " BIG ", cause " WORD ","
         " PRIMARY KEY (node, from_ms))" KIND},
	{"CREATE TABLE IF NOT EXISTS gap (stream TEXT NOT NULL, `after` TEXT NOT NULL, `before` TEXT NOT NULL, lost "
         "INTEGER,"
         " found_ms INTEGER NOT NULL)",
         "CREATE TABLE IF NOT EXISTS gap (stream " NAME ", `after` " WORD ", `before` " WORD ", lost BIGINT,"
         " found_ms " BIG ")" KIND},
	/* entry: the last entry about the task */
	{"CREATE TABLE IF NOT EXISTS task (task TEXT NOT NULL PRIMARY KEY, receiver TEXT NOT NULL, sender TEXT NOT "
         "NULL,"
         " action TEXT, at_ms INTEGER NOT NULL, state TEXT NOT NULL, sent_ms INTEGER, acked_ms INTEGER, ended_ms "
         "INTEGER,"
         " tries INTEGER NOT NULL, why TEXT NOT NULL, entry INTEGER NOT NULL) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS task (task " NAME " PRIMARY KEY, receiver " ID ", sender " NAME
         ", action VARCHAR(255),"
         " at_ms " BIG ", state " WORD ", sent_ms BIGINT, acked_ms BIGINT, ended_ms BIGINT, tries " BIG ", why " NAME
         ","
         " entry " BIG ", INDEX task_receiver (receiver, at_ms), INDEX task_ended (ended_ms))" KIND},
	{"CREATE INDEX IF NOT EXISTS task_receiver ON task (receiver, at_ms)", NULL},
	{"CREATE INDEX IF NOT EXISTS task_ended ON task (ended_ms)", NULL},
	{NULL, NULL}};

/* MariaDB and MySQL treat 'a' and 'a ' as equal in columns of characters. So columns that are compared are columns of
 * bytes. */
static const struct step version_2[] = {{NULL, "ALTER TABLE device MODIFY grp " ID},
                                        {NULL, "ALTER TABLE sight MODIFY node " ID},
                                        {NULL, "ALTER TABLE task MODIFY task " ID},
                                        {NULL, NULL}};

static const struct step version_3[] = {
	/* planned_ms: length of the planned outages, a part of down_ms */
	{"? SELECT planned_ms FROM month", "? SELECT planned_ms FROM month"},
	{"ALTER TABLE month ADD COLUMN planned_ms INTEGER NOT NULL DEFAULT 0",
         "ALTER TABLE month ADD COLUMN planned_ms BIGINT NOT NULL DEFAULT 0"},
	/* The part of an outage that a planned silence covered. A row ends with the day (UTC) at the latest; the next
         * row continues. The rows of a device do not overlap. */
	{"CREATE TABLE IF NOT EXISTS planned (dev INTEGER NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL,"
         " silence TEXT NOT NULL, PRIMARY KEY (dev, from_ms)) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS planned (dev " BIG ", from_ms " BIG ", to_ms " BIG ", silence " NAME ","
         " PRIMARY KEY (dev, from_ms), INDEX planned_from (from_ms))" KIND},
	{"CREATE INDEX IF NOT EXISTS planned_from ON planned (from_ms)", NULL},
	/* entry: the last entry about the incident. messages: how many were sent. acked: first acknowledgement */
	{"CREATE TABLE IF NOT EXISTS incident (incident TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, grp TEXT NOT "
         "NULL, device TEXT NOT NULL, opened_ms INTEGER NOT NULL, closed_ms INTEGER, state TEXT NOT NULL, acked_ms "
         "INTEGER, acked_by TEXT, messages INTEGER NOT NULL, entry INTEGER NOT NULL) WITHOUT ROWID",
         "CREATE TABLE IF NOT EXISTS incident (incident VARBINARY(40) PRIMARY KEY, kind " NAME ", grp " ID
         ", device " ID ", opened_ms " BIG ", closed_ms BIGINT, state " WORD ", acked_ms BIGINT,"
         " acked_by VARCHAR(255), messages " BIG ", entry " BIG ", INDEX incident_opened (opened_ms),"
         " INDEX incident_closed (closed_ms))" KIND},
	{"CREATE INDEX IF NOT EXISTS incident_opened ON incident (opened_ms)", NULL},
	{"CREATE INDEX IF NOT EXISTS incident_closed ON incident (closed_ms)", NULL},
	{NULL, NULL}};

static const struct step *const versions[] = {version_1, version_2, version_3};
_Static_assert(sizeof(versions) / sizeof(*versions) == HW_SCHEMA_VERSION, "a way to each version");

static int failed(struct hw_sql *s, char why[HW_SQL_WHY])
{
	snprintf(why, HW_SQL_WHY, "%.500s", hw_sql_error(s));
	return -EIO;
}

/* Returns -1 if there is no memory or on an error. */
static int64_t version_of(struct hw_sql *s)
{
	struct hw_sql_stmt *q = hw_sql_prepare(s, "SELECT n FROM position WHERE stream = 'schema'");
	int rc = q ? hw_sql_step(q) : -EIO;
	int64_t version = rc < 0 ? -1 : rc == 0 ? 0 : hw_sql_column_int(q, 0);
	if (q)
		hw_sql_reset(q);
	return version;
}

static int upgrade(struct hw_sql *s, int64_t from)
{
	char text[160];
	for (int64_t v = from; v < HW_SCHEMA_VERSION; v++) {
		for (const struct step *step = versions[v]; step->sqlite || step->mysql; step++) {
			const char *statement = hw_sql_pick(s, step->sqlite, step->mysql);
			if (statement && *statement == '?')
				step += hw_sql_prepare(s, statement + 2) != NULL;
			else if (statement && hw_sql_run(s, statement) != 0)
				return -EIO;
		}
		snprintf(text, sizeof(text), "UPDATE position SET n = %d WHERE stream = 'schema'", (int)v + 1);
		if (hw_sql_run(s, text) != 0)
			return -EIO;
	}
	return 0;
}

int hw_schema_ready(struct hw_sql *s, char why[HW_SQL_WHY])
{
	static const char *const first[][2] = {
		{"CREATE TABLE IF NOT EXISTS position (stream TEXT NOT NULL PRIMARY KEY, at TEXT NOT NULL, n INTEGER "
	         "NOT NULL)"
	         " WITHOUT ROWID",
	         "CREATE TABLE IF NOT EXISTS position (stream " NAME " PRIMARY KEY, at " WORD ", n " BIG ")" KIND},
		{"INSERT INTO position (stream, at, n) VALUES ('schema', '', 0) ON CONFLICT DO NOTHING",
	         "INSERT INTO position (stream, at, n) VALUES ('schema', '', 0) ON DUPLICATE KEY UPDATE stream = "
	         "stream"}};
	int64_t version = -1;
	if (hw_sql_begin(s) != 0)
		return failed(s, why);
	for (int i = 0; i < 2; i++)
		if (hw_sql_run(s, hw_sql_pick(s, first[i][0], first[i][1])) != 0)
			goto out;
	version = version_of(s);
	if (version > HW_SCHEMA_VERSION) {
		hw_sql_rollback(s);
		snprintf(why, HW_SQL_WHY,
		         "the tables have version %d, and this program knows version %d: install the newer program",
		         (int)version, HW_SCHEMA_VERSION);
		return -ENOTSUP;
	}
	if (version < 0 || upgrade(s, version) != 0)
		goto out;
	if (hw_sql_commit(s) == 0)
		return 0;
out:
	failed(s, why);
	hw_sql_rollback(s);
	return -EIO;
}

int hw_schema_is_there(struct hw_sql *s)
{
	struct hw_sql_stmt *q = hw_sql_prepare(
		s, hw_sql_pick(s, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'position'",
	                       "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"
	                       " AND table_name = 'position'"));
	int rc = q ? hw_sql_step(q) : -EIO;
	bool any = rc == 1 && hw_sql_column_int(q, 0) > 0;
	if (q)
		hw_sql_reset(q);
	if (rc < 0 || !any)
		return rc < 0 ? -EIO : 0;
	int64_t version = version_of(s);
	return version < 0 ? -EIO : version == HW_SCHEMA_VERSION;
}
