/* SPDX-License-Identifier: MIT */
/* Parses a JSON text of a given length into a cJSON tree. All such texts must be parsed here: cJSON before 1.7.18 reads
 * one byte past a text that ends with a comma and has no NUL there (CVE-2023-53154). */
#ifndef HEARTWHEEL_JSON_TREE_H
#define HEARTWHEEL_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <string.h>

/* Returns a tree for cJSON_Delete(). Only white space may follow the value. NULL: invalid JSON, nesting deeper than
 * CJSON_NESTING_LIMIT, or no memory. The text needs no NUL. */
static inline cJSON *hw_json_tree(const char *text, size_t len)
{
	const char *end = NULL;
	while (len > 0 && memchr(" \t\r\n", text[len - 1], 4))
		len--;
	if (len == 0 || text[len - 1] == ',') /* no JSON text ends with a comma */
		return NULL;
	cJSON *tree = cJSON_ParseWithLengthOpts(text, len, &end, 0);
	if (tree && end == text + len)
		return tree;
	cJSON_Delete(tree);
	return NULL;
}

#endif
