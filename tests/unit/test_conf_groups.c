/* SPDX-License-Identifier: MIT */
/* monitor.conf: groups, their topics, ids and presets. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../suite.h"
#include "conf_rig.h"
#include "heartwheel/group.h"

static void expect_list(char *const *list, size_t n, const char *const *expected)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(expected[i] && strcmp(list[i], expected[i]) == 0, "%s", list[i]);
	ck_assert_ptr_null(expected[n]);
}

#define EXPECT_LIST(list, n, ...) expect_list(list, n, (const char *const[]){__VA_ARGS__, NULL})

/* What a heartbeat's template must be depends on a key that may stand below it. */
#define GROUP "[group a]\nheartbeat = a/{id}\n"

START_TEST(batches_and_homie)
{
	struct hw_settings *c =
		load("[group a]\nheartbeat = gw/+/heard\nheartbeat = all\nbatch = yes\nstatus = a/{id}\n"
	             "[group b]\npayload = homie\nheartbeat = homie/{id}/$state\nstatus = b/{id}/state\n");
	ck_assert(c->groups[0].batch);
	ck_assert_uint_eq(c->groups[0].n_heartbeat, 2);
	ck_assert_int_eq(c->groups[0].payload, HW_FORMAT_JSON);
	ck_assert_int_eq(c->groups[1].payload, HW_FORMAT_HOMIE);
	ck_assert(!c->groups[1].batch);
	hw_conf_free(c);
	REFUSE("[group a]\nheartbeat = a/{id}\nheartbeat = b\nheartbeat = c/{id}\nbatch = yes\n",
	       ":2: key 'heartbeat': must not have {id}", ":4: key 'heartbeat': must not have {id}");
	REFUSE("[group a]\nbatch = no\nheartbeat = a/{id}\nheartbeat = b\n", ":4: key 'heartbeat': needs exactly one");
	REFUSE("[group default]\nbatch = yes\n", ":1: section 'group default': has no heartbeat");
	REFUSE("[group a]\nheartbeat = a\nbatch = maybe\n", ":3: key 'batch': 'maybe' is not yes or no");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\nstatus = a\n", ":4: key 'status': needs exactly one");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\npayload = homie\n", ":3: key 'batch': a batch is JSON");
	REFUSE("[group a]\nheartbeat = homie/{id}/$state\npayload = homie\nstatus = homie/{id}/$state\n",
	       ":4: key 'status': $state is the device's own");
	REFUSE(GROUP "payload = xml\n", ":3: key 'payload': 'xml' is unknown: give json, homie or plain");
}
END_TEST

START_TEST(goodbyes_and_what_is_ignored)
{
	struct hw_settings *c =
		load("[group a]\nheartbeat = a/{id}\ngoodbye = a/{id}/lwt off\ngoodbye = a/{id}/lwt gone\n"
	             "ignore = a/+/set\nignore = a/{id}/get ; never\n[group b]\nheartbeat = b/{id}\n");
	ck_assert_uint_eq(c->groups[0].n_goodbye, 2);
	ck_assert_str_eq(c->groups[0].goodbye[0], "a/{id}/lwt off");
	ck_assert_str_eq(c->groups[0].goodbye[1], "a/{id}/lwt gone");
	ck_assert_uint_eq(c->groups[0].n_ignore, 2);
	ck_assert_str_eq(c->groups[0].ignore[1], "a/{id}/get");
	ck_assert_uint_eq(c->groups[1].n_goodbye, 0);
	ck_assert_uint_eq(c->groups[1].n_ignore, 0);
	hw_conf_free(c);
	REFUSE("[group a]\nheartbeat = a/{id}\ngoodbye = a/{id}\ngoodbye = a#/{id}\nignore = b#\ngoodbye = a/{id}\n"
	       "goodbye =\nignore =\nignore = x\nignore = c#\n",
	       ":4: key 'goodbye': # must be", ":5: key 'ignore': # must be", ":6: key 'goodbye': the same value",
	       ":7: key 'goodbye': is empty", ":8: key 'ignore': is empty", ":10: key 'ignore': # must be");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\nignore = a/x\ngoodbye = a/{id}\n",
	       ":5: key 'goodbye': the goodbyes of a batch are in its elements");
}
END_TEST

