/* SPDX-License-Identifier: MIT */
/* The table of news, receivers and their messages, silences, blindness, and the state after a start. */
#include <errno.h>
#include <stdlib.h>

#include "../suite.h"
#include "incident_rig.h"

static const char *open_id(const char *device)
{
	return rig_in(device);
}

static void run(int64_t ms)
{
	now_ms += ms;
	while (hw_incidents_step(engine, rig_now()))
		;
}

START_TEST(a_short_fault_is_not_sent)
{
	receivers[0].notify_after_ms = 30 * S;
	rig_start();
	rig_off("p");
	rig_wait(29 * S);
	rig_on("p");
	rig_wait(60 * S);
	ck_assert_str_eq(rig_sent(), "");
	rig_off("p");
	rig_wait(31 * S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
}
END_TEST

START_TEST(what_is_gathered_is_worked_out_at_the_end)
{
	receivers[0].interval_ms = 10 * S;
	rig_start();
	rig_off("p");
	rig_wait(5 * S);
	rig_off("q");
	rig_on("p");
	rig_wait(4900);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(200);
	ck_assert_str_eq(rig_sent(), "opened q; ");
}
END_TEST

/* The news beyond the limit of a message are in the next ones, each once. */
START_TEST(a_message_has_at_most_so_many_news)
{
	static const size_t news[] = {3, 3, 1};
	struct hw_incident_message m;
	char id[16];
	conf.mass = 0;
	conf.news_most = 3;
	rig_start();
	for (int k = 0; k < 7; k++) {
		snprintf(id, sizeof(id), "p%d", k);
		rig_off(id);
	}
	rig_step();
	run(S);
	for (unsigned k = 0; k < 3; k++) {
		ck_assert(hw_incidents_message(engine, rig_now(), &m));
		ck_assert_uint_eq(hw_incidents_message_news(&m), news[k]);
		ck_assert_uint_eq(m.number, k + 1);
		ck_assert(!hw_incidents_message(engine, rig_now(), &m)); /* before this one is done */
		rig_commit();
		hw_incidents_done(engine, rig_now(), "ops", k + 1);
	}
	rig_wait(MIN);
	ck_assert_str_eq(rig_sent(), "");
}
END_TEST

START_TEST(only_matching_incidents_are_sent)
{
	receivers[0].match = "id:c*";
	rig_start();
	rig_off("p");
	rig_off("ga");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "");
	rig_off_behind("c1", "ga", -1); /* one that matches is behind it */
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened ga; ");
	rig_on("c1");
	rig_on("ga");
	rig_on("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed ga; ");
}
END_TEST

START_TEST(kinds_decide_which_openings_are_sent)
{
	receivers[0].kinds = 1U << HW_INCIDENT_MASS;
	rig_start();
	rig_off("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "");
}
END_TEST

START_TEST(an_acknowledgement_is_sent_once)
{
	rig_start();
	rig_off("p");
	rig_wait(S);
	rig_sent();
	char id[HW_INCIDENT_ID + 1];
	strcpy(id, open_id("p"));
	ck_assert_int_eq(hw_incidents_acknowledge(engine, rig_now(), "nobody", true, NULL, NULL), -ENOENT);
	ck_assert_int_eq(hw_incidents_acknowledge(engine, rig_now(), id, true, "ann", "on my way"), 0);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "acknowledged p; ");
	struct hw_incident_view v;
	ck_assert(hw_incidents_find(engine, id, &v));
	ck_assert_str_eq(v.ack_by, "ann");
	ck_assert_int_eq(hw_incidents_acknowledge(engine, rig_now(), id, false, "ann", NULL), 0);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "");
	ck_assert_int_eq(hw_incidents_acknowledge(engine, rig_now(), id, true, "bob", NULL), 0);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "acknowledged p; ");
	rig_on("p");
	rig_step();
	ck_assert_int_ne(hw_incidents_acknowledge(engine, rig_now(), id, true, "bob", NULL), 0);
}
END_TEST

