/* SPDX-License-Identifier: MIT */
/*
 * See past.h. A gap is a row in `gaps`. The time before the first transition that history has kept is also a gap,
 * because entries may be missing there. A gap is returned before the transition that follows it. `ahead` is the first
 * gap that was not returned yet, so the rows are searched only once for each returned gap.
 */
#include "tasks/follow/past.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/json.h"
#include "http/fetch.h"

#define TIMEOUT_MS 5000
#define BYTES_MAX  (4u << 20)

struct question {
	bool busy;
	struct hw_stream_id after;
	hw_past_done *done;
	void *arg;
};

struct hw_past {
	struct hw_fetch *fetch;
	struct question question[HW_FETCH_MAX];
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool is(const struct hw_json_member *m, const char *key)
{
	return m->key_len == strlen(key) && memcmp(m->key, key, m->key_len) == 0;
}

/* Unquotes a string into `out`, with a NUL. Returns its length, or -1 if it is no string or too long. */
static int text_of(const struct hw_json_member *m, char *out, size_t cap)
{
	int len = m->value_len > 1 && m->value_len <= cap && m->value[0] == '"'
	                  ? hw_json_unquote(m->value, m->value_len, out)
	                  : -1;
	if (len >= 0)
		out[len] = '\0';
	return len;
}

static bool offset_of(const struct hw_json_member *m, struct hw_stream_id *out)
{
	char text[64];
	int len = text_of(m, text, sizeof(text));
	return len > 0 && hw_stream_id_parse(text, (size_t)len, out) == 0;
}

static int64_t number_of(const struct hw_json_member *m, int64_t otherwise)
{
	char text[32];
	if (m->value_len == 0 || m->value_len >= sizeof(text) || !strchr("-0123456789", m->value[0]))
		return otherwise;
	memcpy(text, m->value, m->value_len);
	text[m->value_len] = '\0';
	return strtoll(text, NULL, 10);
}

bool hw_past_read(struct hw_past_page *page, struct hw_stream_id after, const char *body, size_t len)
{
	struct hw_json_member m;
	size_t at = 0;
	bool begins = false, reads = false;
	*page = (struct hw_past_page){.after = after};
	if (!hw_json_object_valid(body, len))
		return false;
	while (hw_json_object_next(body, len, &at, &m)) {
		bool list = m.value[0] == '[';
		if (is(&m, "events") && list) {
			page->events = m.value;
			page->events_len = m.value_len;
		} else if (is(&m, "gaps") && list) {
			page->gaps = m.value;
			page->gaps_len = m.value_len;
		} else if (is(&m, "at")) {
			reads = offset_of(&m, &page->read);
		} else if (is(&m, "from")) {
			begins = offset_of(&m, &page->begin);
		}
		page->more |= is(&m, "next");
	}
	return page->events && page->gaps && begins && reads;
}

/* Reads a row of `events`. */
static bool read_event(const struct hw_json_member *row, struct hw_past_item *out)
{
	struct hw_device_transition *d = &out->device;
	struct hw_text none = {"", 0};
	*d = (struct hw_device_transition){
		.device = none, .state = none, .reason = none, .group = none, .node = none, .seq = none};
	const struct {
		const char *key;
		struct hw_text *to;
	} texts[] = {{"id", &d->device},
	             {"state", &d->state},
	             {"reason", &d->reason},
	             {"group", &d->group},
	             {"node", &d->node}};
	struct hw_json_member m;
	size_t at = 0;
	bool has_offset = false;
	out->hole = false;
	if (row->value[0] != '{')
		return false;
	while (hw_json_object_next(row->value, row->value_len, &at, &m)) {
		for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
			int len = is(&m, texts[k].key) ? text_of(&m, out->text[k], sizeof(out->text[k])) : -1;
			if (len >= 0)
				*texts[k].to = (struct hw_text){out->text[k], (size_t)len};
		}
		if (is(&m, "event"))
			has_offset = offset_of(&m, &out->id);
		else if (is(&m, "seq"))
			d->seq = (struct hw_text){m.value, m.value_len};
		else if (is(&m, "time_ms"))
			d->time_ms = number_of(&m, 0);
		else if (is(&m, "last_seen_ms"))
			d->last_seen_ms = number_of(&m, 0);
	}
	return has_offset && d->device.len > 0 && d->state.len > 0;
}

