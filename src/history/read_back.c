/* SPDX-License-Identifier: MIT */
/*
 * Finds transitions that were lost in a gap of the stream, in the hashes of the devices. The hash of a device contains
 * its last transition, and Redis writes the hash and the stream's entry in one step. So a transition that is in the
 * hash, but not in the stream up to its end at that time, was lost in the gap. Called in the importer's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history/importer_priv.h"

/* Reads the events up to their present end. */
static int read_to_end(struct hw_importer *c)
{
	bool more = true;
	int rc = 0;
	while (rc == 0 && more && !hw_source_is_woken(c->source)) {
		more = false;
		rc = hw_importer_copy_batch(c, HW_STREAM_EVENTS, &more);
	}
	return hw_source_is_woken(c->source) ? -ENOTCONN : rc;
}

static int write_found(struct hw_importer *c, const struct hw_entry *entries, size_t n)
{
	uint64_t fresh = 0;
	int rc = hw_ledger_begin_found(c->ledger);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		int one = hw_ledger_event(c->ledger, &entries[i], true);
		fresh += one > 0;
		rc = one < 0 ? one : 0;
	}
	if (rc == 0)
		rc = hw_ledger_commit(c->ledger);
	if (rc == 0)
		hw_importer_account_rows(c);
	pthread_mutex_lock(&c->lock);
	c->view.rows[HW_ROWS_FOUND] += rc == 0 ? fresh : 0;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* Removes from the array each device that has a hash in Redis. If devices are left, reads the events to their end.
 * Returns 0, or the error of read_to_end(). */
static int keep_forgotten(struct hw_importer *c, struct hw_entry *entries, size_t *n)
{
	bool *has = calloc(*n, sizeof(*has));
	size_t left = 0;
	int rc = has ? hw_source_has(c->source, entries, has, *n) : -ENOTCONN;
	hw_importer_note_refusal(c, HW_PART_HASHES, rc);
	for (size_t i = 0; rc == 0 && i < *n; i++)
		if (!has[i])
			entries[left++] = entries[i];
	*n = left;
	free(has);
	/* All entries that were written before the check are imported before a device counts as forgotten. An entry
	 * that is written later has a newer seq than the entry that is made here. */
	return rc == 0 && left > 0 ? read_to_end(c) : rc;
}

/*
 * Finds devices that were forgotten in a gap. If the stream is still the same one, a known device that has no hash was
 * forgotten. The begin of the gap is used as the time.
 */
static int find_forgotten(struct hw_importer *c, int64_t gap_ms)
{
	size_t cap = c->conf.source.page / 4 + 1, n = 0;
	struct hw_entry *some = malloc(cap * sizeof(*some));
	int64_t dev = 0;
	int rc = some ? 0 : -ENOTCONN;
	do {
		if (rc == 0)
			rc = hw_ledger_silent(c->ledger, gap_ms, &dev, some, cap, &n);
		size_t gone = n;
		if (rc == 0 && n > 0)
			rc = keep_forgotten(c, some, &gone);
		if (rc == 0 && n > 0 && gone > 0 && c->pending_ms == gap_ms)
			rc = write_found(c, some, gone);
	} while (rc == 0 && n > 0 && c->pending_ms == gap_ms);
	free(some);
	return rc;
}

static void account_hashes(struct hw_importer *c, const struct hw_source_page *p)
{
	hw_importer_report_odd(c, HW_PART_HASHES, p);
	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < HW_ODD_KINDS; i++)
		c->view.odd[i] += p->odd[i];
	pthread_mutex_unlock(&c->lock);
}

int hw_importer_read_back(struct hw_importer *c)
{
	struct hw_source_page page;
	char cursor[32] = "0";
	int64_t gap_ms = c->pending_ms;
	int rc;
	do {
		rc = hw_source_scan(c->source, cursor, &page);
		hw_importer_note_refusal(c, HW_PART_HASHES, rc);
		if (rc == 0)
			account_hashes(c, &page);
		struct hw_entry *kept = rc == 0 && page.n > 0 ? malloc(page.n * sizeof(*kept)) : NULL;
		if (rc || (page.n > 0 && !kept))
			return rc ? rc : -ENOTCONN;
		if (kept)
			memcpy(kept, page.entries, page.n * sizeof(*kept));
		rc = page.n > 0 ? read_to_end(c) : 0;
		if (rc == 0 && page.n > 0)
			rc = write_found(c, kept, page.n);
		free(kept);
	} while (rc == 0 && strcmp(cursor, "0") != 0);
	if (rc == 0 && !c->emptied)
		rc = find_forgotten(c, gap_ms);
	if (rc == 0)
		rc = hw_ledger_clear_pending(c->ledger, gap_ms);
	return rc ? rc : hw_ledger_read_pending(c->ledger, &c->pending_ms, &c->emptied);
}
