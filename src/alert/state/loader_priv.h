/* SPDX-License-Identifier: MIT */
/* The parts that loader.c and loader_devices.c share. Private to both. */
#ifndef HW_ALERT_LOADER_PRIV_H
#define HW_ALERT_LOADER_PRIV_H

#include "alert/follow/follow.h"
#include "alert/state/loader.h"
#include "alert/state/store.h"
#include "link/trouble.h"

enum hw_alert_loader_step { OFFSETS, IDS, INCIDENTS, RECENT, DEVICES, MEMBERS, SILENCES, RECEIVERS, RECALL, END };

struct hw_alert_loader_list {
	char **at;
	size_t n, cap;
};

struct hw_alert_loader {
	struct hw_alert_app *app;
	struct hw_incidents *engine; /* owned until it is loaded */
	unsigned run;                /* answers to an earlier load are ignored */
	bool busy, first, clean, skip, failed, has_why;
	uint64_t commits;
	enum hw_alert_loader_step step;
	size_t awaited, next; /* next: of the step's list */
	struct hw_alert_loader_list incidents, recent, silences;
	char cursor[24];      /* of device:offline, then of device:unseen */
	bool unseen, scanned; /* unseen: device:offline is scanned; scanned: both are */
	unsigned pages, scans;
	struct hw_stream_id recalled;
	struct hw_alert_offset offsets[HW_ALERT_STREAMS];
	int64_t now_ms, bound_ms;                     /* bound_ms: of hw_alert_bound_ms() */
	char why[HW_ALERT_KEY_MAX + HW_TROUBLE_TEXT]; /* why the last load failed; "": it has not failed, or
	                                               * hw_alert_store_why() has the reason */
};

/* Handles the answer to a command. `name`: the device, incident, silence or receiver of the command. */
typedef void hw_alert_loader_read(struct hw_alert_loader *l, const char *name, const redisReply *r);

/* Sends a command, which ends with NULL. `read` handles its answer. */
void hw_alert_loader_ask(struct hw_alert_loader *l, hw_alert_loader_read *read, const char *name,
                         const char *const *words);
/* Sends `command` with the key HEAD:NAME:TAIL as its only argument. */
void hw_alert_loader_ask_key(struct hw_alert_loader *l, hw_alert_loader_read *read, const char *name,
                             const char *command, const char *head, const char *tail);
/* hw_alert_loader_refused(): notes that the key `key` cannot be read. hw_alert_loader_fail(): also makes the load fail,
 * because it needs the key. */
void hw_alert_loader_refused(struct hw_alert_loader *l, const char *key, const redisReply *r);
void hw_alert_loader_fail(struct hw_alert_loader *l, const char *key, const redisReply *r);
/* Counts a scan. Returns false after the last one that a load may make. */
bool hw_alert_loader_may_scan(struct hw_alert_loader *l);

/* loader_devices.c: reads the next page of device:offline, or of device:unseen if device:offline is finished. */
void hw_alert_loader_ask_devices(struct hw_alert_loader *l);
/* loader_devices.c: reads the members of an incident from `cursor` on. */
void hw_alert_loader_scan_members(struct hw_alert_loader *l, const char *id, const char *cursor);

#endif
