/* SPDX-License-Identifier: MIT */
/*
 * Random brokers: some of several conventions, with devices that are named in different ways, and what other programs
 * publish; some devices have retained wills, which some of them send while discover listens. What discover finds must
 * be a configuration that loads. A naive reading of its filters, in the order of the file, must take each topic of a
 * device as one of that device, and none of another program.
 *
 * The seeds are fixed; HW_SEED sets another one. The seed is printed.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "../unit/conf_rig.h"
#include "ctl/discover_find.h"
#include "ctl/discover_write.h"

#define ROUNDS   60
#define MOST     4000
#define TEXT_MAX 160
#define LEVELS   12

/* The truth: topics, and the device of each; -1: no device's. */
static struct {
	char topic[TEXT_MAX];
	int device;
	const char *const *will; /* the words of its last will, online and offline; NULL: it is no will's topic */
	char id[TEXT_MAX];       /* as it was taken; "" : not taken */
} all[MOST];
static size_t n_all;
static int n_devices;

static struct hw_topics *topics;

static void __attribute__((format(printf, 2, 3))) add(int device, const char *format, ...)
{
	va_list args;
	ck_assert_uint_lt(n_all, MOST);
	va_start(args, format);
	vsnprintf(all[n_all].topic, TEXT_MAX, format, args);
	va_end(args);
	all[n_all].device = device;
	all[n_all].will = NULL;
	all[n_all++].id[0] = '\0';
}

/* --- conventions -------------------------------------------------------------------------------------------------- */

/* The name of device i, in one of several ways. Each kind has letters of its own. */
static void name(char *to, unsigned way, unsigned kind, unsigned i)
{
	switch (way) {
	case 0:
		snprintf(to, 32, "%c-%04u", 'a' + kind, i);
		break;
	case 1:
		snprintf(to, 32, "%02X%04X%u", 0xa0 + kind, i * 7919 & 0xffff, i);
		break;
	case 2:
		snprintf(to, 32, "k%u_unit%u", kind, i);
		break;
	default:
		snprintf(to, 32, "%u%05u", kind + 1, i);
	}
}

/* Draws whether the devices of a convention have retained wills, and which. Returns their last level; NULL: none. */
static const char *draw_wills(const char *const **words)
{
	static const char *const pairs[][2] = {
		{"online", "offline"}, {"Online", "Offline"}, {"1", "0"}, {"true", "false"}, {"alive", "dead"}};
	static const char *const ends[] = {"lwt", "status", "availability"};
	*words = pairs[random_below(5)];
	return random_below(2) ? ends[random_below(3)] : NULL;
}

static void __attribute__((format(printf, 4, 5)))
add_will(int device, const char *end, const char *const *words, const char *format, ...)
{
	char base[TEXT_MAX - 20];
	va_list args;
	if (!end)
		return;
	va_start(args, format);
	vsnprintf(base, sizeof(base), format, args);
	va_end(args);
	add(device, "%s/%s", base, end);
	all[n_all - 1].will = words;
}

static void plain(unsigned kind, unsigned devices)
{
	static const char *const ends[] = {"/up", "/state", "/telemetry/power", "", "/v/1/heartbeat"};
	unsigned way = random_below(4), end = random_below(5), ends_n = 1 + random_below(3);
	const char *const *words, *will = draw_wills(&words);
	char id[32];
	for (unsigned i = 0; i < devices; i++) {
		name(id, way, kind, i);
		for (unsigned k = 0; k < ends_n; k++)
			add(n_devices, "root%u/things/%s%s%s", kind, id, ends[end], k == 0 ? "" : k == 1 ? "/x" : "/y");
		add_will(n_devices, will, words, "root%u/things/%s", kind, id);
		n_devices++;
	}
}

static void with_parts(unsigned kind, unsigned devices)
{
	unsigned way = random_below(4), parts = 2 + random_below(4);
	const char *const *words, *will = draw_wills(&words);
	char id[32];
	for (unsigned i = 0; i < devices; i++, n_devices++) {
		name(id, way, kind, i);
		for (unsigned k = 0; k < parts; k++)
			add(n_devices, "plant%u/%s/sensor/%u/value", kind, id, k);
		add_will(n_devices, will, words, "plant%u/%s", kind, id);
	}
}

