/* SPDX-License-Identifier: MIT */
/* The settings of monitor.conf that heartwheel-tasks reads. Strings are owned and never NULL; durations are in ms. */
#ifndef HW_TASKS_SETTINGS_H
#define HW_TASKS_SETTINGS_H

#include "conf/conf.h"
#include "conf/shared.h"

enum hw_tasks_identity { HW_IDENTITY_TOPIC, HW_IDENTITY_PAYLOAD };

struct hw_tasks_settings {
	struct hw_conf_head head;
	char *root, *name;
	char **allow; /* "SENDER ACTION RECEIVER": see allow.h */
	size_t n_allow;
	int identity;   /* enum hw_tasks_identity */
	char **publish; /* filters; {sender} stands for the submitter */
	size_t n_publish;
	char **answers; /* filters */
	size_t n_answers;
	int several; /* instances: 0: one; 1: several */
	bool watch;
	char *id_prefix;
	int64_t rate, window, max, max_per_receiver, max_followers;
	int64_t ack_wait_ms, retry_max_ms, exp_ms, run_ms, keep_ms, horizon_ms, clock_hold_ms, follow_expire_ms;
	char *key_prefix;
	char *socket, *socket_group;
	char *pid_file, *user, *log;
	int log_level;

	char *node_id; /* of [monitor] */
	char *history_socket;
	struct hw_conf_mqtt mqtt;
	int store;
	struct hw_conf_redis redis;
};

extern const struct hw_conf_table hw_tasks_table;

#endif