START_TEST(growth_is_sent_when_the_members_have_doubled)
{
	rig_start();
	rig_off("ga");
	rig_off_behind("c1", "ga", -1);
	rig_wait(S); /* two members are known */
	rig_sent();
	rig_off_behind("c2", "ga", -1);
	rig_wait(70 * S);
	ck_assert_str_eq(rig_sent(), "");
	rig_off_behind("c3", "ga", -1);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "grown ga; ");
	rig_off_behind("c4", "ga", -1);
	rig_off_behind("c5", "ga", -1);
	rig_off_behind("c6", "ga", -1);
	rig_off_behind("c7", "ga", -1);
	rig_wait(50 * S);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(11 * S);
	ck_assert_str_eq(rig_sent(), "grown ga; ");
}
END_TEST

START_TEST(a_reminder_comes_until_it_is_acknowledged)
{
	receivers[0].remind_ms = 10 * MIN;
	rig_start();
	rig_off("p");
	rig_wait(21 * MIN);
	ck_assert_str_eq(rig_sent(), "opened p; reminder p; reminder p; ");
	hw_incidents_acknowledge(engine, rig_now(), open_id("p"), true, "ann", NULL);
	rig_wait(30 * MIN);
	ck_assert_str_eq(rig_sent(), "acknowledged p; ");
}
END_TEST

static void silence(struct hw_silence_view *s)
{
	ck_assert_int_eq(hw_incidents_silence(engine, rig_now(), s), 0);
}