static void at_sites(unsigned kind, unsigned devices)
{
	static const char *const words[] = {"north", "south", "west", "east"};
	unsigned sites = 2 + random_below(3), way = random_below(4), each = devices / sites < 5 ? 5 : devices / sites;
	bool numbers = random_below(2), unique = random_below(2);
	char id[32];
	for (unsigned s = 0; s < sites; s++)
		for (unsigned i = 0; i < each; i++, n_devices++) {
			name(id, way, kind, unique ? s * 1000 + i : i);
			if (numbers)
				add(n_devices, "sites%u/site-%u/lamps/%s/state", kind, s, id);
			else
				add(n_devices, "sites%u/%s/lamps/%s/state", kind, words[s], id);
		}
}

static void without_root(unsigned kind, unsigned devices)
{
	unsigned way = random_below(3);
	char id[32];
	for (unsigned i = 0; i < devices; i++, n_devices++) {
		name(id, way, kind, i);
		add(n_devices, "%s/report%u/data", id, kind);
	}
}

static void tasmota(unsigned kind, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++, n_devices++) {
		add(n_devices, "tele/tas%u_%u/STATE", kind, i);
		add(n_devices, "tele/tas%u_%u/SENSOR", kind, i);
	}
}

static void shelly2(unsigned kind, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++, n_devices++) {
		add(n_devices, "shelly%u-%06x/status/sys", kind, i);
		add(n_devices, "shelly%u-%06x/events/rpc", kind, i);
	}
}

static void others(void)
{
	add(-1, "app/users");
	add(-1, "app/orders/new");
	add(-1, "north/status/17");
	add(-1, "script/sensor/x/state");
	add(-1, "report/summary");
	add(-1, "weather");
	add(-1, "homeassistant/sensor/x/config");
	for (unsigned i = 0; i < 30; i++)
		add(-1, "cmnd/tas0_%u/POWER", i);
}

static const char *payload_of(const char *topic)
{
	if (strstr(topic, "/sensor/"))
		return "21.5";
	return strstr(topic, "app") ? "{\"orders\":[1]}" : "{\"v\":1,\"battery\":50}";
}

static void receive(size_t i, const char *payload, bool retained, uint32_t at_ms)
{
	const char *topic = all[i].topic;
	ck_assert_int_eq(hw_topics_add(topics, topic, strlen(topic), payload, strlen(payload), retained, at_ms), 0);
}

static void draw(void)
{
	static void (*const kinds[])(unsigned, unsigned) = {plain,        with_parts, at_sites,
	                                                    without_root, tasmota,    shelly2};
	unsigned n = 1 + random_below(6);
	bool used[6] = {false};
	n_all = 0;
	n_devices = 0;
	for (unsigned k = 0; k < n; k++) {
		unsigned which = random_below(6);
		if (which > 2 && used[which])
			continue;
		used[which] = true;
		kinds[which](k, 7 + random_below(40));
	}
	others();
	unsigned live = random_below(101);
	for (size_t i = 0; i < n_all; i++)
		if (all[i].will && random_below(10))
			receive(i, all[i].will[random_below(2)], true, 1);
	for (uint32_t round = 1; round <= 3; round++)
		for (size_t i = 0; i < n_all; i++) {
			uint32_t at_ms = round * 15000 + (uint32_t)(i * 3);
			if (!all[i].will)
				receive(i, payload_of(all[i].topic), false, at_ms);
			else if (random_below(100) < live && random_below(3) == 0)
				receive(i, all[i].will[random_below(2)], random_below(2), at_ms);
		}
}

/* --- the naive reading -------------------------------------------------------------------------------------------- */

static size_t split(char *text, char **levels)
{
	size_t n = 0;
	while (n < LEVELS && (levels[n] = strsep(&text, "/")))
		n++;
	return n;
}

