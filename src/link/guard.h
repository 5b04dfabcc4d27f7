/* SPDX-License-Identifier: MIT */
/*
 * Protects the process from a faulty server. hiredis fails an assertion if a reply was not requested, and allocates an
 * array of any length that a server announces. The guard replaces the functions by which the reader creates objects;
 * its functions refuse both. The connection is then lost, as with any other protocol error.
 */
#ifndef HW_LINK_GUARD_H
#define HW_LINK_GUARD_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

/* most elements in one array; normal arrays have some hundreds, such as a page of SCAN */
#define HW_GUARD_ELEMENTS_MAX (1 << 20)

struct hw_guard {
	redisAsyncContext *ac;
	const redisReplyObjectFunctions *real;
	redisReplyObjectFunctions fn;
	const char *refused; /* the reason of a refusal; NULL: nothing was refused */
};

/* Installs the guard in the reader (redisReader) of `ac`. `g` must exist until the reader is freed. */
void hw_guard_set(struct hw_guard *g, redisAsyncContext *ac);

#endif