START_TEST(a_silenced_device_is_sent_when_the_silence_ends)
{
	rig_start();
	struct hw_silence_view s = {.match = "id:p", .until_ms = BEGIN_MS + now_ms + 5 * MIN};
	silence(&s);
	rig_off("p");
	ck_assert_int_eq(rig_class("p"), HW_CLASS_DOWN); /* the truth stays */
	rig_wait(4 * MIN);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(61 * S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
}
END_TEST

START_TEST(an_end_is_sent_although_it_is_silenced)
{
	rig_start();
	rig_off("p");
	rig_wait(S);
	struct hw_silence_view s = {.match = "id:p", .until_ms = BEGIN_MS + now_ms + 5 * MIN};
	silence(&s);
	rig_on("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened p; closed p; ");
	ck_assert_int_eq(hw_incidents_unsilence(engine, rig_now(), s.id), 0);
	ck_assert_int_eq(hw_incidents_unsilence(engine, rig_now(), s.id), -ENOENT);
}
END_TEST

START_TEST(a_silenced_parent_silences_what_is_behind_it)
{
	rig_start();
	rig_off("ga");
	rig_wait(S);
	rig_sent();
	struct hw_silence_view s = {.match = "id:ga", .until_ms = BEGIN_MS + now_ms + 60 * MIN};
	silence(&s);
	rig_off_behind("c", "ga", -1);
	rig_step();
	ck_assert(hw_incidents_is_silenced(engine, "c"));
	rig_off_behind("d", "ga\ngb", -1);
	rig_step();
	ck_assert(!hw_incidents_is_silenced(engine, "d")); /* the other parent is not */
}
END_TEST

START_TEST(a_silence_until_online_ends_a_minute_after_the_last_return)
{
	rig_start();
	struct hw_silence_view s = {.match = "id:p*", .until_online = true};
	silence(&s);
	rig_wait(10 * MIN);
	rig_off("p1");
	rig_off("p2");
	rig_wait(MIN);
	rig_on("p1");
	rig_wait(2 * MIN);
	rig_on("p2");
	rig_wait(58 * S);
	rig_off("p1");
	rig_wait(S);
	rig_on("p1");
	rig_wait(30 * S);
	ck_assert_int_eq(hw_incidents_unsilence(engine, rig_now(), "no such one"), -ENOENT);
	rig_wait(31 * S);
	ck_assert_int_eq(hw_incidents_unsilence(engine, rig_now(), s.id), -ENOENT);
	ck_assert_str_eq(rig_sent(), "");
}
END_TEST

START_TEST(a_wrong_silence_is_refused)
{
	rig_start();
	struct hw_silence_view no_end = {.match = "id:p"}, wrong = {.match = "name:p", .until_online = true};
	ck_assert_int_eq(hw_incidents_silence(engine, rig_now(), &no_end), -EINVAL);
	ck_assert_int_eq(hw_incidents_silence(engine, rig_now(), &wrong), -EINVAL);
	struct hw_silence_view late = {.match = "id:p", .until_ms = BEGIN_MS + INT64_C(400) * 24 * 60 * MIN};
	ck_assert_int_eq(hw_incidents_silence(engine, rig_now(), &late), -EINVAL);
}
END_TEST

START_TEST(a_silence_until_online_ends_after_30_days)
{
	rig_start();
	struct hw_silence_view s = {.match = "id:p", .until_online = true};
	silence(&s);
	run(INT64_C(29) * 24 * 60 * MIN);
	rig_off("p");
	ck_assert(hw_incidents_is_silenced(engine, "p"));
	run(INT64_C(24) * 60 * MIN);
	ck_assert(!hw_incidents_is_silenced(engine, "p"));
}
END_TEST

static int64_t planned_ms(const char *device)
{
	struct hw_change c;
	int64_t sum = 0;
	while (hw_incidents_change(engine, &c))
		if (c.kind == HW_CHANGE_PLANNED && strcmp(c.device, device) == 0)
			sum += c.to_ms - c.from_ms;
	return sum;
}

START_TEST(a_planned_outage_is_what_outage_and_silence_share)
{
	rig_start();
	rig_off("p");
	run(10 * S);
	struct hw_silence_view s = {.match = "id:p", .planned = true, .until_ms = BEGIN_MS + now_ms + 60 * S};
	silence(&s);
	run(S);
	ck_assert_int_eq(planned_ms("p"), 0);
	run(59 * S);
	ck_assert_int_eq(planned_ms("p"), 60 * S);
	rig_on("p");
	run(S);
	ck_assert_int_eq(planned_ms("p"), 0);
}
END_TEST

/* The outage is 10 s long. Its entries are read age_ms after the transitions. */
static void outage_of_10_s(const char *device, int64_t age_ms)
{
	struct hw_incident_entry entry = {.id = device, .group = "pumps", .fact = HW_FACT_OFFLINE, .wait_ms = -1};
	for (int i = 0; i < 2; i++) {
		run(10 * S);
		entry.time_ms = BEGIN_MS + now_ms - age_ms;
		entry.seq++;
		ck_assert_int_eq(hw_incidents_entry(engine, rig_now(), &entry), 0);
		entry.fact = HW_FACT_ONLINE;
	}
	run(S);
	ck_assert_int_eq(planned_ms(device), 10 * S);
}

START_TEST(a_planned_outage_ends_with_the_outage)
{
	rig_start();
	struct hw_silence_view s = {.match = "group:pumps", .planned = true, .until_ms = BEGIN_MS + now_ms + 600 * S};
	silence(&s);
	outage_of_10_s("read late", 2 * S);
	outage_of_10_s("written by a clock that is ahead", -1);
}
END_TEST

static bool opened_is(const char *kind, const char *group, const char *device)
{
	struct hw_change c;
	bool found = false;
	while (hw_incidents_change(engine, &c))
		if (c.kind == HW_CHANGE_EVENT && c.incident_kind)
			found = strcmp(c.what, "opened") == 0 && strcmp(c.incident_kind, kind) == 0 && c.group &&
			        strcmp(c.group, group) == 0 && c.device && strcmp(c.device, device) == 0 && !c.by;
	return found;
}

START_TEST(an_opening_names_kind_group_and_device)
{
	rig_start();
	rig_off("p");
	run(S);
	ck_assert(opened_is("device", "pumps", "p"));
}
END_TEST

static void utc(int64_t wall_ms, bool is_utc, struct tm *out)
{
	(void)is_utc;
	hw_window_libc(wall_ms, true, out);
}

START_TEST(a_section_silences_in_its_windows)
{
	struct tm reads;
	utc(BEGIN_MS + 10 * MIN, true, &reads);
	unsigned from = (unsigned)(reads.tm_hour * 60 + reads.tm_min);
	struct hw_window window = {.days = 0x7f, .from = (uint16_t)from, .to = (uint16_t)(from + 10)};
	struct hw_silence_conf section = {.name = "wash", .match = "group:pumps", .windows = &window, .n_windows = 1};
	conf.clock = utc;
	conf.silences = &section;
	conf.n_silences = 1;
	rig_start();
	rig_wait(11 * MIN);
	rig_off("p");
	rig_wait(7 * MIN);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(3 * MIN);
	ck_assert_str_eq(rig_sent(), "opened p; ");
}
END_TEST

START_TEST(a_failing_receiver_gets_what_is_true_once)
{
	struct hw_incident_message m;
	rig_start();
	rig_off("p");
	run(S);
	run(S);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert_uint_eq(m.number, 1);
	rig_commit();
	for (int k = 0; k < 10; k++) { /* message 1 is being sent all the time */
		rig_off("q");
		run(S);
		rig_on("q");
		run(S);
		ck_assert(!hw_incidents_message(engine, rig_now(), &m));
	}
	rig_on("p");
	run(S);
	rig_commit();
	hw_incidents_done(engine, rig_now(), "ops", 1);
	run(S);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert_uint_eq(m.n, 1); /* q is flapping, but online */
	ck_assert_int_eq(m.news[0].what, HW_NEWS_CLOSED);
	ck_assert_str_eq(m.news[0].incident.device, "p");
}
END_TEST

START_TEST(an_each_receiver_gets_a_message_an_incident)
{
	struct hw_incident_message m;
	receivers[0].each = true;
	receivers[0].parallel = 2;
	rig_start();
	rig_off("p");
	rig_off("q");
	rig_off("r");
	run(0);
	run(S);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert_uint_eq(m.n, 1);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert(!hw_incidents_message(engine, rig_now(), &m));
	rig_on("p");
	rig_on("q");
	rig_on("r");
	run(S);
	hw_incidents_done(engine, rig_now(), "ops", 1);
	ck_assert(!hw_incidents_message(engine, rig_now(), &m) || m.news[0].what == HW_NEWS_CLOSED);
}
END_TEST

START_TEST(a_message_has_a_hundred_news_and_a_count)
{
	struct hw_incident_message m;
	char id[16];
	conf.mass = 0;
	rig_start();
	for (unsigned k = 0; k < 130; k++) {
		snprintf(id, sizeof(id), "p%u", k);
		rig_off(id);
	}
	run(0);
	run(S);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert_uint_eq(m.n, HW_INCIDENT_NEWS);
	ck_assert_uint_eq(m.more[HW_NEWS_OPENED], 30);
	hw_incidents_done(engine, rig_now(), "ops", m.number);
	run(S);
	ck_assert(!hw_incidents_message(engine, rig_now(), &m));
}
END_TEST

START_TEST(nothing_is_sent_while_a_stream_is_behind)
{
	conf.blind_after_ms = 2 * MIN;
	rig_start();
	hw_incidents_behind(engine, true);
	rig_off("p");
	rig_wait(10 * S);
	ck_assert_str_eq(rig_sent(), "");
	rig_wait(3 * MIN); /* no mark moves */
	ck_assert_str_eq(rig_sent(), "opened blind; ");
	hw_incidents_behind(engine, false);
	hw_incidents_sight_renewed(engine, rig_now());
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed blind; opened p; ");
}
END_TEST

START_TEST(deafness_and_redis_are_blindness)
{
	conf.blind_after_ms = 2 * MIN;
	rig_start();
	hw_incidents_group(engine, rig_now(), "pumps", 1, 0, BEGIN_MS + now_ms);
	hw_incidents_redis(engine, rig_now(), false);
	for (int k = 0; k < 3; k++) {
		hw_incidents_sight_renewed(engine, rig_now());
		rig_wait(MIN);
	}
	ck_assert_str_eq(rig_sent(), "opened blind; opened blind; ");
	hw_incidents_group(engine, rig_now(), "pumps", 1, 0, 0);
	hw_incidents_redis(engine, rig_now(), true);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed blind; closed blind; ");
}
END_TEST

START_TEST(a_task_is_a_notice)
{
	rig_start();
	hw_incidents_task(engine, rig_now(), "p", "pumps", "task reboot of p has expired");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
	rig_wait(MIN);
	ck_assert_uint_eq(hw_incidents_count(engine).incidents, 0);
}
END_TEST

START_TEST(a_new_receiver_gets_later_incidents_only)
{
	rig_start();
	rig_off("p");
	rig_wait(S);
	receivers[0].name = "others";
	receivers[1].name = "ops";
	receivers[1].kinds = 0x1f;
	conf.n_receivers = 2;
	rig_sent();
	receivers[0].name = "later";
	receivers[0].interval_ms = 100;
	ck_assert_int_eq(hw_incidents_configure(engine, rig_now(), &conf), 0);
	rig_off("q");
	struct hw_incident_message m;
	run(0);
	run(S);
	unsigned later = 0, news = 0;
	while (hw_incidents_message(engine, rig_now(), &m)) {
		news += (unsigned)m.n;
		if (strcmp(m.name, "later") != 0)
			continue;
		later++;
		ck_assert_uint_eq(m.n, 1);
		ck_assert_str_eq(m.news[0].incident.device, "q");
	}
	ck_assert_uint_eq(later, 1);
	ck_assert_uint_eq(news, 2); /* and ops, which moved in the file, was sent p before */
}
END_TEST

/* The first start, while a device for each letter of `ids` is offline or unseen. */
static void first_start(const char *ids, enum hw_incident_fact fact)
{
	engine = hw_incidents_new(&conf, rig_now());
	for (seq = 0; ids[seq]; seq++) {
		struct hw_incident_entry entry = {
			.id = (char[]){ids[seq], '\0'}, .group = "pumps", .fact = fact, .wait_ms = -1, .seq = seq + 1};
		hw_incidents_load_device(engine, &entry);
	}
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), true), 0);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "");
}

