/* SPDX-License-Identifier: MIT */
/*
 * A batch of messages has the same effect as the same messages one by one, and the fast path of a plain heartbeat has
 * the same effect as the long path. Two monitors get the same input at the same moments: one in batches, with empty
 * payloads for plain heartbeats; the other message by message, with a space as their payload, which means the same but
 * takes the long path. After every batch all records, statistics and outputs must be equal.
 *
 * This proves something only if plain heartbeats meet devices in every state. So these cases are counted, and each must
 * have occurred.
 *
 * The seeds are fixed; HW_SEED sets another one. The seed is printed.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "../suite.h"
#include "heartwheel/monitor.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for so many. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS       HW_NS_PER_MS
#define S        HW_NS_PER_S
#define SEEDS    4
#define ROUNDS   25
#define STEPS    400
#define DEVICES  40
#define SAID_MAX 48
#define WAITING  64
#define RTT_NS   (2 * MS)
#define MEETINGS 100 /* of each kind, at least */

enum { BATCHED, SINGLY };

/* How a plain heartbeat finds its device. */
enum meeting {
	UNKNOWN,
	KNOWN,
	ONCE,
	GOODBYE,
	HELD,
	PACED,
	OFFLINE,
	FORGOTTEN,
	PROVISIONAL,
	BY_KEY,
	BY_BOTH,
	OTHER_GROUP,
	OWN_TIMEOUT,
	REPORTED,
	RETAINED,
	TRUNCATED,
	TWICE,
	KINDS
};

static const char *const meeting_name[KINDS] = {"unknown",   "known",       "once",        "goodbye",     "held",
                                                "paced",     "offline",     "forgotten",   "provisional", "by key",
                                                "by both",   "other group", "own timeout", "reported",    "retained",
                                                "truncated", "twice"};

static struct {
	struct hw_monitor *m[2];
	struct hw_monitor_conf conf;
	struct hw_now now;
	bool up;
	struct {
		uint64_t number;
		int64_t at;
	} waiting[WAITING]; /* barriers on their way back, oldest first */
	int n_waiting;
} t;

static uint64_t met[KINDS], outs[HW_OUT_KEY_CHECK + 1];

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

static bool one_in(int64_t n)
{
	return below(n) == 0;
}

/* --- the groups ------------------------------------------------------------------------------------------------------
 */

static const char *const plain[] = {"a/{id}/hb"}, *const delayed[] = {"b/{id}/hb"}, *const paced[] = {"c/{id}/hb"},
			 *const prefixed[] = {"p/{id}/hb"}, *const homie[] = {"h/{id}/$state", "h/{id}/temp"},
			 *const batch[] = {"m/batch"}, *const keyed[] = {"k/{id}/hb"};

static const struct hw_group_spec groups[] = {
	{.name = "plain", .heartbeat = plain, .n_heartbeat = 1, .status = "a/{id}/status", .timeout_ms = 1500},
	{.name = "delayed",
         .heartbeat = delayed,
         .n_heartbeat = 1,
         .timeout_ms = 2000,
         .goodbye_delay_ms = 700,
         .max_age_ms = 60000},
	{.name = "paced", .heartbeat = paced, .n_heartbeat = 1, .timeout_ms = 1000, .max_offline_rate = 1},
	{.name = "prefixed", .heartbeat = prefixed, .n_heartbeat = 1, .id_prefix = "x-", .timeout_ms = 1500},
	{.name = "homie", .heartbeat = homie, .n_heartbeat = 2, .timeout_ms = 3000, .format = HW_FORMAT_HOMIE},
	{.name = "batch", .heartbeat = batch, .n_heartbeat = 1, .timeout_ms = 2500, .batch = true},
	{.name = "keyed", .heartbeat = keyed, .n_heartbeat = 1, .timeout_ms = 2000},
};

/* The group in which most of a device's heartbeats are heard, by the device's number; group 5 has no topic for
 * single devices. */
