/* SPDX-License-Identifier: MIT */
/* Every key of monitor.conf that heartwheel-history reads. */
#include "history/settings.h"

#include "history/sql.h"
#include "run/log.h"

#define AT(field) HW_CONF_AT(struct hw_history_settings, field)

static void judge(struct hw_conf_draft *d)
{
	struct hw_history_settings *c = (struct hw_history_settings *)d->conf;
	struct hw_sql_place place;
	hw_conf_judge_redis(d, &c->redis);
	const char *wrong = hw_sql_place_parse(c->database, &place);
	if (!wrong)
		wrong = hw_sql_place_missing(&place);
	hw_conf_draft_require(d, !wrong, "history", "database", "database", wrong ? wrong : "");
	hw_conf_draft_require(d, wrong || place.mysql || !*c->password_file, "history", "password_file", "database",
	                      "is for a database server: SQLite has no password");
	hw_conf_draft_require(d, wrong || place.mysql || !*c->tls_ca, "history", "tls_ca", "database",
	                      "is for a database server: SQLite has no TLS");
	hw_conf_draft_require(d, c->store == HW_STORE_REDIS, "store", "type", "type",
	                      "heartwheel-history reads streams of Redis: set redis");
}

/* clang-format off */
static const struct hw_conf_option options[] = {
	{"history", "database", HW_CONF_WORD, AT(database), .min = 1, .max = 600, .dflt = "sqlite:/var/lib/heartwheel/history.db"},
	{"history", "password_file", HW_CONF_PATH, AT(password_file), .max = HW_CONF_TEXT_MAX, .dflt = ""},
	{"history", "tls_ca", HW_CONF_PATH, AT(tls_ca), .max = HW_CONF_TEXT_MAX, .dflt = ""},
	{"history", "keep", HW_CONF_DURATION, AT(keep_ms), .min = 0, .max = 36500 * HW_CONF_DAY, .dflt = "90d"},
	{"history", "keep_outages", HW_CONF_DURATION, AT(keep_outages_ms), .min = 0, .max = 36500 * HW_CONF_DAY, .dflt = "1095d"},
	{"history", "batch", HW_CONF_INT, AT(batch), .min = 1, .max = 10000, .unit = "entries", .dflt = "10000"},
	{"history", "socket", HW_CONF_PATH, AT(socket), .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = "/run/heartwheel/history.sock"},
	{"history", "socket_group", HW_CONF_WORD, AT(socket_group), .max = 32, .dflt = ""},
	{"history", "pid_file", HW_CONF_PATH, AT(pid_file), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "/run/heartwheel/heartwheel-history.pid"},
	{"history", "user", HW_CONF_WORD, AT(user), .max = 32, .dflt = "heartwheel"},
	{"history", "log", HW_CONF_LOG, AT(log), .min = 1, .max = HW_CONF_TEXT_MAX, .dflt = "syslog"},
	{"history", "log_level", HW_CONF_ENUM, AT(log_level), .choices = hw_log_levels, .dflt = "info"},

	HW_CONF_STORE_ROWS(struct hw_history_settings, store),

	HW_CONF_REDIS_ROWS(struct hw_history_settings, redis),
};
/* clang-format on */

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))
_Static_assert(N_OPTIONS <= HW_CONF_OPTIONS_MAX, "struct hw_conf_origins has arrays of this size");

const struct hw_conf_table hw_history_table = {
	.options = options, .n_options = N_OPTIONS, .size = sizeof(struct hw_history_settings), .judge = judge};