/* Whether a filter takes the topic; then *id is the id by the form. */
static bool take(const char *filter, const char *form, const char *topic, char *id)
{
	char f[TEXT_MAX * 2], t[TEXT_MAX], o[TEXT_MAX], *fl[LEVELS], *tl[LEVELS], *ol[LEVELS];
	snprintf(f, sizeof(f), "%.*s", (int)strcspn(filter, " "), filter);
	snprintf(t, sizeof(t), "%s", topic);
	snprintf(o, sizeof(o), "%s", form);
	size_t nf = split(f, fl), nt = split(t, tl), no = split(o, ol), i;
	for (i = 0; i < nf; i++) {
		if (strcmp(fl[i], "#") == 0)
			break;
		if (i >= nt)
			return false;
		if (fl[i][0] != '{' && strcmp(fl[i], "+") != 0 && strcmp(fl[i], tl[i]) != 0)
			return false;
	}
	if (i == nf && nt != nf)
		return false;
	id[0] = '\0';
	for (size_t k = 0; k < no; k++)
		for (i = 0; i < nf && i < nt; i++)
			if (strcmp(fl[i], ol[k]) == 0) {
				strcat(id, k > 0 ? "/" : "");
				strcat(id, tl[i]);
			}
	return true;
}

static bool take_any(char *const *filters, size_t n, const char *form, const char *topic, char *id)
{
	for (size_t i = 0; i < n; i++)
		if (take(filters[i], form, topic, id))
			return true;
	return false;
}

/* Applies the groups in their order. */
static void read_topic(const struct hw_settings *c, size_t i)
{
	char id[TEXT_MAX] = "", full[TEXT_MAX * 2];
	for (size_t k = 0; k < c->n_groups; k++) {
		const struct hw_settings_group *g = &c->groups[k];
		if (take_any(g->ignore, g->n_ignore, g->id, all[i].topic, id))
			return;
		if (take_any(g->goodbye, g->n_goodbye, g->id, all[i].topic, id) ||
		    take_any(g->heartbeat, g->n_heartbeat, g->id, all[i].topic, id)) {
			snprintf(full, sizeof(full), "%s%s", g->id_prefix, id);
			snprintf(all[i].id, TEXT_MAX, "%.150s", full);
			return;
		}
	}
}

static void check(const char *text)
{
	static char ids[MOST][TEXT_MAX];
	struct hw_settings *c = rig_load(&hw_settings_table, text);
	int taken = 0;
	memset(ids, 0, sizeof(ids));
	for (size_t i = 0; i < n_all; i++) {
		read_topic(c, i);
		if (all[i].device < 0)
			ck_assert_msg(!*all[i].id, "'%s' is taken as '%s':\n%s", all[i].topic, all[i].id, text);
		if (all[i].device < 0 || !*all[i].id)
			continue;
		char *known = ids[all[i].device];
		taken += !*known;
		if (!*known)
			strcpy(known, all[i].id);
		ck_assert_msg(strcmp(known, all[i].id) == 0, "'%s' is '%s', and was '%s':\n%s", all[i].topic, all[i].id,
		              known, text);
	}
	ck_assert_msg(taken * 100 >= n_devices * 99, "%d of %d devices:\n%s", taken, n_devices, text);
	for (int a = 0; a < n_devices; a++)
		for (int b = a + 1; *ids[a] && b < n_devices; b++)
			ck_assert_msg(strcmp(ids[a], ids[b]) != 0, "two devices are '%s':\n%s", ids[a], text);
	hw_conf_free(c);
}

START_TEST(test_brokers)
{
	static const uint64_t seeds[] = {1, 2, 20261128, 77};
	random_begin(seeds[_i]);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct hw_found f;
		struct hw_listen how = {.conf = {.host = "broker", .port = 1883, .username = ""}};
		char *text = NULL;
		size_t len = 0;
		topics = hw_topics_new(random64());
		draw();
		ck_assert_int_eq(hw_discover_find(topics, random64(), &f), 0);
		FILE *out = open_memstream(&text, &len);
		hw_discover_write(out, &f, topics, &how, 0);
		fclose(out);
		check(text);
		hw_found_fini(&f);
		hw_topics_free(topics);
		free(text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("prop_discover");
	TCase *brokers = tcase_create("brokers");
	tcase_set_timeout(brokers, 60);
	tcase_add_loop_test(brokers, test_brokers, 0, 4);
	suite_add_tcase(suite, brokers);
	return suite_run(suite);
}
