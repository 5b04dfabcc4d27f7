/* SPDX-License-Identifier: MIT */
/*
 * The verdict: the result of new evidence for a device. Only this function decides that a device is online, offline or
 * forgotten; door.c applies the verdict. Private to the core.
 *
 * It is a pure function of the device's state, its flags and the evidence: it uses no monitor, wheel or clock. The
 * caller collects the evidence, and may omit members that the event does not use.
 */
#ifndef HW_VERDICT_H
#define HW_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/registry.h"

/* The event. */
enum hw_verdict_event {
	HW_EVENT_LIFE,     /* a heartbeat, or a check that found the device's key */
	HW_EVENT_GOODBYE,  /* the device's goodbye, or its last will */
	HW_EVENT_DUE,      /* the time for which the device was armed has come */
	HW_EVENT_PROVEN,   /* the pair of barriers that the suspect waited for is back */
	HW_EVENT_KEY_GONE, /* the device's key is missing in the store */
	HW_EVENT_STORED,   /* the store has a record of the device; the device gets the state of that record */
	HW_EVENT_SETTLED,  /* the store has no record of the device */
	HW_EVENT_ORPHANED, /* the group has parent_death = take, and no known parent of the device is online */
	HW_EVENT_FORGET    /* an operator requests to forget the device */
};

struct hw_evidence {
	enum hw_verdict_event event;
	bool loading;  /* LIFE, GOODBYE: the stored record of the device may not have been read yet */
	bool too_few;  /* LIFE, STORED: the offline device needs more heartbeats to be online */
	bool heard;    /* STORED, SETTLED, GOODBYE: this run has received a heartbeat */
	bool blind;    /* GOODBYE: the monitor is blind to the device, or doubts wills after a standstill */
	bool delay;    /* GOODBYE: hold the goodbye, for a while or until the group's grace ends */
	bool touched;  /* PROVEN: there was blindness since the goodbye */
	bool outrun;   /* PROVEN: the pair was sent before the present deadline */
	bool by_key;   /* LIFE: the evidence is a key. DUE: the device is known only by a key, so only the key can prove
	                  that it is online. PROVEN: at last, only the key kept the device online. KEY_GONE: this device
	                  had a key that another program writes */
	bool deaf;     /* DUE, PROVEN: the group is deaf, or this node cannot hear the device (form.h) */
	bool expected; /* DUE: the inventory expects the device, so it is not forgotten by itself */
	bool orphaned; /* DUE: like HW_EVENT_ORPHANED, but the device had to wait for its turn */
	bool unheard;  /* PROVEN: it is not known yet whether the whole group is silent */
	bool key_lives;  /* PROVEN: the device's key keeps it online */
	bool beats;      /* KEY_GONE: the device also sends heartbeats */
	bool overdue;    /* KEY_GONE: the heartbeat deadline has passed */
	bool suspect;    /* KEY_GONE: the device is a suspect */
	bool excused;    /* KEY_GONE: a missing key is no evidence yet */
	int64_t wait_ns; /* PROVEN with `unheard`: for how long to wait; 0: until another pair of barriers is back */
	int64_t late_ns; /* DUE, PROVEN, KEY_GONE: time since the deadline on the device's seeing clock; negative:
	                    before the deadline */
};

enum hw_act {
	HW_ACT_NONE,
	HW_ACT_ONLINE,
	HW_ACT_OFFLINE,
	HW_ACT_FORGOTTEN,
	HW_ACT_SUSPECT,       /* judge the device when a pair of barriers that is sent from now on is back */
	HW_ACT_HOLD,          /* suspect later: see held_until() */
	HW_ACT_VOID,          /* discard the goodbye; the deadline decides */
	HW_ACT_REARM,         /* the deadline has moved */
	HW_ACT_ASK_KEY,       /* check the device's key */
	HW_ACT_KEY_LIVES,     /* silent over MQTT; its key keeps it online */
	HW_ACT_REFRESH,       /* the key is missing but the device stays online: the monitor writes its own key */
	HW_ACT_EXCUSE,        /* check the key again when its excuse ends */
	HW_ACT_WAIT,          /* judge again after wait_ns, or after another pair */
	HW_ACT_COUNT,         /* offline and heard: too few heartbeats so far */
	HW_ACT_REST,          /* check again when the group hears, or after a timeout */
	HW_ACT_PUBLISH_STATUS /* publish its retained status again, which may have been replaced at the broker */
};

static inline bool hw_act_changes(enum hw_act a)
{
	return a == HW_ACT_ONLINE || a == HW_ACT_OFFLINE || a == HW_ACT_FORGOTTEN;
}

struct hw_verdict {
	enum hw_act act;
	enum hw_reason reason; /* ONLINE, OFFLINE, FORGOTTEN */
	int64_t delay_ns;      /* OFFLINE: time since the device's deadline; -1: the device had no deadline */
};

struct hw_verdict hw_verdict(const struct hw_device *d, const struct hw_evidence *e);

#endif
