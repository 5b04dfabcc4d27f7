/* SPDX-License-Identifier: MIT */
#include "ctl/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define TOGETHER_MS 1000
#define TOGETHER_OF 8 /* number of recent entries that may absorb a transition */
#define OFF_MAX     3

void hw_board_init(struct hw_board *b)
{
	memset(b, 0, sizeof(*b));
	b->stale = true;
}

static void clear_rows(struct hw_board *b)
{
	for (size_t i = 0; i < b->n_rows; i++)
		cJSON_Delete(b->rows[i].device);
	b->n_rows = 0;
}

void hw_board_fini(struct hw_board *b)
{
	cJSON **all[] = {&b->status, &b->groups, &b->tasks, &b->incidents, &b->device, &b->lately};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		hw_board_put(all[i], NULL);
	clear_rows(b);
	for (size_t i = 0; i < HW_BOARD_CHANGES; i++)
		free(b->changes[i].id);
}

void hw_board_put(cJSON **place, cJSON *json)
{
	cJSON_Delete(*place);
	*place = json;
}

/* Returns the FNV-1a hash of an id. Hashes are compared first, which avoids most comparisons of ids. */
static uint32_t hash(const char *id)
{
	uint32_t h = 2166136261u;
	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return h;
}

size_t hw_board_find(const struct hw_board *b, const char *id)
{
	uint32_t h = hash(id);
	size_t i = 0;
	while (i < b->n_rows && (b->rows[i].hash != h || strcmp(hw_member_text(b->rows[i].device, "id"), id) != 0))
		i++;
	return i;
}

/* --- the list */

static void remove_row(struct hw_board *b, size_t i)
{
	cJSON_Delete(b->rows[i].device);
	b->n_rows--;
	memmove(&b->rows[i], &b->rows[i + 1], (b->n_rows - i) * sizeof(b->rows[0]));
}

/* Takes ownership of the device. */
static void insert_row(struct hw_board *b, cJSON *device)
{
	int64_t since_ms = hw_member_int(device, "since_ms");
	size_t i = 0;
	while (i < b->n_rows && hw_member_int(b->rows[i].device, "since_ms") > since_ms)
		i++;
	if (b->n_rows == HW_BOARD_ROWS) {
		b->more = true;
		if (i == b->n_rows) {
			cJSON_Delete(device);
			return;
		}
		remove_row(b, b->n_rows - 1);
	}
	memmove(&b->rows[i + 1], &b->rows[i], (b->n_rows - i) * sizeof(b->rows[0]));
	b->rows[i] = (struct hw_board_row){hash(hw_member_text(device, "id")), device};
	b->n_rows++;
}

static bool matches(const struct hw_board *b, const cJSON *device)
{
	const char *state = hw_member_text(device, "state");
	bool online = strcmp(state, "online") == 0, offline = strcmp(state, "offline") == 0;
	return (b->view == HW_VIEW_ALL      ? online || offline
	        : b->view == HW_VIEW_ONLINE ? online
	                                    : offline) &&
	       (!*b->search || strcasestr(hw_member_text(device, "id"), b->search));
}

void hw_board_list(struct hw_board *b, cJSON *answer)
{
	cJSON *devices = cJSON_GetObjectItemCaseSensitive(answer, "devices"), *device;
	clear_rows(b);
	b->more = hw_member_has(answer, "next");
	while (b->n_rows < HW_BOARD_ROWS && (device = cJSON_DetachItemFromArray(devices, 0)))
		b->rows[b->n_rows++] = (struct hw_board_row){hash(hw_member_text(device, "id")), device};
	b->listed = true;
	b->off = 0;
	cJSON_Delete(answer);
}

void hw_board_show(struct hw_board *b, enum hw_board_view view, const char *search)
{
	if (b->view == view && strcmp(b->search, search) == 0)
		return;
	b->view = view;
	if (search != b->search)
		snprintf(b->search, sizeof(b->search), "%s", search);
	clear_rows(b);
	b->more = b->listed = false;
	b->stale = true;
}

int64_t hw_board_total(const struct hw_board *b)
{
	static const char *const counts[HW_VIEWS] = {"offline", "devices", "online"};
	return hw_member_int(b->status, counts[b->view]);
}

/* Takes a status. If an event was lost, for example while Redis could not be reached, the counts of the status differ
 * from the list. After OFF_MAX such statuses in a row, the list becomes stale, and the caller requests it again. */
