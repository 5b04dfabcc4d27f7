/* SPDX-License-Identifier: MIT */
/*
 * See import.h. The import stores each row as the entry that a new id would get. If the stored entry is equal to that
 * entry, the row changes nothing. So when a file is imported again, no stored entry needs parsing. Invariant: the JSON
 * of each row ends with m->tail, except that a stored entry keeps its since_ms. If the entry has values, a comma
 * separates them from m->tail.
 */
#include "inventory/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/draft.h"
#include "heartwheel/print.h"
#include "heartwheel/siphash.h"

#define BLOCK ((size_t)1 << 20)

/* Copies `len` bytes into memory that lives as long as the import. Returns NULL if there is no memory, and sets
 * m->no_memory. */
static char *keep(struct hw_import *m, const char *bytes, size_t len)
{
	if (m->n_blocks == 0 || len > BLOCK - m->block_at) {
		char **blocks = realloc(m->blocks, (m->n_blocks + 1) * sizeof(*blocks));
		char *block = blocks ? malloc(BLOCK) : NULL;
		m->blocks = blocks ? blocks : m->blocks;
		m->no_memory |= !block;
		if (!block)
			return NULL;
		m->blocks[m->n_blocks++] = block;
		m->block_at = 0;
	}
	char *to = m->blocks[m->n_blocks - 1] + m->block_at;
	memcpy(to, bytes, len);
	m->block_at += len;
	return to;
}

/* --- errors --- */

static void add_error(struct hw_import *m, uint64_t line, const struct hw_entry_error *error)
{
	m->n_wrong++;
	if (m->n_errors < HW_IMPORT_ERRORS_MAX)
		m->errors[m->n_errors++] = (struct hw_import_error){line, *error};
}

static int by_line(const void *a, const void *b)
{
	const struct hw_import_error *x = a, *y = b;
	return x->line < y->line ? -1 : x->line > y->line;
}

static void sort_errors(struct hw_import *m)
{
	qsort(m->errors, m->n_errors, sizeof(*m->errors), by_line);
}

/* --- the index of ids --- */

static uint32_t hash_of(const struct hw_import *m, const char *id, size_t len)
{
	return (uint32_t)hw_siphash(1, 3, m->key, id, len);
}

/* Returns the slot of the id in the index, or the free slot to which the id belongs. `id` NULL: the id is in no row. */
static size_t place(const struct hw_import *m, uint32_t hash, const char *id, size_t len)
{
	size_t at = hash & (m->index_cap - 1);
	for (; m->index[at]; at = (at + 1) & (m->index_cap - 1)) {
		const struct hw_import_row *row = &m->rows[m->index[at] - 1];
		if (id && row->hash == hash && row->id_len == len && memcmp(row->id, id, len) == 0)
			break;
	}
	return at;
}

/* Makes room for one more row. */
static int grow(struct hw_import *m)
{
	if (m->n < m->cap)
		return 0;
	size_t cap = m->cap ? 2 * m->cap : 1024;
	struct hw_import_row *rows = realloc(m->rows, cap * sizeof(*rows));
	uint32_t *index = calloc(4 * cap, sizeof(*index));
	m->rows = rows ? rows : m->rows;
	if (!rows || !index) {
		free(index);
		m->no_memory = true;
		return -ENOMEM;
	}
	free(m->index);
	m->index = index;
	m->index_cap = 4 * cap;
	m->cap = cap;
	for (size_t i = 0; i < m->n; i++)
		m->index[place(m, rows[i].hash, NULL, 0)] = (uint32_t)i + 1;
	return 0;
}

bool hw_import_names(const struct hw_import *m, const char *id, size_t len)
{
	return m->n > 0 && m->index[place(m, hash_of(m, id, len), id, len)];
}

/* --- reading --- */

static int check_group(const struct hw_import *m, const char *group, struct hw_entry_error *error)
{
	if (!*group)
		return 0;
	for (size_t i = 0; m->groups[i]; i++)
		if (strcmp(m->groups[i], group) == 0)
			return 0;
	const char *near = hw_conf_nearest(group, (const char *const *)m->groups);
	if (near)
		return hw_entry_wrong(error, "group", "monitor.conf has no group '%s'; did you mean '%s'?", group,
		                      near);
	return hw_entry_wrong(error, "group", "monitor.conf has no group '%s'", group);
}

/* Returns the names of the labels that the patch clears, each with its NUL, and then an empty name. NULL: there are
 * none, or there is no memory. */
