/* SPDX-License-Identifier: MIT */
/*
 * What an error reply means: a kind, whether it is about Redis as a whole or only about what was sent, and a sentence
 * that says what to do. Each kind is told at most once in HW_TROUBLE_EVERY_MS.
 */
#ifndef HW_LINK_TROUBLE_H
#define HW_LINK_TROUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_TROUBLE_EVERY_MS 10000
#define HW_TROUBLE_TEXT     400

enum hw_trouble {
	HW_TROUBLE_NOSCRIPT, /* the scripts are to be loaded again; nobody needs to be told */
	HW_TROUBLE_PASSWORD,
	HW_TROUBLE_NO_PASSWORD,
	HW_TROUBLE_NOAUTH,
	HW_TROUBLE_NOPERM,
	HW_TROUBLE_LOADING,
	HW_TROUBLE_OOM,
	HW_TROUBLE_READONLY,
	HW_TROUBLE_MISCONF,
	HW_TROUBLE_MASTERDOWN,
	HW_TROUBLE_NOREPLICAS,
	HW_TROUBLE_BUSY,
	HW_TROUBLE_CROSSSLOT, /* these three: a cluster */
	HW_TROUBLE_MOVED,
	HW_TROUBLE_CLUSTERDOWN,
	HW_TROUBLE_DB,
	HW_TROUBLE_STREAM_FULL, /* the greatest id that a stream can have is used up */
	HW_TROUBLE_WRONGTYPE,
	HW_TROUBLE_OTHER, /* any other error reply */
	HW_TROUBLE_KINDS
};

struct hw_troubles {
	int64_t told_ms[HW_TROUBLE_KINDS]; /* monotonic; 0: never */
};

/* The kind of an error reply. Scripts of older servers wrap the error that stopped them, so its code may stand
 * anywhere.
 */
enum hw_trouble hw_trouble_of(const char *reply);

/* Whether any other command would fare the same now: nothing is to be given up for it. */
bool hw_trouble_is_global(enum hw_trouble k);

/* How Redis names what may stop a write ("READONLY"), "other" for HW_TROUBLE_OTHER; NULL for kinds that do not. */
const char *hw_trouble_name(enum hw_trouble k);

/* Writes what is wrong and what to do, one line without control characters, at most HW_TROUBLE_TEXT bytes with the NUL.
 */
void hw_trouble_text(const char *reply, char buf[HW_TROUBLE_TEXT]);

/* Whether it is time to tell of this kind; then it counts as told. */
bool hw_trouble_due(struct hw_troubles *t, enum hw_trouble k, int64_t now_ms);
/* The same of anything else that was told of last at *told_ms (monotonic; 0: never). */
bool hw_trouble_due_again(int64_t *told_ms, int64_t now_ms);

#endif
