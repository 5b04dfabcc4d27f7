/* SPDX-License-Identifier: MIT */
/* What the routes of the inventory and the importer share. Internal to src/control. */
#ifndef HW_CONTROL_INVENTORY_H
#define HW_CONTROL_INVENTORY_H

#include "control/parts.h"
#include "inventory/apply.h"
#include "inventory/import.h"

#define HW_IMPORT_ID_MAX 64

/* The query of PUT /v1/inventory. */
struct hw_import_query {
	enum hw_rows_format format;
	char source[HW_ENTRY_SOURCE_MAX + 1];
	bool prune, force, skip_bad, dry_run;
	char id[HW_IMPORT_ID_MAX + 1]; /* of an import in parts; "": the body is the whole file */
	unsigned part;                 /* from 1 */
	bool last;                     /* of an import in parts, also of a single body */
};

/* Answers the request, perhaps in a later turn. */
void hw_importer_put(struct hw_importer *i, struct evhttp_request *req, const struct hw_import_query *q);

/* Returns the table of expected devices. If the inventory cannot be used now, answers the request with 503 and
 * returns NULL. */
const struct hw_expected *hw_inventory_ready(struct hw_control *c, struct evhttp_request *req);

/* Makes *e the entry of the table. If the text of the entry is malformed, *e has only its source and since_ms. */
void hw_inventory_read(const struct hw_expected_view *v, struct hw_expected_entry *e);

/* Returns the names of the groups, followed by NULL. The caller frees the array; the names are borrowed until the
 * groups change. NULL if there is no memory. */
const char **hw_inventory_groups(const struct hw_control *c);

#endif