/* Reads a row of `gaps`. */
static bool read_hole(const struct hw_json_member *row, struct hw_past_hole *out)
{
	struct hw_json_member m;
	size_t at = 0;
	unsigned found = 0;
	*out = (struct hw_past_hole){.lost = -1};
	if (row->value[0] != '{')
		return false;
	while (hw_json_object_next(row->value, row->value_len, &at, &m)) {
		if (is(&m, "after"))
			found += offset_of(&m, &out->after);
		else if (is(&m, "before"))
			found += offset_of(&m, &out->before);
		else if (is(&m, "lost"))
			out->lost = number_of(&m, -1);
	}
	/* Whether the row describes a gap. Returns false if another stream begins at `before`, or if no entry was
	 * lost. */
	return found == 2 && out->lost != 0 && hw_stream_id_compare(out->after, out->before) < 0;
}

/* --- in order ----------------------------------------------------------------------------------------------------- */

/* Whether entries may be missing between the last returned offset and `before`. */
static bool is_ahead(const struct hw_past_page *page, struct hw_stream_id before)
{
	return hw_stream_id_compare(hw_stream_id_next(page->after), before) < 0;
}

static void look_ahead(struct hw_past_page *page)
{
	struct hw_json_member row;
	struct hw_past_hole h;
	size_t at = 0;
	if (page->searched && (!page->any || is_ahead(page, page->ahead.before)))
		return;
	page->searched = true;
	page->any = false;
	while (hw_json_array_next(page->gaps, page->gaps_len, &at, &row)) {
		if (!read_hole(&row, &h) || !is_ahead(page, h.before) ||
		    (page->any && hw_stream_id_compare(h.before, page->ahead.before) >= 0))
			continue;
		page->ahead = h;
		page->any = true;
	}
}

/* The first hole that ends at `next` or before it. */
static bool find_hole(struct hw_past_page *page, struct hw_stream_id next, struct hw_past_hole *out)
{
	if (is_ahead(page, page->begin) && hw_stream_id_compare(page->begin, next) <= 0) {
		*out = (struct hw_past_hole){page->after, page->begin, -1};
		return true;
	}
	look_ahead(page);
	*out = page->ahead;
	return page->any && hw_stream_id_compare(page->ahead.before, next) <= 0;
}

static void put_hole(struct hw_past_page *page, const struct hw_past_hole *h, struct hw_past_item *out)
{
	bool whole = hw_stream_id_compare(h->after, page->after) >= 0;
	out->hole = true;
	out->id = hw_stream_id_previous(h->before);
	out->after = whole ? h->after : page->after;
	out->lost = whole ? h->lost : -1;
	page->after = out->id;
}

bool hw_past_next(struct hw_past_page *page, struct hw_past_item *out)
{
	struct hw_json_member row;
	struct hw_past_hole h;
	size_t behind = page->at;
	bool there = false;
	/* Skips rows that cannot be read, and rows up to the offset: these are from before the stream was restored. */
	while (!there && hw_json_array_next(page->events, page->events_len, &behind, &row)) {
		there = read_event(&row, out) && hw_stream_id_compare(out->id, page->after) > 0;
		page->at = there ? page->at : behind;
	}
	if ((there || !page->more) && find_hole(page, there ? out->id : HW_STREAM_ID_GREATEST, &h)) {
		put_hole(page, &h, out);
		return true;
	}
	if (there) {
		page->at = behind;
		page->after = out->id;
	}
	return there;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void on_fetched(void *arg, long status, const char *body, size_t len)
{
	struct question *q = arg;
	struct hw_past_page page;
	const struct question was = *q;
	q->busy = false; /* done() may make another request */
	was.done(was.arg, status == 200 && hw_past_read(&page, was.after, body, len) ? &page : NULL);
}

int hw_past_ask(struct hw_past *p, struct hw_stream_id after, hw_past_done *done, void *arg)
{
	struct question *q = p->question;
	char path[HW_STREAM_ID_TEXT + 64], text[HW_STREAM_ID_TEXT];
	while (q < p->question + HW_FETCH_MAX && q->busy)
		q++;
	if (q == p->question + HW_FETCH_MAX)
		return -EBUSY;
	snprintf(path, sizeof(path), "/v1/history/events?after=%s&limit=%d", hw_stream_id_print(after, text),
	         HW_PAST_PAGE);
	int rc = hw_fetch_get(p->fetch, path, on_fetched, q);
	if (rc == 0)
		*q = (struct question){true, after, done, arg};
	return rc;
}

struct hw_past *hw_past_new(struct event_base *base, const char *socket)
{
	struct hw_past *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->fetch = hw_fetch_new(base, socket, TIMEOUT_MS, BYTES_MAX);
	if (p->fetch)
		return p;
	free(p);
	return NULL;
}

void hw_past_free(struct hw_past *p)
{
	if (!p)
		return;
	hw_fetch_free(p->fetch);
	free(p);
}
