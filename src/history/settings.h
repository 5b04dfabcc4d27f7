/* SPDX-License-Identifier: MIT */
/* The configuration of heartwheel-history. Strings are owned and never NULL; durations are milliseconds. */
#ifndef HW_HISTORY_SETTINGS_H
#define HW_HISTORY_SETTINGS_H

#include "conf/conf.h"
#include "conf/shared.h"

struct hw_history_settings {
	struct hw_conf_head head;
	char *database; /* a text for hw_sql_place_parse() */
	char *password_file, *tls_ca;
	int64_t keep_ms, keep_outages_ms; /* 0: for ever */
	int64_t batch;
	char *socket, *socket_group;
	char *pid_file, *user, *log;
	int log_level;
	int store;
	struct hw_conf_redis redis;
};

extern const struct hw_conf_table hw_history_table;

#endif
