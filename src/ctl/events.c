/* SPDX-License-Identifier: MIT */
#include "ctl/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

void hw_event_read_drop(struct hw_event_read *e)
{
	*e->name = *e->place = '\0';
	free(e->data);
	e->data = NULL;
	e->whole = false;
}

bool hw_event_read_line(struct hw_event_read *e, const char *line)
{
	if (e->whole)
		hw_event_read_drop(e);
	if (!*line) {
		if (*e->place)
			snprintf(e->last, sizeof(e->last), "%s", e->place);
		return e->whole = *e->name || *e->place || e->data;
	}
	if (strncmp(line, "event: ", 7) == 0) {
		snprintf(e->name, sizeof(e->name), "%s", line + 7);
	} else if (strncmp(line, "id: ", 4) == 0) {
		snprintf(e->place, sizeof(e->place), "%s", line + 4);
	} else if (strncmp(line, "data: ", 6) == 0) {
		free(e->data);
		e->data = strdup(line + 6);
	}
	return false;
}

void hw_event_read_fini(struct hw_event_read *e)
{
	hw_event_read_drop(e);
	hw_recent_fini(&e->recent);
}

/* FNV-1a: continues `hash` with `text`. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

/* Hash of a transition: id, seq and state. */
static uint64_t hash_of(const cJSON *device)
{
	uint64_t hash = hash_text(14695981039346656037u, hw_member_text(device, "id"));
	hash = (hash ^ (uint64_t)hw_member_int(device, "seq")) * 1099511628211u;
	return hash_text(hash, hw_member_text(device, "state"));
}

bool hw_event_note(struct hw_event_read *e, const cJSON *device)
{
	return hw_recent_add(&e->recent, hash_of(device));
}

cJSON *hw_event_transition(struct hw_event_read *e)
{
	bool is_one = strcmp(e->name, "transition") == 0 || strcmp(e->name, "pending") == 0;
	cJSON *device = is_one && e->data ? cJSON_Parse(e->data) : NULL;
	if (!device || !hw_event_note(e, device))
		return device;
	cJSON_Delete(device);
	return NULL;
}