static const char *keep_cleared(struct hw_import *m, const struct hw_patch *p)
{
	char names[sizeof(p->cleared) + 1];
	size_t n = 0;
	for (unsigned i = 0; i < p->n_cleared; i++)
		n += hw_print(names + n, sizeof(names) - n, "%s", p->cleared[i]) + 1;
	if (n == 0)
		return NULL;
	names[n++] = '\0';
	return keep(m, names, n);
}

static int keep_row(struct hw_import *m, uint64_t line, const char *id, size_t len, uint32_t hash,
                    const struct hw_patch *p)
{
	char json[HW_ENTRY_JSON_MAX];
	struct hw_entry_error error;
	struct hw_expected_entry e;
	hw_entry_init(&e);
	if (hw_entry_merge(&e, p, &error) < 0) /* cannot happen: the patch has at most as many labels */
		return -EINVAL;
	size_t n = hw_entry_print(&e, json, sizeof(json)) - 1;
	if (n > 1)
		json[n++] = ',';
	memcpy(json + n, m->tail, m->tail_len);
	n += m->tail_len;
	struct hw_import_row row = {.id = keep(m, id, len), .json = keep(m, json, n), .cleared = keep_cleared(m, p)};
	row.hash = hash;
	if (m->no_memory)
		return -ENOMEM;
	row.json_len = (uint32_t)n;
	row.line = line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
	row.id_len = (uint8_t)len;
	row.given = (uint8_t)p->given;
	m->rows[m->n++] = row;
	return 0;
}

static void on_wrong(void *arg, uint64_t line, const struct hw_entry_error *error)
{
	struct hw_import *m = arg;
	m->n_rows++;
	add_error(m, line, error);
}

static void on_row(void *arg, uint64_t line, const char *id, const struct hw_patch *p)
{
	struct hw_import *m = arg;
	struct hw_entry_error error;
	m->n_rows++;
	if (m->no_memory || m->cancelled || grow(m) < 0)
		return;
	size_t len = strlen(id);
	uint32_t hash = hash_of(m, id, len);
	size_t at = place(m, hash, id, len);
	if (m->index[at]) {
		hw_entry_wrong(&error, "id", "'%s' is in line %u already", id,
		               (unsigned)m->rows[m->index[at] - 1].line);
		add_error(m, line, &error);
	} else if (m->n == HW_IMPORT_ROWS_MAX) {
		hw_entry_wrong(&error, "", "more than %d rows", HW_IMPORT_ROWS_MAX);
		add_error(m, line, &error);
	} else if (check_group(m, p->to.group, &error) < 0) {
		add_error(m, line, &error);
	} else if (keep_row(m, line, id, len, hash, p) == 0) {
		m->index[at] = (uint32_t)m->n;
	}
}

static int copy_groups(struct hw_import *m, const char *const *groups)
{
	size_t n = 0;
	while (groups[n])
		n++;
	m->groups = calloc(n + 1, sizeof(*m->groups));
	for (size_t i = 0; m->groups && i < n; i++)
		if (!(m->groups[i] = strdup(groups[i])))
			return -ENOMEM;
	return m->groups ? 0 : -ENOMEM;
}

static void set_tail(struct hw_import *m)
{
	char json[HW_ENTRY_JSON_MAX];
	struct hw_expected_entry e;
	hw_entry_init(&e);
	memcpy(e.source, m->source, sizeof(e.source));
	e.since_ms = m->now_ms;
	m->tail_len = hw_entry_print(&e, json, sizeof(json)) - 1;
	m->source_len = (size_t)(strrchr(json, ':') - json);
	memcpy(m->tail, json + 1, m->tail_len);
}

struct hw_import *hw_import_new(enum hw_rows_format format, const char *source, int64_t now_ms,
                                const char *const *groups, const uint8_t key[16])
{
	static const struct hw_rows_ops ops = {on_row, on_wrong};
	struct hw_import *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	hw_print(m->source, sizeof(m->source), "%s", source);
	m->now_ms = now_ms;
	memcpy(m->key, key, sizeof(m->key));
	set_tail(m);
	m->reader = hw_rows_new(format, &ops, m);
	if (m->reader && copy_groups(m, groups) == 0)
		return m;
	hw_import_free(m);
	return NULL;
}

void hw_import_free(struct hw_import *m)
{
	if (!m)
		return;
	hw_rows_free(m->reader);
	for (size_t i = 0; m->groups && m->groups[i]; i++)
		free(m->groups[i]);
	free(m->groups);
	for (size_t i = 0; i < m->n_blocks; i++)
		free(m->blocks[i]);
	free(m->blocks);
	free(m->rows);
	free(m->index);
	free(m);
}

