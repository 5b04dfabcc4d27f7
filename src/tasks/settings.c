/* SPDX-License-Identifier: MIT */
/* Every key of monitor.conf that heartwheel-tasks reads. */
#include "tasks/settings.h"

#include <string.h>

#include "run/log.h"
#include "tasks/allow.h"
#include "tasks/mqtt/message.h"
#include "tasks/task.h"

#define AT(field)    HW_CONF_AT(struct hw_tasks_settings, field)
#define COUNT(field) .count_offset = offsetof(struct hw_tasks_settings, field)

static const struct hw_conf_choice identities[] = {
	{"topic", HW_IDENTITY_TOPIC}, {"payload", HW_IDENTITY_PAYLOAD}, {NULL, 0}};
static const struct hw_conf_choice instances[] = {{"one", 0}, {"several", 1}, {NULL, 0}};

/* Checks each value of a list. */
static void judge_list(struct hw_conf_draft *d, const char *key, char *const *list, size_t n,
                       const char *(*wrong)(const char *text))
{
	int at = hw_conf_option_find(d->table, "tasks", key);
	for (size_t i = 0; i < n; i++) {
		const char *why = wrong(list[i]);
		if (why)
			hw_conf_wrong(&d->errors, d->origins.lines[at] ? d->origins.lines[at][i] : 0, "key", key,
			              "'%s' %s", list[i], why);
	}
}

static bool is_root(const char *text)
{
	size_t len = strlen(text);
	return len > 0 && text[0] != '/' && text[len - 1] != '/' && !strpbrk(text, "+#") && text[0] != '$';
}

static void judge(struct hw_conf_draft *d)
{
	struct hw_tasks_settings *c = (struct hw_tasks_settings *)d->conf;
	hw_conf_judge_mqtt(d, &c->mqtt);
	hw_conf_judge_redis(d, &c->redis);
	hw_conf_draft_require(d, is_root(c->root), "tasks", "root", "root",
	                      "must be the first levels of a topic: no + or #, no slash at either end");
	hw_conf_draft_require(d, hw_task_name_is_valid((struct hw_text){c->name, strlen(c->name)}), "tasks", "name",
	                      "name", "cannot be a level of a topic");
	hw_conf_draft_require(d, c->retry_max_ms >= c->ack_wait_ms, "tasks", "retry_max", "ack_wait",
	                      "retry_max is less than ack_wait");
	hw_conf_draft_require(d, !c->several || c->mqtt.protocol == 5, "tasks", "instances", "instances",
	                      "several needs [mqtt] protocol = 5, because MQTT 3.1.1 has no shared subscriptions");
	judge_list(d, "allow", c->allow, c->n_allow, hw_allow_wrong);
	judge_list(d, "publish", c->publish, c->n_publish, hw_allow_filter_wrong);
	judge_list(d, "answers", c->answers, c->n_answers, hw_allow_filter_wrong);
	hw_conf_draft_require(d, c->store == HW_STORE_REDIS, "store", "type", "type",
	                      "heartwheel-tasks stores its tasks in Redis: set redis");
}