/* A list is added to, behind the file's own lines and each line once; any other key is the file's. */
START_TEST(presets_and_fields)
{
	struct hw_settings *c =
		load("[group a]\ntimeout = 7s\nheartbeat = x/{id}\nheartbeat = homie/{id}/+/+\npreset = homie\n"
	             "ignore = y\n[group default]\npreset = frigate\n[group c]\npreset =\nheartbeat = c/{id}\n"
	             "field = rssi a.b\nfield = ip c\npayload = plain\n");
	const struct hw_settings_group *g = c->groups;
	ck_assert_int_eq(g[0].preset, HW_PRESET_HOMIE);
	EXPECT_LIST(g[0].heartbeat, g[0].n_heartbeat, "x/{id}", "homie/{id}/+/+", "homie/{id}/$state");
	EXPECT_LIST(g[0].ignore, g[0].n_ignore, "y", "homie/5/#", "homie/$broadcast/#", "homie/{id}/$implementation/#");
	ck_assert_int_eq(g[0].timeout_ms, 7000);
	ck_assert_int_eq(g[0].payload, HW_FORMAT_HOMIE);
	ck_assert_str_eq(g[1].id, "frigate");
	ck_assert_str_eq(g[1].status, "nodes/frigate/status");
	ck_assert_str_eq(g[1].heartbeat[0], "frigate/stats"); /* and not those of a group named default */
	ck_assert_int_eq(g[2].preset, HW_PRESET_NONE);
	EXPECT_LIST(g[2].field, g[2].n_field, "rssi a.b", "ip c");
	ck_assert_int_eq(g[2].payload, HW_FORMAT_PLAIN);
	hw_conf_free(c);
	REFUSE("[group a]\npreset = tasmotta\n[group b]\nbatch = yes\nheartbeat = wrong\npreset = homie\n"
	       "[group c]\npreset = homie\nfield = ip x\ntimeout = 1w\n[group d]\nfield = wrong\nheartbeat = d/{id}\n"
	       "[group e]\nid = {x}\npreset = homie5\n[group f]\npreset = frigate\nid = {id}\ngoodbye = f/{x}\n",
	       ":1: section 'group a': has no heartbeat",
	       ":2: key 'preset': 'tasmotta' is unknown: give tasmota, esphome,", "~, homie or homie5",
	       ":4: key 'batch': no preset has batches", ":9: key 'field': payload = homie reads",
	       ":10: key 'timeout': '1w'", ":12: key 'field': must begin with battery,",
	       ":16: key 'preset': the preset's filters lack the", ":18: key 'preset': the preset's filters lack the",
	       ":20: key 'goodbye': {x} is not used by id");
}
END_TEST

START_TEST(names_and_ids)
{
	struct hw_settings *c =
		load("[group a]\nheartbeat = s/{site}/{id}/hb\ngoodbye = g/{id}/{site} {x}\nid = {site}/{id}\n"
	             "ignore = s/+/{id}/set\nignore = #\n[group b]\nheartbeat = b/{id}\n"
	             "[group c]\nheartbeat = c\nid = c\nstatus = told/c\n"
	             "[group d]\nheartbeat = z/{id...}\ngoodbye = z/{id...}/gone\n"
	             "[group e]\nheartbeat = z/{site}/{id}\nid = {site}\nstatus =\n");
	ck_assert_str_eq(c->groups[0].id, "{site}/{id}");
	ck_assert_str_eq(c->groups[0].status, "nodes/{site}/{id}/status");
	ck_assert_str_eq(c->groups[1].id, "{id}");
	ck_assert_str_eq(c->groups[1].status, "nodes/{id}/status");
	ck_assert_str_eq(c->groups[2].status, "told/c");
	ck_assert_str_eq(c->groups[3].id, "{id}");
	ck_assert_str_eq(c->groups[4].status, "");
	ck_assert_uint_eq(c->groups[0].line, 1);
	ck_assert_uint_eq(c->groups[1].line, 7);
	hw_conf_free(c);
	REFUSE("[group a]\nheartbeat = s/{floor}/{id}\ngoodbye = s/{site}\nid = {site}/{id}\nignore = {q}\nstatus = "
	       "s/{id}\n"
	       "[group b]\nheartbeat = b/{id...}\ngoodbye = b/{id}/{a...}\nstatus = {x}/{id}\n"
	       "[group c]\nheartbeat = x/{place}/{id}\nid = {place}/{id}+\n",
	       ":2: key 'heartbeat': {floor} is not used by id",
	       ":3: key 'goodbye': lacks {id}, which id or parent uses", ":5: key 'ignore': {q} is not used by id",
	       ":6: key 'status': lacks {site}", ":9: key 'goodbye': {a} is not used by id",
	       ":9: key 'goodbye': a group may have one name with ...}", "~{id...} is above",
	       ":10: key 'status': {x} is not part of the id", ":13: key 'id': {id} must be a whole level");
	REFUSE("[group a]\nheartbeat = a\nbatch = yes\nid = {id}\n", ":4: key 'id': the device ids of a");
	REFUSE("[group a]\nheartbeat = a/{id}\nid =\n", ":3: key 'id': is empty");
}
END_TEST