void hw_board_status(struct hw_board *b, cJSON *status)
{
	hw_board_put(&b->status, status);
	size_t count = (size_t)hw_board_total(b);
	bool filled = !b->more || b->n_rows > HW_BOARD_ROWS / 2;
	bool holds = filled && (*b->search || (b->more ? count > b->n_rows : count == b->n_rows));
	b->off = holds || !b->listed ? 0 : b->off + 1;
	if (b->off >= OFF_MAX)
		b->stale = true;
}

/* --- what changed */

const struct hw_board_change *hw_board_change(const struct hw_board *b, size_t i)
{
	if (i >= b->n_changes || i >= HW_BOARD_CHANGES)
		return NULL;
	return &b->changes[(b->n_changes - 1 - i) % HW_BOARD_CHANGES];
}

static bool belongs(const struct hw_board_change *c, const cJSON *t)
{
	return strcmp(c->state, hw_member_text(t, "state")) == 0 &&
	       strcmp(c->reason, hw_member_text(t, "reason")) == 0 &&
	       strcmp(c->group, hw_member_text(t, "group")) == 0 &&
	       llabs(hw_member_int(t, "since_ms") - c->last_ms) <= TOGETHER_MS;
}

static struct hw_board_change *nth_change(struct hw_board *b, size_t i)
{
	return &b->changes[(b->n_changes - 1 - i) % HW_BOARD_CHANGES];
}

/* Moves the i-th change to its place after its time has changed. The latest change is first. */
static void order_change(struct hw_board *b, size_t i)
{
	size_t n = b->n_changes < HW_BOARD_CHANGES ? (size_t)b->n_changes : HW_BOARD_CHANGES;
	for (size_t to; i < n; i = to) {
		int64_t at_ms = nth_change(b, i)->last_ms;
		if (i > 0 && nth_change(b, i - 1)->last_ms < at_ms)
			to = i - 1;
		else if (i + 1 < n && nth_change(b, i + 1)->last_ms > at_ms)
			to = i + 1;
		else
			return;
		struct hw_board_change other = *nth_change(b, to);
		*nth_change(b, to) = *nth_change(b, i);
		*nth_change(b, i) = other;
	}
}

static void add_change(struct hw_board *b, const cJSON *t)
{
	int64_t at_ms = hw_member_int(t, "since_ms");
	for (size_t i = 0; i < TOGETHER_OF && i < b->n_changes; i++) {
		struct hw_board_change *c = nth_change(b, i);
		if (!belongs(c, t))
			continue;
		c->count++;
		c->first_ms = at_ms < c->first_ms ? at_ms : c->first_ms;
		c->last_ms = at_ms > c->last_ms ? at_ms : c->last_ms;
		order_change(b, i);
		return;
	}
	struct hw_board_change *c = &b->changes[b->n_changes % HW_BOARD_CHANGES];
	free(c->id);
	*c = (struct hw_board_change){
		.id = strdup(hw_member_text(t, "id")), .first_ms = at_ms, .last_ms = at_ms, .count = 1};
	snprintf(c->state, sizeof(c->state), "%s", hw_member_text(t, "state"));
	snprintf(c->reason, sizeof(c->reason), "%s", hw_member_text(t, "reason"));
	snprintf(c->group, sizeof(c->group), "%s", hw_member_text(t, "group"));
	b->n_changes++;
	order_change(b, 0);
}

/* Marks the changes that begin less than TOGETHER_MS after `oldest_ms`. The answer was cut off there, so they may be
 * incomplete. */
static void mark_cut(struct hw_board *b, int64_t oldest_ms)
{
	size_t n = b->n_changes < HW_BOARD_CHANGES ? (size_t)b->n_changes : HW_BOARD_CHANGES;
	for (size_t i = 0; i < n; i++)
		b->changes[i].at_least = b->changes[i].first_ms - oldest_ms <= TOGETHER_MS;
}

void hw_board_transitions(struct hw_board *b, const cJSON *answer)
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(answer, "transitions");
	b->n_changes = 0;
	/* In the answer the newest transition is first, so this loop begins at the end. In cJSON, the `prev` of an
	 * array's first item is its last item. */
	const cJSON *t = all && all->child ? all->child->prev : NULL;
	for (int left = cJSON_GetArraySize(all); left > 0; left--, t = t->prev)
		add_change(b, t);
	if (cJSON_GetArraySize(all) >= HW_BOARD_CUT)
		mark_cut(b, hw_member_int(all->child->prev, "since_ms"));
}

void hw_board_transition(struct hw_board *b, cJSON *device)
{
	add_change(b, device);
	size_t at = hw_board_find(b, hw_member_text(device, "id"));
	if (at < b->n_rows)
		remove_row(b, at);
	if (matches(b, device))
		insert_row(b, device);
	else
		cJSON_Delete(device);
}
