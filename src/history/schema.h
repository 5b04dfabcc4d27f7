/* SPDX-License-Identifier: MIT */
/*
 * The tables, and the way from an older version of them to this one. The version is the row `schema` of `position`, in
 * its n.
 */
#ifndef HW_HISTORY_SCHEMA_H
#define HW_HISTORY_SCHEMA_H

#include "history/sql.h"

#define HW_SCHEMA_VERSION 2

/* Makes the tables, or brings them up to date. 0; or -EIO, or -ENOTSUP if a newer program has made them, with the
 * reason in `why`. */
int hw_schema_ready(struct hw_sql *s, char why[HW_SQL_WHY]);

/* Only looks: 1: the tables of this version are there; 0: they are not; -EIO. */
int hw_schema_is_there(struct hw_sql *s);

#endif
