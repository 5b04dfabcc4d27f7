/* SPDX-License-Identifier: MIT */
/* monitor.conf is one file for several programs: what each reads of its own sections, of shared ones, and of those
 * of others. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "conf/table.h"
#include "conf_rig.h"

/* A small program beside heartwheeld, without named sections: it reads [mqtt], [store], [redis] and [tasks]. */
struct small {
	struct hw_conf_head head;
	char *root;
	int64_t window, wait_ms;
	int store;
	struct hw_conf_redis redis;
	struct hw_conf_mqtt mqtt;
};

static void small_judge(struct hw_conf_draft *d)
{
	const struct small *c = (const struct small *)d->conf;
	hw_conf_judge_mqtt(d, &c->mqtt);
	hw_conf_draft_require(d, c->store == HW_STORE_REDIS, "store", "type", "type", "the small program needs Redis");
}

/* clang-format off */
static const struct hw_conf_option small_options[] = {
	{"tasks", "root", HW_CONF_WORD, HW_CONF_AT(struct small, root), .min = 1, .max = 64, .dflt = "nodes"},
	{"tasks", "window", HW_CONF_INT, HW_CONF_AT(struct small, window), .min = 1, .max = 64, .unit = "messages", .dflt = "4", .live = true},
	{"tasks", "ack_wait", HW_CONF_DURATION, HW_CONF_AT(struct small, wait_ms), .min = 0, .max = HW_CONF_DAY, .dflt = "10s"},
	HW_CONF_MQTT_ROWS(struct small, mqtt),
	HW_CONF_STORE_ROWS(struct small, store),
	HW_CONF_REDIS_ROWS(struct small, redis),
};
/* clang-format on */

static const struct hw_conf_table small_table = {.options = small_options,
                                                 .n_options = sizeof(small_options) / sizeof(small_options[0]),
                                                 .size = sizeof(struct small),
                                                 .judge = small_judge};

#define ONE_FILE                                                                                                       \
	"[monitor]\nnode_id = n\n[mqtt]\nport = 7\nreaders = 3\n[redis]\nport = 8\n[tasks]\nroot = r\nwindow = 5\n"    \
	"[group a]\nheartbeat = a/{id}\n[group b c]\nheartbeat = b/{id}\n[history]\nkeep = 9d\n"

START_TEST(one_file_serves_both)
{
	struct small *s = rig_load(&small_table, ONE_FILE);
	struct hw_settings *c = load(ONE_FILE);
	ck_assert_str_eq(s->root, "r");
	ck_assert_int_eq(s->window, 5);
	ck_assert_int_eq(s->wait_ms, 10000);
	ck_assert_int_eq(s->mqtt.port, 7);
	ck_assert_int_eq(s->mqtt.readers, 3); /* of no use to it, and no mistake */
	ck_assert_int_eq(s->redis.port, 8);
	ck_assert_str_eq(s->redis.key_prefix, "device:");
	ck_assert_uint_eq(hw_conf_line(s, "tasks", "root"), 9);
	ck_assert_uint_eq(hw_conf_line(s, "redis", "port"), 7);
	ck_assert_uint_eq(hw_conf_line(s, "redis", "db"), 0);
	ck_assert_int_eq(c->mqtt.port, 7);
	ck_assert_int_eq(c->redis.port, 8);
	ck_assert_uint_eq(c->n_groups, 2);
	hw_conf_free(s);
	hw_conf_free(c);
}
END_TEST

/* Each program reports the mistakes in the sections that it reads, with their lines in the common file, and none in
 * other sections. */
START_TEST(each_judges_its_own)
{
	static const char text[] = "[monitor]\nnode_id = a/b\nwhat = 1\n[tasks]\nwindow = 99\nroots = x\n[mqtt]\n"
				   "tls_cert = /c\nqos = 7\n[group a]\ntimeout = soon\n[history]\nkeep = x\n";
	REFUSE_OF(&small_table, text, ":5: key 'window': '99' is out of range",
	          ":6: key 'roots': unknown in [tasks]: did you mean 'root'?", ":8: key 'tls_cert': needs tls_key",
	          ":8: key 'tls_cert': needs tls_ca", ":9: key 'qos': ");
	REFUSE(text, ":2: key 'node_id': ", ":3: key 'what': unknown in [monitor]", ":8: key 'tls_cert': needs tls_key",
	       ":8: key 'tls_cert': needs tls_ca", ":9: key 'qos': ", ":10: section 'group a': has no heartbeat",
	       ":11: key 'timeout': ");
	REFUSE_OF(&small_table, "[store]\ntype = memory\n", ":2: key 'type': the small program needs Redis");
}
END_TEST

