/* SPDX-License-Identifier: MIT */
#include "ctl/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

#define TOLD 65536

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
	free(e->told);
}

/* Of a device's transition: its id and seq. Never 0. */
static uint64_t hash_of(const cJSON *device)
{
	uint64_t hash = 14695981039346656037u;
	for (const char *c = hw_member_text(device, "id"); *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	return (hash ^ (uint64_t)hw_member_int(device, "seq")) * 1099511628211u | 1;
}

/* Whether it came before; notes what has no place yet. */
static bool was_told(struct hw_event_read *e, const cJSON *device, bool pending)
{
	uint64_t hash = hash_of(device);
	if (pending && !e->told)
		e->told = calloc(TOLD, sizeof(*e->told));
	uint64_t *slot = e->told ? &e->told[(hash >> 32) % TOLD] : NULL;
	bool was = slot && *slot == hash;
	if (slot && (was || pending))
		*slot = pending ? hash : 0;
	return was;
}

void hw_event_note(struct hw_event_read *e, const cJSON *device)
{
	was_told(e, device, true);
}

cJSON *hw_event_transition(struct hw_event_read *e)
{
	bool pending = strcmp(e->name, "pending") == 0;
	if (!e->data || (!pending && strcmp(e->name, "transition") != 0))
		return NULL;
	cJSON *device = cJSON_Parse(e->data);
	if (!device || !was_told(e, device, pending))
		return device;
	cJSON_Delete(device);
	return NULL;
}
