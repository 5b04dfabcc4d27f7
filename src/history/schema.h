/* SPDX-License-Identifier: MIT */
/*
 * The tables, and the upgrade from an older version. The version is in column n of row `schema` of the table
 * `position`.
 */
#ifndef HW_HISTORY_SCHEMA_H
#define HW_HISTORY_SCHEMA_H

#include "history/sql.h"

#define HW_SCHEMA_VERSION 3

/* Creates or upgrades the tables. Returns 0, -EIO, or -ENOTSUP if a newer program has created the tables. `why` has the
 * reason. */
int hw_schema_ready(struct hw_sql *s, char why[HW_SQL_WHY]);

/* Checks only. Returns 1 if the tables have this version, 0 if not, or -EIO. */
int hw_schema_is_there(struct hw_sql *s);

#endif