START_TEST(the_first_start_lists_and_sends_nothing)
{
	first_start("p", HW_FACT_OFFLINE);
	ck_assert_int_eq(rig_class("p"), HW_CLASS_DOWN);
	rig_on("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "");
	rig_off("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
}
END_TEST

START_TEST(a_device_that_was_unseen_at_the_first_start_is_sent_when_it_becomes_offline)
{
	first_start("p", HW_FACT_UNSEEN);
	rig_off("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened p; ");
	rig_on("p");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "closed p; ");
}
END_TEST

/* The incident of the first start takes in a device that became unseen later. */
START_TEST(a_later_device_in_an_incident_of_the_first_start_is_sent)
{
	first_start("p", HW_FACT_UNSEEN);
	rig_entry("q", "pumps", HW_FACT_UNSEEN, NULL, -1);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened unseen; ");
}
END_TEST

START_TEST(a_device_of_the_first_start_that_is_forgotten_and_becomes_unseen_is_sent)
{
	first_start("p", HW_FACT_OFFLINE);
	rig_entry("p", "pumps", HW_FACT_FORGOTTEN, NULL, -1);
	rig_entry("p", "pumps", HW_FACT_UNSEEN, NULL, -1);
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened unseen; ");
}
END_TEST

/* After the end of the mass incident was sent, the devices that are still offline would otherwise count as online. */
START_TEST(devices_of_the_first_start_are_sent_when_the_sent_mass_incident_that_had_them_is_split)
{
	conf.mass = 2;
	first_start("abcdefghijk", HW_FACT_OFFLINE);
	rig_off("z");
	rig_wait(S);
	ck_assert_str_eq(rig_sent(), "opened mass; ");
	for (char id[] = "b"; id[0] <= 'k'; id[0]++)
		rig_on(id);
	rig_on("z");
	rig_wait(6 * MIN);
	ck_assert_str_eq(rig_sent(), "closed mass; opened a; ");
}
END_TEST

/* Starts with the stored incident of an earlier first start, which has device p as a member since its entry
 * `joined_seq`. */
static void start_listed(enum hw_incident_kind kind, const struct hw_incident_entry *p, uint64_t joined_seq,
                         const char *gateway)
{
	struct hw_incident_view v = {.id = "000000000aaa",
	                             .kind = kind,
	                             .group = "pumps",
	                             .device = gateway,
	                             .listed = true,
	                             .since_ms = BEGIN_MS - 2 * MIN,
	                             .opened_ms = BEGIN_MS - MIN};
	struct hw_incident_entry g = {
		.id = "g", .group = "gates", .time_ms = BEGIN_MS - 2 * MIN, .fact = HW_FACT_OFFLINE, .wait_ms = -1};
	engine = hw_incidents_new(&conf, rig_now());
	seq = 2;
	hw_incidents_load(engine, &v);
	hw_incidents_load_device(engine, p);
	hw_incidents_load_receiver(engine, "ops", 17, BEGIN_MS - 2 * MIN);
	if (p->parents) {
		hw_incidents_load_device(engine, &g);
		hw_incidents_load_member(engine, v.id, "g", HW_CLASS_DOWN, BEGIN_MS - MIN, 0);
	}
	hw_incidents_load_member(engine, v.id, "p", p->parents ? HW_CLASS_UNREACHABLE : HW_CLASS_DOWN, BEGIN_MS - MIN,
	                         joined_seq);
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
	rig_wait(S);
}

START_TEST(after_a_restart_only_outages_since_the_first_start_are_sent)
{
	struct hw_incident_entry p = {
		.id = "p", .group = "pumps", .fact = HW_FACT_OFFLINE, .wait_ms = -1, .seq = 2, .timeout_ms = 30 * S};
	const struct {
		enum hw_incident_kind kind;
		int64_t time_ms;
		uint64_t joined_seq;
		const char *sent;
	} cases[] = {
		{HW_INCIDENT_DEVICE, BEGIN_MS - 2 * MIN, 2, ""},
		/* While no instance ran, it returned, and stopped again. */
		{HW_INCIDENT_DEVICE, BEGIN_MS - S, 1, "opened p; "},
		{HW_INCIDENT_MASS, BEGIN_MS - 2 * MIN, 2, ""},
		{HW_INCIDENT_MASS, BEGIN_MS - S, 1, "opened mass; "},
		/* It was unseen at the first start. */
		{HW_INCIDENT_UNSEEN_KIND, BEGIN_MS - S, 1, "opened p; "},
	};
	struct hw_incident_view v;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		p.time_ms = cases[k].time_ms;
		start_listed(cases[k].kind, &p, cases[k].joined_seq, cases[k].kind == HW_INCIDENT_DEVICE ? "p" : NULL);
		ck_assert_str_eq(rig_sent(), cases[k].sent);
		ck_assert(hw_incidents_find(engine, rig_in("p"), &v));
		ck_assert(cases[k].kind == HW_INCIDENT_MASS || v.since_ms == p.time_ms);
		rig_end();
	}
}
END_TEST

