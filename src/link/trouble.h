/* SPDX-License-Identifier: MIT */
/*
 * The meaning of an error reply: its kind, whether it is about Redis as a whole or only about the command, and a
 * sentence with the remedy. Each kind is reported at most once in HW_TROUBLE_EVERY_MS.
 */
#ifndef HW_LINK_TROUBLE_H
#define HW_LINK_TROUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_TROUBLE_EVERY_MS 10000
#define HW_TROUBLE_TEXT     400

enum hw_trouble {
	HW_TROUBLE_NOSCRIPT, /* the scripts must be loaded again; not reported */
	HW_TROUBLE_PASSWORD,
	HW_TROUBLE_NO_PASSWORD,
	HW_TROUBLE_PROTECTED,
	HW_TROUBLE_NOAUTH,
	HW_TROUBLE_NOPERM,
	HW_TROUBLE_LOADING,
	HW_TROUBLE_OOM,
	HW_TROUBLE_READONLY,
	HW_TROUBLE_MISCONF,
	HW_TROUBLE_MASTERDOWN,
	HW_TROUBLE_NOREPLICAS,
	HW_TROUBLE_BUSY,
	HW_TROUBLE_CROSSSLOT, /* this kind and the next two occur only if the server is a Redis Cluster */
	HW_TROUBLE_MOVED,
	HW_TROUBLE_CLUSTERDOWN,
	HW_TROUBLE_DB,
	HW_TROUBLE_STREAM_FULL, /* a stream has the greatest possible id and takes no more entries */
	HW_TROUBLE_WRONGTYPE,
	HW_TROUBLE_OTHER, /* any other error reply */
	HW_TROUBLE_KINDS
};

struct hw_troubles {
	int64_t reported_ms[HW_TROUBLE_KINDS]; /* monotonic; 0: never */
};

/* Returns the kind of an error reply. Older servers put a text around the error that stopped a script, so the code
 * may be anywhere in the reply. */
enum hw_trouble hw_trouble_of(const char *reply);

/* Whether the error is about all of Redis, so that any other command would also fail now. The caller then keeps what
 * has failed, and sends it again. */
bool hw_trouble_is_global(enum hw_trouble k);

/* Returns the name that Redis uses for a kind that can prevent a write ("READONLY"); "other" for HW_TROUBLE_OTHER;
 * NULL for other kinds. */
const char *hw_trouble_name(enum hw_trouble k);

/* Writes the meaning and the remedy as one line without control characters, at most HW_TROUBLE_TEXT bytes with the NUL.
 */
void hw_trouble_text(const char *reply, char buf[HW_TROUBLE_TEXT]);

/* Whether this kind may be reported now. If so, it counts as reported. */
bool hw_trouble_due(struct hw_troubles *t, enum hw_trouble k, int64_t now_ms);
/* Like hw_trouble_due(), for a report of any kind. *reported_ms: when it was made last (monotonic); 0: never. */
bool hw_trouble_due_again(int64_t *reported_ms, int64_t now_ms);

#endif