void hw_import_feed(struct hw_import *m, const char *bytes, size_t len)
{
	hw_rows_feed(m->reader, bytes, len);
	sort_errors(m);
}

void hw_import_end(struct hw_import *m)
{
	hw_rows_end(m->reader);
	sort_errors(m);
}

/* --- comparing and merging --- */

/* Whether the row's entry has exactly these values. `values` is a JSON object without source and since_ms. */
static bool has_values(const struct hw_import *m, const struct hw_import_row *r, const char *values, size_t len)
{
	size_t n = len > 2 ? len : len - 1; /* a comma follows the values */
	return r->json_len > n + m->source_len && memcmp(r->json, values, len - 1) == 0 &&
	       memcmp(r->json + n, m->tail, m->source_len) == 0;
}

bool hw_import_is_stored(const struct hw_import *m, size_t row, const char *values, size_t len, const char *source)
{
	return values && len >= 2 && strcmp(source, m->source) == 0 && has_values(m, &m->rows[row], values, len);
}

void hw_import_compare(struct hw_import *m, size_t row, const char *values, size_t len, const char *source,
                       int64_t since_ms)
{
	struct hw_import_row *r = &m->rows[row];
	char both[2 * HW_ENTRY_JSON_MAX];
	r->state = HW_IMPORT_NEW;
	if (!values || len < 2 || len > HW_ENTRY_JSON_MAX)
		return;
	r->same_source = strcmp(source, m->source) == 0;
	r->since_ms = since_ms ? since_ms : m->now_ms;
	r->state = hw_import_is_stored(m, row, values, len, source) ? HW_IMPORT_SAME : HW_IMPORT_DIFFERS;
	if (r->state == HW_IMPORT_SAME)
		return;
	/* The text of a row that differs becomes its own entry, a line feed, and the stored values, because
	 * hw_import_merge() needs both. */
	memcpy(both, r->json, r->json_len);
	both[r->json_len] = '\n';
	memcpy(both + r->json_len + 1, values, len);
	const char *kept = keep(m, both, r->json_len + 1 + len);
	if (kept) {
		r->json = kept;
		r->json_len += 1 + (uint32_t)len;
	}
}

/* Makes a patch again from the entry that the row gives to a new id. */
static int read_patch(const struct hw_import_row *r, size_t len, struct hw_patch *p, struct hw_entry_error *error)
{
	hw_patch_init(p);
	if (hw_entry_read(&p->to, r->json, len, error) < 0)
		return -EINVAL;
	p->given = r->given;
	for (const char *name = r->cleared; name && *name; name += strlen(name) + 1)
		hw_print(p->cleared[p->n_cleared++], sizeof(*p->cleared), "%s", name);
	return 0;
}

/* Applies the row to the stored entry, and makes the result the row's entry. If the stored text is malformed, the
 * row's entry replaces it. */
static void merge_row(struct hw_import *m, struct hw_import_row *r)
{
	char json[HW_ENTRY_JSON_MAX];
	struct hw_entry_error error;
	struct hw_patch p;
	struct hw_expected_entry e;
	const char *newline = memchr(r->json, '\n', r->json_len);
	if (!newline) /* it was merged before */
		return;
	const char *stored = newline + 1;
	size_t own = (size_t)(stored - r->json) - 1, len = r->json_len - own - 1;
	if (hw_entry_read(&e, stored, len, &error) < 0)
		hw_entry_init(&e);
	if (read_patch(r, own, &p, &error) < 0 || hw_entry_merge(&e, &p, &error) < 0) {
		r->state = HW_IMPORT_WRONG;
		add_error(m, r->line, &error);
		return;
	}
	memcpy(e.source, m->source, sizeof(e.source));
	e.since_ms = r->since_ms;
	r->json_len = (uint32_t)hw_entry_print(&e, json, sizeof(json));
	if (r->same_source &&
	    has_values(m, &(struct hw_import_row){.json = json, .json_len = r->json_len}, stored, len))
		r->state = HW_IMPORT_SAME;
	else
		r->json = keep(m, json, r->json_len);
}

void hw_import_merge(struct hw_import *m)
{
	for (size_t i = 0; i < m->n && !m->cancelled && !m->no_memory; i++) {
		struct hw_import_row *r = &m->rows[i];
		if (r->state == HW_IMPORT_DIFFERS)
			merge_row(m, r);
		m->n_new += r->state == HW_IMPORT_NEW;
		m->n_differ += r->state == HW_IMPORT_DIFFERS;
		m->n_same += r->state == HW_IMPORT_SAME;
	}
	sort_errors(m);
}