/* A section that no program reads is an error in all of them, because its author believes that it has an effect. */
START_TEST(no_program_takes_an_unknown_section)
{
	static const char text[] = "[task]\nwindow = 1\n[historie]\n[bundle]\n[tasks x]\n";
	REFUSE_OF(&small_table, text, ":1: section 'task': unknown section: did you mean [tasks]?",
	          ":3: section 'historie': unknown section: did you mean [history]?",
	          ":4: section 'bundle': unknown section; there are [tasks] [mqtt] [store] [redis]",
	          ":5: section 'tasks x': unknown section: did you mean [tasks]?");
	REFUSE(text, ":1: section 'task': unknown section: did you mean [tasks]?",
	       ":3: section 'historie': unknown section: did you mean [history]?",
	       ":4: section 'bundle': ", ":5: section 'tasks x': ");
	REFUSE_OF(&small_table, "[groups]\n", ":1: section 'groups': unknown section: did you mean [group NAME]?");
	REFUSE_OF(&small_table, "[group]\n", ":1: section 'group': unknown section: did you mean [group NAME]?");
}
END_TEST

/* A line that is invalid in this format is invalid for each program. */
START_TEST(foreign_sections_are_of_the_same_form)
{
	REFUSE("[tasks]\nroot\n  window = 1\n[history\n", ":2: key 'root': not 'key = value'",
	       ":3: key 'window': the line is indented", ":4: section 'history': the closing ] is missing");
}
END_TEST

static void count(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	char *told = arg;
	ck_assert_int_eq(change, HW_CONF_CHANGED);
	strcat(strcat(strcat(told, key), live ? "" : "!"), " ");
}

START_TEST(a_reload_compares_its_own)
{
	struct small *a = rig_load(&small_table, ONE_FILE);
	struct small *b = rig_load(&small_table, "[tasks]\nwindow = 6\nroot = s\n[monitor]\nnode_id = m\n"
	                                         "[mqtt]\nport = 7\nreaders = 3\n[redis]\nport = 9\n");
	char told[256] = "";
	hw_conf_diff(a, b, count, told);
	ck_assert_str_eq(told, "tasks.root! tasks.window redis.port! ");
	ck_assert_int_eq(hw_conf_keep_restart_values(a, b), 0);
	ck_assert_str_eq(b->root, "r");
	ck_assert_int_eq(b->window, 6);
	ck_assert_int_eq(b->redis.port, 8);
	hw_conf_free(a);
	hw_conf_free(b);
}
END_TEST

static char *print(const void *conf)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	hw_conf_print(conf, f);
	hw_conf_print_foreign(conf, f);
	fclose(f);
	return text;
}

/* Printed is what this program reads; of the rest it is said that it is there. */
START_TEST(the_others_sections_are_named_where_the_values_in_force_are_printed)
{
	struct small *s = rig_load(&small_table, ONE_FILE);
	struct hw_settings *c = load(ONE_FILE), *again;
	char *of_small = print(s), *of_daemon = print(c);
	ck_assert_ptr_nonnull(strstr(of_small, "[tasks]\nroot = r\nwindow = 5\nack_wait = 10s\n[mqtt]\n"));
	ck_assert_ptr_nonnull(strstr(of_small, "# [monitor] in line 1 belongs to another program\n"));
	ck_assert_ptr_nonnull(strstr(of_small, "# [history] in line 15 belongs to another program\n"));
	ck_assert_ptr_null(strstr(of_small, "[notify]"));
	ck_assert_ptr_nonnull(strstr(of_daemon, "# [tasks] in line 8 belongs to another program\n"));
	ck_assert_ptr_null(strstr(of_daemon, "window"));
	again = load(of_daemon);
	ck_assert_uint_eq(again->n_groups, 2);
	free(of_small);
	free(of_daemon);
	hw_conf_free(s);
	hw_conf_free(c);
	hw_conf_free(again);
}
END_TEST

/* --- a program with two kinds of named sections ------------------------------------------------------------------- */

struct part {
	char *name;
	unsigned line;
	int64_t n;
	char **match;
	size_t n_match;
};

struct pair {
	struct hw_conf_head head;
	int64_t n;
	struct part *silences, *receivers;
	size_t n_silences, n_receivers;
};

static void pair_judge(struct hw_conf_draft *d)
{
	struct pair *c = (struct pair *)d->conf;
	for (size_t i = 0; i < c->n_silences; i++)
		hw_conf_draft_defaults(d, &d->table->named[0], &c->silences[i], d->named[0][i]);
	for (size_t i = 0; i < c->n_receivers; i++)
		hw_conf_draft_defaults(d, &d->table->named[1], &c->receivers[i], d->named[1][i]);
}