static const struct {
	char letter;
	uint16_t group;
} homes[] = {{'a', 0}, {'b', 1}, {'c', 2}, {'c', 2}, {'p', 3}, {'h', 4}, {'k', 6}};

/* --- the same
 * --------------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void compare_extra(const struct hw_extra *a, const struct hw_extra *b)
{
	struct hw_report of_a = hw_report_view(a->report), of_b = hw_report_view(b->report);
	MUST(a->own_timeout_ms == b->own_timeout_ms);
	MUST(of_a.has == of_b.has);
	MUST(memcmp(&of_a.battery, &of_b.battery, sizeof(of_a.battery)) == 0);
	MUST(same_text(of_a.version, of_b.version));
	MUST(!a->key == !b->key);
	if (!a->key)
		return;
	MUST(a->key->until_ns == b->key->until_ns && a->key->proved_ns == b->key->proved_ns);
	MUST(a->key->excused_ns == b->key->excused_ns && a->key->ttl_ms == b->key->ttl_ms);
	MUST(a->key->silent_ns == b->key->silent_ns && a->key->checked.ns == b->key->checked.ns);
	MUST(a->key->present == b->key->present);
}

static void compare_devices(void)
{
	const struct hw_registry *r[2] = {hw_monitor_registry(t.m[0]), hw_monitor_registry(t.m[1])};
	MUST(hw_registry_bound(r[0]) == hw_registry_bound(r[1]));
	for (uint32_t i = 0; i < hw_registry_bound(r[0]); i++) {
		const struct hw_device *d[2] = {hw_registry_at(r[0], i), hw_registry_at(r[1], i)};
		MUST(!d[0] == !d[1]);
		if (!d[0])
			continue;
		struct hw_id id[2] = {hw_device_id(d[0]), hw_device_id(d[1])};
		MUST(id[0].len == id[1].len && memcmp(id[0].text, id[1].text, id[0].len) == 0);
		const struct hw_extra *x[2] = {hw_device_extra(d[0]), hw_device_extra(d[1])};
		MUST(!x[0] == !x[1]);
		if (x[0])
			compare_extra(x[0], x[1]);
		struct hw_device a = *d[0], b = *d[1];
		memset(&a.is, 0, sizeof(a.is));
		memset(&b.is, 0, sizeof(b.is));
		MUST(memcmp(&a, &b, sizeof(a)) == 0); /* it has no padding */
	}
}

static void compare_stats(void)
{
	MUST(memcmp(hw_monitor_stats(t.m[0]), hw_monitor_stats(t.m[1]), sizeof(struct hw_monitor_stats)) == 0);
	for (size_t k = 0; k < COUNT(groups); k++)
		MUST(memcmp(hw_monitor_group_stats(t.m[0], k), hw_monitor_group_stats(t.m[1], k),
		            sizeof(struct hw_group_stats)) == 0);
}

static bool same_ref(struct hw_ref a, struct hw_ref b)
{
	return a.index == b.index && a.gen == b.gen;
}

static bool same_transition(const struct hw_transition *a, const struct hw_transition *b)
{
	return same_ref(a->device, b->device) && a->state == b->state && a->reason == b->reason &&
	       a->time_ms == b->time_ms && a->last_seen_ms == b->last_seen_ms && a->seq == b->seq &&
	       a->delay_ns == b->delay_ns;
}

static bool same_out(const struct hw_out *a, const struct hw_out *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case HW_OUT_TRANSITION:
		return same_transition(&a->transition, &b->transition);
	case HW_OUT_BARRIER:
		return a->barrier == b->barrier;
	case HW_OUT_RECONNECT:
		return a->source == b->source;
	case HW_OUT_BLIND:
		return a->blind.begun == b->blind.begun && a->blind.cause == b->blind.cause &&
		       a->blind.lossy == b->blind.lossy && a->blind.length_ns == b->blind.length_ns;
	default:
		return same_ref(a->device, b->device);
	}
}