/* clang-format off */
static const struct hw_conf_option options[] = {
	{"monitor", "node_id", HW_CONF_NODE_ID, AT(node_id), .min = 1, .max = HW_CONF_NAME_MAX, .dflt = "auto", .borrowed = true},

	{"history", "socket", HW_CONF_PATH, AT(history_socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/history.sock", .borrowed = true},

	{"tasks", "root", HW_CONF_WORD, AT(root), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "nodes"},
	{"tasks", "name", HW_CONF_WORD, AT(name), .min = 1, .max = HW_CONF_NAME_MAX, .dflt = "heartwheel"},
	{"tasks", "allow", HW_CONF_TOPICS, AT(allow), .min = 1, .max = 600, COUNT(n_allow)},
	{"tasks", "identity", HW_CONF_ENUM, AT(identity), .choices = identities, .dflt = "topic"},
	{"tasks", "publish", HW_CONF_TOPICS, AT(publish), .min = 1, .max = HW_CONF_TEXT_MAX, COUNT(n_publish)},
	{"tasks", "answers", HW_CONF_TOPICS, AT(answers), .min = 1, .max = HW_CONF_TEXT_MAX, COUNT(n_answers)},
	{"tasks", "instances", HW_CONF_ENUM, AT(several), .choices = instances, .dflt = "one"},
	{"tasks", "watch", HW_CONF_BOOL, AT(watch), .dflt = "no"},
	{"tasks", "id_prefix", HW_CONF_ID, AT(id_prefix), .max = 64, .dflt = ""},
	{"tasks", "rate", HW_CONF_INT, AT(rate), .min = 0, .max = 1000000, .unit = "messages a second", .dflt = "5000"},
	{"tasks", "window", HW_CONF_INT, AT(window), .min = 1, .max = 1000, .unit = "messages", .dflt = "4"},
	{"tasks", "ack_wait", HW_CONF_DURATION, AT(ack_wait_ms), .min = 100, .max = HW_CONF_HOUR, .dflt = "10s"},
	{"tasks", "retry_max", HW_CONF_DURATION, AT(retry_max_ms), .min = 100, .max = HW_CONF_DAY, .dflt = "5m"},
	{"tasks", "exp", HW_CONF_DURATION, AT(exp_ms), .min = HW_CONF_SECOND, .max = HW_TASK_EXP_MAX_MS, .dflt = "1d"},
	{"tasks", "run", HW_CONF_DURATION, AT(run_ms), .min = HW_CONF_SECOND, .max = HW_TASK_EXP_MAX_MS, .dflt = "1h"},
	{"tasks", "keep", HW_CONF_DURATION, AT(keep_ms), .min = HW_CONF_SECOND, .max = 366 * HW_CONF_DAY, .dflt = "1d"},
	{"tasks", "max", HW_CONF_INT, AT(max), .min = 1, .max = 100000000, .unit = "waiting tasks", .dflt = "1000000"},
	{"tasks", "max_per_receiver", HW_CONF_INT, AT(max_per_receiver), .min = 1, .max = 100000000, .unit = "waiting tasks", .dflt = "1000"},
	{"tasks", "max_followers", HW_CONF_INT, AT(max_followers), .min = 1, .max = 1000000, .unit = "followers", .dflt = "10000"},
	{"tasks", "follow_expire", HW_CONF_DURATION, AT(follow_expire_ms), .min = HW_CONF_SECOND, .max = 30 * HW_CONF_DAY, .dflt = "1d"},
	{"tasks", "horizon", HW_CONF_DURATION, AT(horizon_ms), .min = HW_CONF_SECOND, .max = 366 * HW_CONF_DAY, .dflt = "10m"},
	{"tasks", "clock_hold", HW_CONF_DURATION, AT(clock_hold_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "5m"},
	{"tasks", "key_prefix", HW_CONF_WORD, AT(key_prefix), .min = 1, .max = 64, .dflt = "task:"},
	{"tasks", "socket", HW_CONF_PATH, AT(socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/tasks.sock"},
	{"tasks", "socket_group", HW_CONF_WORD, AT(socket_group), .max = 32, .dflt = ""},
	{"tasks", "pid_file", HW_CONF_PATH, AT(pid_file), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "/run/heartwheel/heartwheel-tasks.pid"},
	{"tasks", "user", HW_CONF_WORD, AT(user), .max = 32, .dflt = "heartwheel"},
	{"tasks", "log", HW_CONF_LOG, AT(log), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "syslog"},
	{"tasks", "log_level", HW_CONF_ENUM, AT(log_level), .choices = hw_log_levels, .dflt = "info"},

	HW_CONF_MQTT_ROWS(struct hw_tasks_settings, mqtt),

	HW_CONF_STORE_ROWS(struct hw_tasks_settings, store),

	HW_CONF_REDIS_ROWS(struct hw_tasks_settings, redis),
};
/* clang-format on */

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= HW_CONF_OPTIONS_MAX, "struct hw_conf_origins has arrays of this size");

const struct hw_conf_table hw_tasks_table = {
	.options = options, .n_options = N_OPTIONS, .size = sizeof(struct hw_tasks_settings), .judge = judge};
