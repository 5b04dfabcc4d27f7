/* SPDX-License-Identifier: MIT */
/* The kinds of log lines that input can repeat without end: see hw_log_limited(). */
#ifndef HW_LIMITS_H
#define HW_LIMITS_H

#include <assert.h>

#include "run/log.h"

enum hw_limit {
	HW_LIMIT_READER,
	HW_LIMIT_BROKER,
	HW_LIMIT_RIVAL,
	HW_LIMIT_REDIS,
	HW_LIMIT_REDIS_TROUBLE,
	HW_LIMIT_SENTINEL,
	HW_LIMIT_FOREIGN,
	HW_LIMIT_STATUS_REFUSED,
	HW_LIMIT_DISCOVERY_REFUSED,
	HW_LIMIT_PROBE,
	HW_LIMIT_EVICTION,
	HW_LIMIT_PEER,
	HW_LIMIT_KEYSPACE,
	HW_LIMIT_KEYSPACE_TROUBLE,
	HW_LIMIT_CLUSTER_REDIS,
	HW_LIMIT_CLUSTER_STRANGER,
	HW_LIMIT_CLUSTER_STREAM,
	HW_LIMIT_CLUSTER_FENCED,
	HW_LIMIT_GUESSES,
	HW_LIMITS
};
static_assert((int)HW_LIMITS <= HW_LOG_KINDS, "the log has room for each kind");

#endif
