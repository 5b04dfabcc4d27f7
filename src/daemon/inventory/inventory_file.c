/* SPDX-License-Identifier: MIT */
/*
 * The file that keeps the inventory with store = memory. Each line is a JSON object: {"id":ID,"unseen_ms":N, and the
 * members of the entry}, or {"id":ID,"removed":true}. Changes are appended, and the last line of an id counts. At the
 * start, the whole file is written again under another name, and then renamed. A line that was cut off when a process
 * ended is ignored.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/file.h"
#include "heartwheel/json.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"
#include "inventory_priv.h"

#define UNWRITTEN_MAX (4 * HW_INVENTORY_ITEMS)

struct hw_inventory_unwritten {
	size_t len;
	char id[HW_ID_MAX];
};

/* --- reading -------------------------------------------------------------------- */

static bool is_key(const struct hw_json_member *m, const char *key)
{
	return m->key_len == strlen(key) && memcmp(m->key, key, m->key_len) == 0;
}

/* Applies a line of the file. Returns false if it is not an entry of the inventory. */
static bool take_line(struct hw_app *a, const char *line, size_t len)
{
	struct hw_json_member m;
	char id[6 * HW_ID_MAX]; /* an escape has at most six bytes */
	int id_len = 0;
	int64_t unseen_ms = 0;
	bool removed = false;
	if (!hw_json_object_valid(line, len))
		return false;
	for (size_t at = 0; hw_json_object_next(line, len, &at, &m);) {
		if (is_key(&m, "id") && m.value_len <= sizeof(id))
			id_len = hw_json_unquote(m.value, m.value_len, id);
		else if (is_key(&m, "unseen_ms"))
			unseen_ms = strtoll(m.value, NULL, 10);
		else if (is_key(&m, "removed"))
			removed = *m.value == 't';
	}
	if (id_len <= 0 || !hw_id_valid(id, (size_t)id_len))
		return false;
	struct hw_id key = {id, (size_t)id_len};
	hw_inventory_take(a, key, removed ? (struct hw_id){0} : (struct hw_id){line, len}, true);
	if (!removed)
		hw_inventory_take_unseen(a, key, unseen_ms);
	return true;
}

static int read_file(struct hw_app *a, FILE *f, const char *path)
{
	char *line = NULL;
	size_t cap = 0, wrong = 0, first = 0, n = 0;
	for (ssize_t len; (len = getline(&line, &cap, f)) > 0;) {
		n++;
		if (line[len - 1] == '\n' && len > 1 && take_line(a, line, (size_t)len - 1))
			continue;
		first = wrong++ ? first : n;
	}
	free(line);
	if (ferror(f)) {
		hw_log(a->log, HW_LOG_ERROR, "cannot read [monitor] inventory %s: %s", path, strerror(errno));
		return -EIO;
	}
	if (wrong)
		hw_log(a->log, HW_LOG_WARNING, "%s:%zu: not an entry of the inventory; %zu such lines are left out",
		       path, first, wrong);
	return 0;
}

/* --- writing -------------------------------------------------------------------- */

static bool write_entry(struct hw_app *a, FILE *f, struct hw_id id)
{
	char line[HW_ENTRY_JSON_MAX + 6 * HW_ID_MAX + 64];
	struct hw_expected *e = hw_monitor_expected(a->monitor);
	uint32_t i = hw_expected_find(e, id.text, id.len);
	struct hw_json j;
	hw_json_begin_text(&j, line, sizeof(line));
	hw_json_open(&j, '{');
	hw_json_bytes(&j, "id", id.text, id.len);
	if (i == HW_NIL) {
		hw_json_bool(&j, "removed", true);
	} else {
		struct hw_expected_view v = hw_expected_at(e, i);
		if (v.state == HW_EXPECTED_UNSEEN)
			hw_json_int(&j, "unseen_ms", v.at_ms);
		hw_json_members(&j, v.text.text, v.text.len);
		hw_json_text(&j, "source", v.source);
		hw_json_int(&j, "since_ms", v.since_ms);
	}
	hw_json_close(&j, '}');
	return hw_json_end_text(&j) >= 0 && fprintf(f, "%s\n", line) >= 0 && !ferror(f);
}