/* It stopped behind a gateway that was offline at the first start; then heartwheel-alert was restarted. */
START_TEST(a_device_behind_a_gateway_of_the_first_start_is_sent_after_the_gateway_has_returned)
{
	struct hw_incident_entry p = {.id = "p",
	                              .group = "pumps",
	                              .parents = "g",
	                              .time_ms = BEGIN_MS - S,
	                              .fact = HW_FACT_OFFLINE,
	                              .wait_ms = -1,
	                              .seq = 2,
	                              .timeout_ms = 30 * S};
	start_listed(HW_INCIDENT_DEVICE, &p, 2, "g");
	ck_assert_int_eq(rig_class("p"), HW_CLASS_UNREACHABLE);
	ck_assert_str_eq(rig_sent(), "");
	rig_on("g");
	rig_wait(2 * MIN);
	ck_assert_str_eq(rig_sent(), "opened p; ");
}
END_TEST

/* An incident that was sent, and whose device returned while no instance ran. */
START_TEST(after_a_restart_the_end_is_sent)
{
	struct hw_incident_view v = {.id = "000000000aaa", .kind = HW_INCIDENT_DEVICE, .group = "pumps", .device = "p"};
	engine = hw_incidents_new(&conf, rig_now());
	hw_incidents_load(engine, &v);
	hw_incidents_load_sent(engine, v.id, "ops", HW_NEWS_OPENED, false, false, 1, BEGIN_MS);
	hw_incidents_load_member(engine, v.id, "p", HW_CLASS_DOWN, BEGIN_MS, 0);
	hw_incidents_load_receiver(engine, "ops", 17, BEGIN_MS - MIN);
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
	struct hw_incident_message m;
	run(0);
	run(S);
	ck_assert(hw_incidents_message(engine, rig_now(), &m));
	ck_assert_uint_eq(m.number, 18);
	ck_assert_int_eq(m.news[0].what, HW_NEWS_CLOSED);
	struct hw_change c;
	bool left = false;
	while (hw_incidents_change(engine, &c))
		left = left || (c.kind == HW_CHANGE_LEFT && strcmp(c.device, "p") == 0);
	ck_assert(left);
}
END_TEST