/* --- what both are told
 * ----------------------------------------------------------------------------------------------- */

/* A statement for each of the two. */
#define BOTH(m, what)                                                                                                  \
	do {                                                                                                           \
		for (int both_k = 0; both_k < 2; both_k++) {                                                           \
			struct hw_monitor *m = t.m[both_k];                                                            \
			what;                                                                                          \
		}                                                                                                      \
	} while (0)

static void link_to(bool up)
{
	t.up = up;
	t.n_waiting = up ? t.n_waiting : 0;
	BOTH(m, hw_monitor_link(m, t.now, 0, up));
}

static void look_at_key(struct hw_ref ref)
{
	const struct hw_device *d = hw_registry_get(hw_monitor_registry(t.m[0]), ref);
	MUST(d != NULL);
	char text[HW_ID_MAX];
	struct hw_id id = hw_device_id(d);
	memcpy(text, id.text, id.len);
	int64_t ttl_ms = one_in(2) ? HW_KEY_GONE : 500 + below(3000);
	BOTH(m, hw_monitor_key(m, t.now, 0, text, id.len, ttl_ms));
}

static void take(const struct hw_out *out)
{
	outs[out->kind]++;
	if (out->kind == HW_OUT_BARRIER)
		BOTH(m, hw_monitor_barrier_taken(m, t.now.mono));
	if (out->kind == HW_OUT_BARRIER && t.up && t.n_waiting < WAITING) {
		t.waiting[t.n_waiting].number = out->barrier;
		t.waiting[t.n_waiting++].at = t.now.mono.ns + RTT_NS;
	} else if (out->kind == HW_OUT_RECONNECT) {
		link_to(false);
	} else if (out->kind == HW_OUT_KEY_CHECK) {
		look_at_key(out->device);
	} else if (out->kind == HW_OUT_TRANSITION && out->transition.state == HW_STATE_FORGOTTEN && one_in(2)) {
		BOTH(m, hw_monitor_reap(m, out->transition.device));
	}
}

static void drain(void)
{
	struct hw_out out[2];
	unsigned left[2];
	do {
		left[0] = left[1] = 64;
		for (;;) {
			bool any = hw_monitor_next(t.m[0], t.now, &left[0], &out[0]);
			MUST(hw_monitor_next(t.m[1], t.now, &left[1], &out[1]) == any);
			MUST(left[0] == left[1]);
			if (!any)
				break;
			MUST(same_out(&out[0], &out[1]));
			take(&out[0]);
		}
	} while (left[0] == 0);
}

static void set_time(int64_t ns)
{
	t.now.wall_ms += ns / MS - t.now.mono.ns / MS;
	t.now.mono.ns = ns;
}

static void pass(int64_t ns)
{
	int64_t end = t.now.mono.ns + ns;
	for (;;) {
		drain();
		struct hw_mono due[2] = {{INT64_MAX}, {INT64_MAX}};
		MUST(hw_monitor_due(t.m[0], t.now, &due[0]) == hw_monitor_due(t.m[1], t.now, &due[1]));
		MUST(due[0].ns == due[1].ns);
		int64_t next = due[0].ns < end ? due[0].ns : end;
		bool back = t.n_waiting > 0 && t.waiting[0].at <= next;
		if (back)
			next = t.waiting[0].at;
		if (next > t.now.mono.ns)
			set_time(next);
		if (back) {
			uint64_t number = t.waiting[0].number;
			memmove(t.waiting, t.waiting + 1, (size_t)--t.n_waiting * sizeof(t.waiting[0]));
			BOTH(m, hw_monitor_barrier(m, t.now, 0, number));
		} else if (t.now.mono.ns >= end) {
			drain();
			return;
		}
	}
}

/* --- messages
 * --------------------------------------------------------------------------------------------------------- */

