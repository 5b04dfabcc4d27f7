/* SPDX-License-Identifier: MIT */
/* The SQL statements of the ledger. */
#include "history/ledger_priv.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
#define PIECE           TEXT(HW_LEDGER_PIECE)

/* A column that is summed up. Another program may have written a value so large that the sum overflows, and MariaDB
 * refuses the sum. */
#define SANE(column) "CASE WHEN " column " BETWEEN 0 AND 1000000000000000 THEN " column " ELSE 0 END"

/* clang-format off */
const char *const hw_ledger_texts[QUERIES][2] = {
	[PLACE_NEW] = {"INSERT INTO position (stream, at, n) VALUES (?, ?, -1) ON CONFLICT DO NOTHING",
		"INSERT INTO position (stream, at, n) VALUES (?, ?, -1) ON DUPLICATE KEY UPDATE stream = stream"},
	[PLACE] = {"SELECT at, n FROM position WHERE stream = ?", NULL},
	[PLACE_RESET] = {"UPDATE position SET at = '0-0', n = -1 WHERE stream = ?", NULL},
	/* A column in SQLite may contain a value of any type, and SQLite compares the type as well. */
	[MOVE] = {"UPDATE position SET at = ?, n = ? WHERE stream = ? AND CAST(at AS TEXT) = ? AND CAST(n AS INTEGER) = ?",
		"UPDATE position SET at = ?, n = ? WHERE stream = ? AND at = ? AND n = ?"},
	[DEVICE] = {"SELECT dev, state, since_ms, seq FROM device WHERE id = ?", NULL},
	[DEVICE_NEW] = {"INSERT INTO device (id, grp, first_ms, gone_ms, state, since_ms, seq) VALUES (?, ?, ?, ?, ?, ?, ?)", NULL},
	[DEVICE_SET] = {"UPDATE device SET grp = ?, gone_ms = ?, state = ?, since_ms = ?, seq = ? WHERE dev = ?", NULL},
	[TRANSITION_NEW] = {"INSERT INTO transition (dev, seq, at_ms, state, reason, last_seen_ms, grp, node, found, entry)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO transition (dev, seq, at_ms, state, reason, last_seen_ms, grp, node, found, entry)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[OUTAGE_NEW] = {"INSERT INTO outage (dev, from_ms, to_ms, reason) VALUES (?, ?, NULL, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO outage (dev, from_ms, to_ms, reason) VALUES (?, ?, NULL, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[OUTAGE_AGAIN] = {"UPDATE outage SET to_ms = NULL, reason = ? WHERE dev = ? AND from_ms = ?", NULL},
	[OUTAGE_END] = {"UPDATE outage SET to_ms = ? WHERE dev = ? AND from_ms = ?", NULL},
	[OUTAGE_CLOSE] = {"UPDATE outage SET to_ms = from_ms WHERE dev = ? AND to_ms IS NULL", NULL},
	[MONTH_ADD] = {"INSERT INTO month (dev, month, outages, down_ms, gone_ms, planned_ms) VALUES (?, ?, ?, ?, ?, ?)"
		" ON CONFLICT (month, dev) DO UPDATE SET outages = " SANE("outages") " + excluded.outages,"
		" down_ms = " SANE("down_ms") " + excluded.down_ms, gone_ms = " SANE("gone_ms") " + excluded.gone_ms,"
		" planned_ms = " SANE("planned_ms") " + excluded.planned_ms",
		"INSERT INTO month (dev, month, outages, down_ms, gone_ms, planned_ms) VALUES (?, ?, ?, ?, ?, ?)"
		" ON DUPLICATE KEY UPDATE outages = " SANE("outages") " + VALUES(outages),"
		" down_ms = " SANE("down_ms") " + VALUES(down_ms), gone_ms = " SANE("gone_ms") " + VALUES(gone_ms),"
		" planned_ms = " SANE("planned_ms") " + VALUES(planned_ms)"},
	/* If two entries begin at the same time, the time counts as blind. */
	[SIGHT_PUT] = {"INSERT INTO sight (node, from_ms, to_ms, cause) VALUES (?, ?, ?, ?) ON CONFLICT (node, from_ms) DO UPDATE SET"
		" to_ms = max(to_ms, excluded.to_ms), cause = CASE WHEN cause = '' THEN excluded.cause ELSE cause END",
		"INSERT INTO sight (node, from_ms, to_ms, cause) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE"
		" to_ms = GREATEST(to_ms, VALUES(to_ms)), cause = CASE WHEN cause = '' THEN VALUES(cause) ELSE cause END"},
	[TASK_NEW] = {"INSERT INTO task (task, receiver, sender, action, at_ms, state, tries, why, entry)"
		" VALUES (?, ?, ?, NULL, ?, '', 0, '', -1) ON CONFLICT DO NOTHING",
		"INSERT INTO task (task, receiver, sender, action, at_ms, state, tries, why, entry)"
		" VALUES (?, ?, ?, NULL, ?, '', 0, '', -1) ON DUPLICATE KEY UPDATE task = task"},
	[TASK_SET] = {"UPDATE task SET state = ?, why = ?, sent_ms = COALESCE(sent_ms, ?), acked_ms = COALESCE(acked_ms, ?),"
		" ended_ms = ?, tries = " SANE("tries") " + ?, entry = ? WHERE task = ? AND entry < ? AND ended_ms IS NULL", NULL},
	[INCIDENT_NEW] = {"INSERT INTO incident (incident, kind, grp, device, opened_ms, state, messages, entry)"
		" VALUES (?, ?, ?, ?, ?, 'open', 0, -1) ON CONFLICT DO NOTHING",
		"INSERT INTO incident (incident, kind, grp, device, opened_ms, state, messages, entry)"
		" VALUES (?, ?, ?, ?, ?, 'open', 0, -1) ON DUPLICATE KEY UPDATE incident = incident"},
	[INCIDENT_SET] = {"UPDATE incident SET state = COALESCE(?, state), closed_ms = COALESCE(closed_ms, ?),"
		" acked_ms = COALESCE(acked_ms, ?), acked_by = COALESCE(acked_by, ?), messages = " SANE("messages") " + ?,"
		" entry = ? WHERE incident = ? AND entry < ?", NULL},
	[INCIDENT_DROP] = {"DELETE FROM incident WHERE incident = ?", NULL},
	[PLANNED_NEW] = {"INSERT INTO planned (dev, from_ms, to_ms, silence) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"INSERT INTO planned (dev, from_ms, to_ms, silence) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE dev = dev"},
	[PLANNED_LAST] = {"SELECT to_ms FROM planned WHERE dev = ? AND from_ms <= ? ORDER BY from_ms DESC LIMIT 1", NULL},
	[GAP_NEW] = {"INSERT INTO gap (stream, `after`, `before`, lost, found_ms) VALUES (?, ?, ?, ?, ?)", NULL},
	/* `emptied` is kept: it means that a missing hash does not prove that the device was forgotten. */
	[SET_PENDING] = {"UPDATE position SET at = CASE WHEN at = 'emptied' THEN at ELSE ? END, n = ? WHERE stream = 'device:state'", NULL},
	[READ_PENDING] = {"SELECT n, at FROM position WHERE stream = 'device:state' AND at <> 'paid'", NULL},
	[PAID] = {"UPDATE position SET at = 'paid' WHERE stream = 'device:state' AND at <> 'paid' AND CAST(n AS INTEGER) = ?",
		"UPDATE position SET at = 'paid' WHERE stream = 'device:state' AND at <> 'paid' AND n = ?"},
	[GAP] = {"SELECT `after`, `before` FROM gap WHERE stream = 'device:events' AND found_ms = ?", NULL},
	[SILENT] = {"SELECT dev, id, grp, seq FROM device WHERE dev > ? AND gone_ms IS NULL AND since_ms < ? ORDER BY dev LIMIT ?", NULL},
	[GAPS] = {"SELECT COUNT(*), COALESCE(SUM(lost), 0) FROM gap", NULL},
	[EXPIRE_TRANSITIONS] = {"DELETE FROM transition WHERE (dev, seq) IN"
		" (SELECT dev, seq FROM transition WHERE at_ms < ? ORDER BY at_ms LIMIT " PIECE ")",
		"DELETE FROM transition WHERE at_ms < ? ORDER BY at_ms LIMIT " PIECE},
	[EXPIRE_TASKS] = {"DELETE FROM task WHERE task IN (SELECT task FROM task WHERE ended_ms < ? LIMIT " PIECE ")",
		"DELETE FROM task WHERE ended_ms < ? LIMIT " PIECE},
	[EXPIRE_OUTAGES] = {"DELETE FROM outage WHERE (dev, from_ms) IN"
		" (SELECT dev, from_ms FROM outage WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE ")",
		"DELETE FROM outage WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE},
	[EXPIRE_SIGHT] = {"DELETE FROM sight WHERE (node, from_ms) IN"
		" (SELECT node, from_ms FROM sight WHERE to_ms < ? LIMIT " PIECE ")",
		"DELETE FROM sight WHERE to_ms < ? LIMIT " PIECE},
	[EXPIRE_PLANNED] = {"DELETE FROM planned WHERE (dev, from_ms) IN"
		" (SELECT dev, from_ms FROM planned WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE ")",
		"DELETE FROM planned WHERE from_ms < ? AND to_ms < ? ORDER BY from_ms LIMIT " PIECE},
	[EXPIRE_INCIDENTS] = {"DELETE FROM incident WHERE incident IN"
		" (SELECT incident FROM incident WHERE closed_ms < ? LIMIT " PIECE ")",
		"DELETE FROM incident WHERE closed_ms < ? LIMIT " PIECE},
};
/* clang-format on */