/* While no instance ran, a gateway and its device returned, and the device stopped again. Its new outage is no longer
 * that of the stored incident: it waits whether the gateway is offline, too. */
START_TEST(after_a_restart_a_new_outage_behind_a_gateway_waits_for_the_gateway)
{
	struct hw_incident_view v = {.id = "000000000aaa", .kind = HW_INCIDENT_DEVICE, .group = "gates", .device = "g"};
	struct hw_incident_entry p = {.id = "p",
	                              .group = "pumps",
	                              .parents = "g",
	                              .time_ms = BEGIN_MS - S,
	                              .fact = HW_FACT_OFFLINE,
	                              .wait_ms = 90 * S,
	                              .seq = 4,
	                              .timeout_ms = 30 * S};
	engine = hw_incidents_new(&conf, rig_now());
	seq = 4;
	hw_incidents_load(engine, &v);
	hw_incidents_load_sent(engine, v.id, "ops", HW_NEWS_OPENED, false, false, 1, BEGIN_MS);
	hw_incidents_load_device(engine, &p);
	hw_incidents_load_member(engine, v.id, "p", HW_CLASS_UNREACHABLE, BEGIN_MS - MIN, 2);
	hw_incidents_load_receiver(engine, "ops", 17, BEGIN_MS - 2 * MIN);
	ck_assert_int_eq(hw_incidents_loaded(engine, rig_now(), false), 0);
	ck_assert_int_eq(rig_class("p"), HW_CLASS_PENDING);
	rig_wait(80 * S);
	ck_assert_str_eq(rig_sent(), "closed g; ");
	rig_off("g");
	rig_wait(3 * MIN);
	ck_assert_str_eq(rig_sent(), "opened g; ");
	ck_assert_str_eq(rig_in("p"), rig_in("g"));
}
END_TEST