struct said {
	struct hw_message msgs[2][SAID_MAX]; /* what each of the two hears */
	char topics[SAID_MAX][64];
	char payloads[SAID_MAX][128];
	size_t n;
};

/* An id as the registry has it. */
static const struct hw_device *find(const char *prefix, unsigned k)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "%sd%02u", prefix, k);
	uint32_t i = hw_registry_find(hw_monitor_registry(t.m[0]), id, (size_t)len);
	return i == HW_NIL ? NULL : hw_registry_at(hw_monitor_registry(t.m[0]), i);
}

static void meet_known(const struct hw_device *d, uint16_t group)
{
	static const enum meeting by_state[HW_STATES] = {[HW_STATE_PROVISIONAL] = PROVISIONAL,
	                                                 [HW_STATE_ONLINE] = KNOWN,
	                                                 [HW_STATE_OFFLINE] = OFFLINE,
	                                                 [HW_STATE_FORGOTTEN] = FORGOTTEN};
	enum hw_state s = hw_device_state(d);
	met[by_state[s]]++;
	if (s != HW_STATE_ONLINE)
		return;
	met[ONCE] += (d->flags & HW_FLAG_ONCE) != 0;
	met[GOODBYE] += (d->flags & HW_FLAG_GOODBYE) != 0;
	met[HELD] += (d->flags & HW_FLAG_HELD) != 0;
	met[PACED] += (d->flags & (HW_FLAG_PACED | HW_FLAG_ONCE | HW_FLAG_GOODBYE)) == HW_FLAG_PACED;
	met[BY_KEY] += hw_device_source(d) == HW_SOURCE_KEY && d->group == group && !(d->flags & HW_FLAG_ONCE);
	met[BY_BOTH] += hw_device_source(d) == (HW_SOURCE_KEY | HW_SOURCE_MQTT);
	met[OTHER_GROUP] += d->group != group && !(d->flags & HW_FLAG_ONCE);
	met[OWN_TIMEOUT] += hw_device_own_timeout_ms(d) > 0;
	met[REPORTED] += hw_device_report(d).has != 0;
}

/* Notes the states of devices before the batch. During the batch only devices that occur twice are noted. */
static void meet(const struct said *s, const struct hw_message *msg, const char *prefix, unsigned k, uint16_t group)
{
	met[RETAINED] += msg->retained;
	met[TRUNCATED] += msg->truncated;
	if (msg->retained || msg->truncated)
		return;
	const struct hw_device *d = find(prefix, k);
	if (d)
		meet_known(d, group);
	else
		met[UNKNOWN]++;
	for (size_t i = 0; i < s->n; i++)
		met[TWICE] += strcmp(s->topics[i], s->topics[s->n]) == 0;
}

static void payload_of(char *p, size_t cap)
{
	static const char *const texts[] = {"{\"online\":false}",
	                                    "{\"online\":false}",
	                                    "{\"timeout\":0}",
	                                    "{\"timeout\":\"x\"}",
	                                    "{\"version\":\"1.2\"}",
	                                    "{\"battery\":5",
	                                    "plain text",
	                                    "ready",
	                                    "disconnected",
	                                    "{\"time\":1}",
	                                    "{\"by\":\"x\",\"seq\":3,\"online\":true}",
	                                    "{}"};
	if (one_in(5))
		snprintf(p, cap, "{\"timeout\":%d.5,\"battery\":%d}", 1 + (int)below(3), (int)below(100));
	else
		snprintf(p, cap, "%s", texts[below(COUNT(texts))]);
}

static void batch_of(char *p, size_t cap)
{
	unsigned a = (unsigned)below(DEVICES), b = (unsigned)below(DEVICES);
	if (one_in(8))
		snprintf(p, cap, "[\"d%02u\",", a);
	else
		snprintf(p, cap, "[\"d%02u\",{\"id\":\"d%02u\",\"online\":%s},7]", a, b, one_in(4) ? "false" : "true");
}

