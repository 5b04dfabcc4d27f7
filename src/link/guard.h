/* SPDX-License-Identifier: MIT */
/*
 * A guard before hiredis: it ends the process (an assertion) when a server says something that nobody has asked for,
 * and makes as long an array as a server announces. The guard stands where the reader makes its objects, and refuses
 * both there: the connection is then lost, as with any other protocol error.
 */
#ifndef HW_LINK_GUARD_H
#define HW_LINK_GUARD_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#define HW_GUARD_ELEMENTS_MAX (1 << 20) /* in one array; our largest, a page of SCAN, has some hundreds */

struct hw_guard {
	redisAsyncContext *ac;
	const redisReplyObjectFunctions *real;
	redisReplyObjectFunctions fn;
	const char *refused; /* what was, in words; NULL: nothing */
};

/* Caller's storage, which must outlive the context's reader. */
void hw_guard_set(struct hw_guard *g, redisAsyncContext *ac);

#endif