START_TEST(a_merged_unknown_incident_is_never_written)
{
	struct hw_change c;
	rig_start();
	for (char id[] = "a"; id[0] < 'f'; id[0]++)
		rig_off(id);
	unsigned incidents = 0, members = 0;
	while (hw_incidents_change(engine, &c)) {
		incidents += c.kind == HW_CHANGE_INCIDENT || c.kind == HW_CHANGE_DROPPED;
		members += c.kind == HW_CHANGE_JOINED;
	}
	ck_assert_uint_eq(incidents, 1);
	ck_assert_uint_eq(members, 5);
	hw_incidents_rewrite(engine);
	for (members = 0; hw_incidents_change(engine, &c);)
		members += c.kind == HW_CHANGE_JOINED;
	ck_assert_uint_eq(members, 5);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		a_short_fault_is_not_sent,
		what_is_gathered_is_worked_out_at_the_end,
		a_message_has_at_most_so_many_news,
		only_matching_incidents_are_sent,
		kinds_decide_which_openings_are_sent,
		an_acknowledgement_is_sent_once,
		growth_is_sent_when_the_members_have_doubled,
		a_reminder_comes_until_it_is_acknowledged,
		a_silenced_device_is_sent_when_the_silence_ends,
		an_end_is_sent_although_it_is_silenced,
		a_silenced_parent_silences_what_is_behind_it,
		a_silence_until_online_ends_a_minute_after_the_last_return,
		a_wrong_silence_is_refused,
		a_silence_until_online_ends_after_30_days,
		a_planned_outage_is_what_outage_and_silence_share,
		a_planned_outage_ends_with_the_outage,
		an_opening_names_kind_group_and_device,
		a_section_silences_in_its_windows,
		a_failing_receiver_gets_what_is_true_once,
		an_each_receiver_gets_a_message_an_incident,
		a_message_has_a_hundred_news_and_a_count,
		nothing_is_sent_while_a_stream_is_behind,
		deafness_and_redis_are_blindness,
		a_task_is_a_notice,
		a_new_receiver_gets_later_incidents_only,
		the_first_start_lists_and_sends_nothing,
		a_device_that_was_unseen_at_the_first_start_is_sent_when_it_becomes_offline,
		a_later_device_in_an_incident_of_the_first_start_is_sent,
		a_device_of_the_first_start_that_is_forgotten_and_becomes_unseen_is_sent,
		devices_of_the_first_start_are_sent_when_the_sent_mass_incident_that_had_them_is_split,
		after_a_restart_only_outages_since_the_first_start_are_sent,
		a_device_behind_a_gateway_of_the_first_start_is_sent_after_the_gateway_has_returned,
		after_a_restart_the_end_is_sent,
		after_a_restart_a_new_outage_behind_a_gateway_waits_for_the_gateway,
		a_merged_unknown_incident_is_never_written,
	};
	Suite *suite = suite_create("news of incidents");
	TCase *tc = tcase_create("rules");
	tcase_add_checked_fixture(tc, rig_begin, rig_end);
	for (size_t k = 0; k < sizeof(tests) / sizeof(*tests); k++)
		tcase_add_test(tc, tests[k]);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