/* A message about one device: mostly its plain heartbeat. */
static bool of_device(const struct said *s, struct hw_message *msg, char *topic, size_t topic_cap, char *payload,
                      size_t payload_cap)
{
	unsigned k = (unsigned)below(DEVICES), n = COUNT(homes), home = one_in(8) ? (unsigned)below(n) : k % n;
	char letter = homes[home].letter;
	bool status = letter == 'h' && one_in(3), is_plain = !status && !one_in(5);
	snprintf(topic, topic_cap, "%c/d%02u/%s", letter, k, status ? "$state" : letter == 'h' ? "temp" : "hb");
	msg->retained = one_in(30);
	msg->truncated = one_in(30);
	if (is_plain)
		meet(s, msg, letter == 'p' ? "x-" : "", k, homes[home].group);
	else if (!one_in(10))
		payload_of(payload, payload_cap);
	return is_plain;
}

/* On a status topic, on a topic without a subscription, or without an id. */
static void of_nobody(char *topic, size_t cap)
{
	static const char *const topics[] = {"a/d01/status", "a/d02/status", "z",
	                                     "a//hb",        "a/\x01/hb",    "c/d02/hb/more"};
	snprintf(topic, cap, "%s", topics[below(COUNT(topics))]);
}

static void add(struct said *s)
{
	struct hw_message *msg = &s->msgs[BATCHED][s->n];
	char *topic = s->topics[s->n], *payload = s->payloads[s->n];
	bool is_plain = false;
	*msg = (struct hw_message){.topic = topic, .payload = payload};
	*payload = '\0';
	if (one_in(25)) {
		of_nobody(topic, sizeof(s->topics[0]));
		if (one_in(2))
			payload_of(payload, sizeof(s->payloads[0]));
	} else if (one_in(25)) {
		snprintf(topic, sizeof(s->topics[0]), "m/batch");
		batch_of(payload, sizeof(s->payloads[0]));
	} else {
		is_plain = of_device(s, msg, topic, sizeof(s->topics[0]), payload, sizeof(s->payloads[0]));
	}
	msg->topic_len = strlen(topic);
	msg->payload_len = strlen(payload);
	s->msgs[SINGLY][s->n] = *msg;
	if (is_plain) {
		s->msgs[SINGLY][s->n].payload = " ";
		s->msgs[SINGLY][s->n].payload_len = 1;
	}
	s->n++;
}

static void say(void)
{
	struct said s = {.n = 0};
	size_t n = one_in(4) ? 1 : 1 + (size_t)below(SAID_MAX);
	while (s.n < n)
		add(&s);
	BOTH(m, hw_monitor_arrived(m, t.now, 0));
	MUST(hw_monitor_messages(t.m[BATCHED], t.now, s.msgs[BATCHED], n) == n);
	for (size_t k = 0; k < n; k++)
		MUST(hw_monitor_messages(t.m[SINGLY], t.now, &s.msgs[SINGLY][k], 1) == 1);
	compare_devices();
	compare_stats();
	drain();
	compare_devices();
}

/* --- what else happens
 * ------------------------------------------------------------------------------------------------ */

static void touch_key(unsigned k)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%02u", k);
	bool there = !one_in(3);
	int64_t ttl_ms = there ? 500 + below(4000) : HW_KEY_GONE;
	unsigned why = there ? HW_KEY_WRITTEN : HW_KEY_REMOVED;
	BOTH(m, hw_monitor_key(m, t.now, why, id, (size_t)len, ttl_ms));
}

static void forget(unsigned k)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%02u", k);
	bool was = hw_monitor_forget(t.m[0], t.now, id, (size_t)len);
	MUST(hw_monitor_forget(t.m[1], t.now, id, (size_t)len) == was);
}