static int failed(struct hw_app *a, const char *path, int error)
{
	hw_log_limited(a->log, HW_LIMIT_INVENTORY, HW_LOG_ERROR,
	               "cannot write [monitor] inventory %s: %s; changes of the inventory are refused", path,
	               strerror(error));
	return -EIO;
}

/* Writes all entries to another file, and renames it. */
static int rewrite(struct hw_app *a, const char *path)
{
	const struct hw_expected *e = hw_monitor_expected(a->monitor);
	char other[HW_CONF_TEXT_MAX + 8];
	hw_print(other, sizeof(other), "%s.new", path);
	FILE *f = fopen(other, "we");
	bool good = f;
	for (uint32_t i = 0; good && i < hw_expected_bound(e); i++)
		if (hw_expected_is_used(e, i))
			good = write_entry(a, f, hw_expected_at(e, i).id);
	good = good && fflush(f) == 0 && fsync(fileno(f)) == 0;
	int error = errno;
	if (f && fclose(f) != 0)
		good = false;
	if (good && rename(other, path) == 0)
		return 0;
	return failed(a, other, good ? errno : error);
}

int hw_inventory_file_open(struct hw_app *a, const char *path)
{
	struct hw_inventory_file *file = &a->inventory->file;
	FILE *f = fopen(path, "re");
	int rc = 0;
	if (!f && errno != ENOENT) {
		hw_log(a->log, HW_LOG_ERROR, "cannot read [monitor] inventory %s: %s", path, hw_file_error(errno));
		return -EIO;
	}
	if (f) {
		rc = read_file(a, f, path);
		fclose(f);
	}
	if (!rc)
		rc = rewrite(a, path);
	if (rc)
		return rc;
	file->path = path;
	file->unwritten = calloc(UNWRITTEN_MAX, sizeof(*file->unwritten));
	if (!file->unwritten)
		return failed(a, path, ENOMEM);
	file->f = fopen(path, "ae");
	if (!file->f || fseeko(file->f, 0, SEEK_END) != 0)
		return failed(a, path, errno);
	file->end = ftello(file->f);
	return 0;
}

int hw_inventory_file_write(struct hw_app *a, struct hw_id id)
{
	struct hw_inventory_file *file = &a->inventory->file;
	if (!file->f)
		return -EOPNOTSUPP;
	int rc = file->n_unwritten == UNWRITTEN_MAX ? hw_inventory_file_flush(a) : 0;
	if (rc)
		return rc;
	struct hw_inventory_unwritten *u = &file->unwritten[file->n_unwritten++];
	u->len = id.len;
	memcpy(u->id, id.text, id.len);
	return 0;
}

int hw_inventory_file_flush(struct hw_app *a)
{
	struct hw_inventory_file *file = &a->inventory->file;
	if (!file->f || file->n_unwritten == 0)
		return 0;
	bool good = true;
	for (unsigned i = 0; good && i < file->n_unwritten; i++)
		good = write_entry(a, file->f, (struct hw_id){file->unwritten[i].id, file->unwritten[i].len});
	if (good && fflush(file->f) == 0) {
		file->end = ftello(file->f);
		file->n_unwritten = 0;
		return 0;
	}
	int error = errno;
	__fpurge(file->f);
	clearerr(file->f);
	/* if the file cannot be cut, the next entry begins on a line of its own */
	if (ftruncate(fileno(file->f), file->end) != 0)
		fputc('\n', file->f);
	return failed(a, file->path, error);
}

void hw_inventory_file_close(struct hw_app *a)
{
	struct hw_inventory_file *file = &a->inventory->file;
	if (file->f) {
		hw_inventory_file_flush(a);
		fclose(file->f);
	}
	free(file->unwritten);
	*file = (struct hw_inventory_file){0};
}