START_TEST(keyspace)
{
	struct hw_settings *c = load("");
	ck_assert(!c->keyspace_enabled && !c->keyspace_configure);
	ck_assert_str_eq(c->keyspace_group, "default");
	hw_conf_free(c);
	c = load("[keyspace]\nenabled = yes\nconfigure = yes\ngroup = gw\n[group gw]\nheartbeat = a/{id}\n");
	ck_assert(c->keyspace_enabled && c->keyspace_configure);
	ck_assert_str_eq(c->keyspace_group, "gw");
	hw_conf_free(c);
	hw_conf_free(load("[keyspace]\nenabled = yes\n"));
	hw_conf_free(load("[keyspace]\ngroup = gone\n")); /* of no consequence */
	REFUSE("[keyspace]\ngroup = gone\nenabled = yes\n", ":2: key 'group': there is no [group gone] in this file");
	REFUSE("[keyspace]\nenabled = yes\n[group gw]\nheartbeat = a/{id}\n",
	       ":2: key 'enabled': there is no [group default] in this file");
	REFUSE("[store]\ntype = memory\n[keyspace]\nenabled = yes\n", ":4: key 'enabled': needs [store] type = redis");
}
END_TEST

START_TEST(group_names_are_told_apart_as_written)
{
	struct hw_settings *c = load("[group 123456789 123456789 123456789 123456789 123456789 123456789 1234]\n"
	                             "heartbeat = a/{id}\n"
	                             "[group 123456789 123456789 123456789 123456789 123456789 123456789 1235 ] ; c\n"
	                             "heartbeat = b/{id}\n[group\tc]\nheartbeat = c/{id}\n");
	ck_assert_uint_eq(c->n_groups, 3);
	ck_assert_uint_eq(strlen(c->groups[0].name), 64);
	ck_assert_str_eq(c->groups[1].name + 60, "1235");
	ck_assert_str_eq(c->groups[2].name, "c");
	hw_conf_free(c);
}
END_TEST

START_TEST(templates_are_judged)
{
	REFUSE("[group a]\nheartbeat = a/b\nheartbeat = a/{id}\nstatus = +/{id}\n[group b]\nheartbeat = x\nheartbeat "
	       "=\n",
	       ":2: key 'heartbeat': needs exactly one {id} level", ":4: key 'status': must not have wildcards",
	       ":6: key 'heartbeat': needs", ":7: key 'heartbeat': is empty");
}
END_TEST

START_TEST(the_number_of_groups_is_bounded)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	for (int i = 0; i < 4096 + 1; i++)
		fprintf(f, "[group %d]\nheartbeat = %d/{id}\n", i, i);
	fclose(f);
	REFUSE(text, ":8193: section 'group 4096': there are already 4096 groups");
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf_groups");
	TCase *t = tcase_create("all");
	tcase_add_test(t, batches_and_homie);
	tcase_add_test(t, goodbyes_and_what_is_ignored);
	tcase_add_test(t, presets_and_fields);
	tcase_add_test(t, names_and_ids);
	tcase_add_test(t, keyspace);
	tcase_add_test(t, group_names_are_told_apart_as_written);
	tcase_add_test(t, templates_are_judged);
	tcase_add_test(t, the_number_of_groups_is_bounded);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return suite_run(s);
}
