/* SPDX-License-Identifier: MIT */
/*
 * The verdict: what follows for a device from what has come to be known of it. The one place that decides when a device
 * is online, offline or forgotten; door.c carries the verdict out. Private to the core.
 *
 * A pure function of a device's state, its flags and the evidence: no monitor, no wheel, no clock. Whoever asks gathers
 * the evidence; what is of no use for what was said may be left out.
 */
#ifndef HW_VERDICT_H
#define HW_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "heartwheel/registry.h"

/* What is new. */
enum hw_said {
	HW_SAID_LIFE,     /* a heartbeat, or its key is there */
	HW_SAID_GOODBYE,  /* its own, or its last will */
	HW_SAID_DUE,      /* the moment has come for which it was armed */
	HW_SAID_PROVEN,   /* the pair of barriers is back that it waited for as a candidate */
	HW_SAID_KEY_GONE, /* its key is gone, and the store is the evidence */
	HW_SAID_STORED,   /* the store says what it was; its state is that */
	HW_SAID_SETTLED,  /* the store has nothing to say of it */
	HW_SAID_FORGET    /* an operator wants it forgotten */
};

struct hw_evidence {
	enum hw_said said;
	bool loading;   /* LIFE, GOODBYE: the store may yet say what it was */
	bool heard;     /* STORED, SETTLED, GOODBYE: by this run */
	bool blind;     /* GOODBYE: the monitor cannot hear it, or may be told wills by a broker that stood still */
	bool delay;     /* GOODBYE: its group holds goodbyes for a while, or until its grace is over */
	bool touched;   /* PROVEN: blindness came between its goodbye and now */
	bool outrun;    /* PROVEN: the pair set out before the deadline that has passed */
	bool by_key;    /* LIFE: it is its key that is there. DUE: only its key tells of it. PROVEN: it lived by its key
	                   last. KEY_GONE: another program's key is known of it */
	bool deaf;      /* DUE, PROVEN: its group is, or the device is not heard here (form.h) */
	bool unheard;   /* PROVEN: whether the silence is its own or its group's is yet to be found out */
	bool key_lives; /* PROVEN: its key keeps it online */
	bool beats;     /* KEY_GONE: it was heard over MQTT as well */
	bool overdue;   /* KEY_GONE: the deadline of its heartbeats has passed */
	bool candidate; /* KEY_GONE: it waits for its barriers */
	bool spared;    /* KEY_GONE: that the key is missing is not held against it yet */
	int64_t wait_ns; /* PROVEN, unheard: for so long; 0: for another pair */
	int64_t late_ns; /* DUE, PROVEN, KEY_GONE: since its deadline, on its seeing clock; negative: that lies ahead */
};

enum hw_act {
	HW_ACT_NONE,
	HW_ACT_ONLINE,
	HW_ACT_OFFLINE,
	HW_ACT_FORGOTTEN,
	HW_ACT_CANDIDATE, /* a pair of barriers that is yet to be sent shall prove it */
	HW_ACT_HOLD,      /* a candidate when the group's goodbye_delay, or its grace, is over */
	HW_ACT_VOID,      /* its goodbye counts for nothing: it is left to its deadline */
	HW_ACT_REARM,     /* its deadline has moved on */
	HW_ACT_ASK_KEY,   /* its key is to be looked at */
	HW_ACT_KEY_LIVES, /* it is silent over MQTT, and lives by its key */
	HW_ACT_REFRESH,   /* it goes on living without that key, and the monitor writes its own */
	HW_ACT_SPARE,     /* its key is looked at again when it is no longer spared */
	HW_ACT_WAIT,      /* judged again after wait_ns, or another pair */
	HW_ACT_REST,      /* looked at again when its group hears, at the latest after a timeout */
	HW_ACT_OWE_STATUS /* its retained status may have been replaced */
};

/* Whether it changes the device's state. */
static inline bool hw_act_changes(enum hw_act a)
{
	return a == HW_ACT_ONLINE || a == HW_ACT_OFFLINE || a == HW_ACT_FORGOTTEN;
}

struct hw_verdict {
	enum hw_act act;
	enum hw_reason reason; /* ONLINE, OFFLINE, FORGOTTEN */
	int64_t delay_ns;      /* OFFLINE: since the deadline; -1: none was involved */
};

struct hw_verdict hw_verdict(const struct hw_device *d, const struct hw_evidence *e);

#endif