/* As the store has it. */
static void load(unsigned k)
{
	char id[16];
	int len = snprintf(id, sizeof(id), "d%02u", k);
	struct hw_stored s = {.id = id,
	                      .id_len = (size_t)len,
	                      .state = one_in(2) ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
	                      .last_seen_ms = t.now.wall_ms - below(5000),
	                      .group = groups[homes[k % COUNT(homes)].group].name,
	                      .seq = 1 + (uint64_t)below(1000)};
	struct hw_stored copy[2] = {s, s};
	int rc = hw_monitor_load(t.m[0], t.now, &copy[0]);
	MUST(hw_monitor_load(t.m[1], t.now, &copy[1]) == rc);
}

/* A device of the group of keys, which is the last group. */
static unsigned keyed_one(void)
{
	unsigned n = COUNT(homes), k = (unsigned)below(DEVICES / n);
	return k * n + n - 1;
}

/* Known by its key alone, until it beats. */
static void anew_by_key(unsigned k)
{
	forget(k);
	drain();
	for (int n = 0; n < 3; n++) /* a device that is heard once counts as heard only once */
		touch_key(k);
}

static void act(int step)
{
	unsigned k = (unsigned)below(DEVICES);
	if (one_in(3))
		touch_key(one_in(2) ? k : keyed_one());
	if (one_in(6))
		anew_by_key(keyed_one());
	if (one_in(8))
		forget(k);
	if (step < STEPS / 8)
		load(k);
	else if (step == STEPS / 8)
		BOTH(m, hw_monitor_loaded(m));
	if (!t.up || one_in(60))
		link_to(!t.up);
	drain();
}

/* --- a round
 * ---------------------------------------------------------------------------------------------------------- */

static void begin(void)
{
	static const uint8_t key[16] = {5};
	struct hw_group_spec specs[COUNT(groups)];
	memset(&t, 0, sizeof(t));
	t.now = (struct hw_now){.mono = {1000 * S}, .wall_ms = 1700000000000};
	t.conf = (struct hw_monitor_conf){.max_devices = 90, /* a few find no room */
	                                  .forget_after_ms = 20000,
	                                  .forget_once_after_ms = 5000,
	                                  .barrier_slow_ms = 250,
	                                  .barrier_timeout_ms = 5000,
	                                  .readers = 1,
	                                  .ttl_factor = 3,
	                                  .loading = true,
	                                  .key_group = "keyed"};
	for (size_t k = 0; k < COUNT(groups); k++) {
		specs[k] = groups[k];
		specs[k].timeout_max_ms = 86400000;
	}
	for (int k = 0; k < 2; k++) {
		t.m[k] = hw_monitor_new(&t.conf, specs, COUNT(groups), key, t.now);
		MUST(t.m[k] != NULL);
		hw_monitor_publisher(t.m[k], t.now, true);
		hw_monitor_key_sight(t.m[k], t.now, true);
	}
	link_to(true);
	drain();
}

static void count_meetings(void)
{
	for (int k = 0; k < KINDS; k++)
		if (met[k] < MEETINGS)
			ck_abort_msg("only %" PRIu64 " plain heartbeats of the kind '%s'", met[k], meeting_name[k]);
}

static void run(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		begin();
		for (int step = 0; step < STEPS; step++) {
			act(step);
			say();
			pass(one_in(12) ? below(3 * S) : below(80 * MS));
		}
		compare_devices();
		compare_stats();
		hw_monitor_free(t.m[0]);
		hw_monitor_free(t.m[1]);
	}
	count_meetings();
	MUST(outs[HW_OUT_STATUS] > 0 && outs[HW_OUT_REFRESH] > 0 && outs[HW_OUT_KEY_CHECK] > 0);
}

START_TEST(a_batch_is_what_its_messages_are)
{
	random_begin((uint64_t)_i);
	run();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("intake (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_batch_is_what_its_messages_are, 1,
	                    getenv("HW_SEED") || getenv("HW_FEW_ROUNDS") ? 2 : 1 + SEEDS);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
