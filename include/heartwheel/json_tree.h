/* SPDX-License-Identifier: MIT */
/*
 * A JSON text of a given length as a tree of cJSON's. Every length-delimited text goes through here: cJSON
 * before 1.7.18 reads one byte past a text that ends behind a comma and has no NUL there (CVE-2023-53154).
 */
#ifndef HEARTWHEEL_JSON_TREE_H
#define HEARTWHEEL_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <string.h>

/* The value that is the whole of the text but for white space after it, for cJSON_Delete(). NULL: it is no JSON, nests
 * too deep (CJSON_NESTING_LIMIT), or there is no memory. The text needs no NUL. */
static inline cJSON *hw_json_tree(const char *text, size_t len)
{
	const char *end = NULL;
	while (len > 0 && memchr(" \t\r\n", text[len - 1], 4))
		len--;
	if (len == 0 || text[len - 1] == ',') /* no JSON text ends so */
		return NULL;
	cJSON *tree = cJSON_ParseWithLengthOpts(text, len, &end, 0);
	if (tree && end == text + len)
		return tree;
	cJSON_Delete(tree);
	return NULL;
}

#endif