/* clang-format off */
#define PART_ROWS(section)                                                                                            \
	{section, "n", HW_CONF_INT, HW_CONF_AT(struct part, n), .min = 1, .max = 9, .unit = "things", .dflt = "3", .live = true}, \
	{section, "match", HW_CONF_TOPICS, HW_CONF_AT(struct part, match), .min = 1, .max = 60, .live = true, .count_offset = offsetof(struct part, n_match)}
static const struct hw_conf_option pair_options[] = {
	{"alert", "n", HW_CONF_INT, HW_CONF_AT(struct pair, n), .min = 1, .max = 9, .unit = "things", .dflt = "2"},
	PART_ROWS("silence"),
	PART_ROWS("receiver"),
};
/* clang-format on */

#define KIND(name, field)                                                                                              \
	{                                                                                                              \
		name, offsetof(struct pair, field), offsetof(struct pair, n_##field), sizeof(struct part),             \
			offsetof(struct part, line), 2, NULL                                                           \
	}
static const struct hw_conf_table pair_table = {.options = pair_options,
                                                .n_options = sizeof(pair_options) / sizeof(pair_options[0]),
                                                .size = sizeof(struct pair),
                                                .named = {KIND("silence", silences), KIND("receiver", receivers)},
                                                .judge = pair_judge};

#define PAIR "[receiver a]\nn = 4\nmatch = x\nmatch = y\n[silence a]\nmatch = z\n[alert]\nn = 5\n[silence b]\nn = 6\n"

START_TEST(two_kinds_of_named_sections)
{
	struct pair *p = rig_load(&pair_table, PAIR);
	ck_assert_uint_eq(p->n_silences, 2);
	ck_assert_uint_eq(p->n_receivers, 1);
	ck_assert_int_eq(p->n, 5);
	ck_assert_int_eq(p->silences[0].n, 3);
	ck_assert_str_eq(p->silences[0].match[0], "z");
	ck_assert_uint_eq(p->silences[0].line, 5);
	ck_assert_int_eq(p->silences[1].n, 6);
	ck_assert_int_eq(p->receivers[0].n, 4);
	ck_assert_uint_eq(p->receivers[0].n_match, 2);
	char *text = print(p);
	ck_assert_str_eq(text, "[alert]\nn = 5\n[silence a]\nn = 3\nmatch = z\n[silence b]\nn = 6\n"
	                       "[receiver a]\nn = 4\nmatch = x\nmatch = y\n");
	free(text);
	REFUSE_OF(&pair_table,
	          "[silence a]\n[receiver a]\n[silence a]\nn = x\n[silence c]\n[silence]\n[receiver b]\nm = 1\n",
	          ":3: section 'silence a': is already in line 1", ":4: key 'n': 'x' is not a whole number",
	          ":5: section 'silence c': there are already 2 silences",
	          ":6: section 'silence': a silence needs a name", ":8: key 'm': unknown in [receiver NAME]");
	hw_conf_free(p);
}
END_TEST

static void count_all(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	char *told = arg;
	(void)live;
	strcat(strcat(strcat(told, change == HW_CONF_ADDED ? "+" : change == HW_CONF_REMOVED ? "-" : ""), key), " ");
}

START_TEST(a_reload_compares_each_kind)
{
	struct pair *a = rig_load(&pair_table, PAIR);
	struct pair *b = rig_load(&pair_table, "[silence b]\n[receiver b]\n[receiver a]\nmatch = x\nmatch = y\n");
	char told[256] = "";
	hw_conf_diff(a, b, count_all, told);
	ck_assert_str_eq(told, "alert.n -silence a silence b.n +receiver b receiver a.n ");
	hw_conf_free(a);
	hw_conf_free(b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf_programs");
	TCase *t = tcase_create("all");
	tcase_add_test(t, one_file_serves_both);
	tcase_add_test(t, each_judges_its_own);
	tcase_add_test(t, no_program_takes_an_unknown_section);
	tcase_add_test(t, foreign_sections_are_of_the_same_form);
	tcase_add_test(t, a_reload_compares_its_own);
	tcase_add_test(t, the_others_sections_are_named_where_the_values_in_force_are_printed);
	tcase_add_test(t, two_kinds_of_named_sections);
	tcase_add_test(t, a_reload_compares_each_kind);
	suite_add_tcase(s, t);
	return suite_run(s);
}
