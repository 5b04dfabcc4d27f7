/* SPDX-License-Identifier: MIT */
/* What the core keeps of a device's topic for the labels of its group, and the values of these labels. */
#include "../random.h"
#include "../suite.h"
#include "heartwheel/label.h"
#include "world.h"

#define DEVICES 12
#define SITES   5

static struct world *w;
static struct hw_group_spec groups[2];

static void setup(void)
{
	static const char *const beats[] = {"plant/{site}/{area}/{id}"}, *const plain[] = {"plain/{id}"};
	static const char *const labels[] = {"site {site}", "area {area}", "tag {id}-{site}", "kind valve"};
	struct hw_monitor_conf conf = world_conf();
	groups[0] = world_group("valves", 30000);
	groups[0].heartbeat = beats;
	groups[0].n_heartbeat = 1;
	groups[0].status = NULL;
	groups[0].labels = labels;
	groups[0].n_labels = 4;
	groups[1] = world_group("plain", 30000);
	groups[1].heartbeat = plain;
	groups[1].n_heartbeat = 1;
	groups[1].status = NULL;
	w = world_new(&conf, groups, 2);
	world_connect(w);
}

static void teardown(void)
{
	world_free(w);
}

static void beat(const char *site, const char *area, const char *id)
{
	char topic[1024];
	snprintf(topic, sizeof(topic), "plant/%s/%s/%s", site, area, id);
	world_say(w, topic, "", false);
}

/* The labels of a device as "name=value name=value". */
static const char *labels_of(const char *id)
{
	static char text[1024];
	char value[HW_LABEL_VALUE_MAX + 1];
	const struct hw_device *d = world_device(w, id);
	const struct hw_group *g = hw_monitor_group_of(w->m, d);
	size_t at = 0;
	text[0] = '\0';
	for (unsigned k = 0; k < g->n_labels; k++)
		if (hw_group_label_value(g, k, hw_device_id(d), hw_monitor_captured(w->m, d), value) > 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s=%s", at ? " " : "",
			                       g->labels[k].name, value);
	return text;
}

static size_t captured(const char *id)
{
	return hw_monitor_captured(w->m, world_device(w, id)).len;
}

START_TEST(test_long_levels)
{
	char site[256], area[256];
	memset(site, 's', sizeof(site));
	memset(area, 'a', sizeof(area));
	site[128] = area[116] = '\0';
	beat(site, area, "v"); /* 133 bytes, a newline and 121 bytes */
	ck_assert_uint_eq(captured("v"), 255);
	ck_assert_ptr_nonnull(strstr(labels_of("v"), "area="));
	ck_assert_ptr_nonnull(strstr(labels_of("v"), "site="));
	ck_assert_ptr_null(strstr(labels_of("v"), "tag=")); /* of 130 bytes */
	site[128] = 's';
	site[129] = '\0';
	beat(site, "x", "v");
	ck_assert_str_eq(labels_of("v"), "area=x kind=valve");
	beat(site, area, "v"); /* one byte too many: the level that comes last is left out */
	ck_assert_uint_eq(captured("v"), 5 + 129);
	ck_assert_str_eq(labels_of("v"), "kind=valve");
}
END_TEST

START_TEST(test_hostile_levels)
{
	beat("\xff", "north", "v");
	ck_assert_str_eq(labels_of("v"), "area=north kind=valve");
	beat("a\x01", "north", "v");
	ck_assert_str_eq(labels_of("v"), "area=north kind=valve");
	beat("", "", "v");
	ck_assert_str_eq(labels_of("v"), "kind=valve");
	beat("x\narea=y", "z", "v");
	ck_assert_str_eq(labels_of("v"), "area=z kind=valve");
}
END_TEST

/* What another program has written to the store. */
START_TEST(test_hostile_store)
{
	char text[600];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	const char *const stored[] = {"area2=b\narea\nsite=\xff\narea=a\n=b\n\nkind=c\nsite", text, ""};
	struct hw_stored s = {.id = "v", .id_len = 1, .group = "valves", .state = HW_STATE_OFFLINE, .seq = 5};
	for (unsigned k = 0; k < 3; k++) {
		teardown();
		setup();
		s.captures = stored[k];
		ck_assert_int_eq(hw_monitor_load(w->m, w->now, &s), 0);
		ck_assert_str_eq(labels_of("v"), k == 0 ? "area=a kind=valve" : "kind=valve");
	}
}
END_TEST

static void check(const int at[DEVICES])
{
	char id[16], expected[64];
	for (int k = 0; k < DEVICES; k++) {
		snprintf(id, sizeof(id), "v%d", k);
		if (!world_device(w, id))
			ck_assert_int_eq(at[k], -1);
		else if (at[k] < 0)
			ck_assert_uint_eq(captured(id), 0);
		else
			snprintf(expected, sizeof(expected), "site=s%d area=a tag=v%d-s%d kind=valve", at[k], k, at[k]);
		if (at[k] >= 0)
			ck_assert_str_eq(labels_of(id), expected);
	}
}

/* Devices share texts, and a text is freed with its last device. */
START_TEST(test_shared_texts)
{
	int at[DEVICES];
	char id[8], site[8];
	const struct hw_registry *r = hw_monitor_registry(w->m);
	random_begin(random_seed_of_now());
	memset(at, -1, sizeof(at));
	for (int n = 0; n < 4000; n++) {
		int k = (int)random_below(DEVICES), s = (int)random_below(SITES);
		snprintf(id, sizeof(id), "v%d", k);
		snprintf(site, sizeof(site), "s%d", s);
		if (random_below(4) == 0) {
			if (hw_monitor_forget(w->m, w->now, id, strlen(id)))
				hw_monitor_reap(w->m, hw_registry_ref(r, hw_registry_find(r, id, strlen(id))));
			world_say(w, "plain/p", "", false); /* gets the record of a forgotten device */
			ck_assert_uint_eq(captured("p"), 0);
			ck_assert(hw_monitor_forget(w->m, w->now, "p", 1));
			hw_monitor_reap(w->m, hw_registry_ref(r, hw_registry_find(r, "p", 1)));
			world_drain(w);
			at[k] = -1;
		} else {
			beat(site, "a", id);
			at[k] = s;
		}
		check(at);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("group labels");
	TCase *t = tcase_create("captures");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_long_levels);
	tcase_add_test(t, test_hostile_levels);
	tcase_add_test(t, test_hostile_store);
	tcase_add_test(t, test_shared_texts);
	suite_add_tcase(s, t);
	return suite_run(s);
}
