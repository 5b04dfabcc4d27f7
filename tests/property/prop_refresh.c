/* SPDX-License-Identifier: MIT */
/*
 * How often keys are refreshed, and that no key of an online device expires. Devices send heartbeats at intervals that
 * may or may not divide their timeout, sometimes late. There are blindnesses, reloads with other timeouts, devices that
 * move to another group, and devices that fall silent and come back. A twin notes when each device's key would expire:
 * a time to live after its last refresh, or after its transition to online. A light refresh does not count, as for a
 * device that reports nothing.
 *
 *   - the key of an online device always has at least a sixth of its time to live left;
 *   - while there are only heartbeats, a device is refreshed at most once in a timeout, and at least once in two.
 *
 * In one round of three, the devices' records are so far apart that the refreshes of a blindness reach them in
 * different steps. The seed is printed; HW_SEED sets it.
 */
#include "../random.h"
#include "../suite.h"
#include "../unit/world.h"

#define ROUNDS  150
#define STEPS   60
#define DEVICES 6
#define APART   256 /* records between two devices, as many as a blindness refreshes in a step */
#define TICK_NS (S / HW_TICKS_PER_S)

struct device {
	char id[8];
	int64_t interval_ns, next_ns;
	int64_t refresh_by_ns; /* when a sixth of its key's time to live is left */
	int64_t refreshed_ns;  /* last; 0: nothing is known of it */
	unsigned group;
	bool silent;
};

static struct world *w;
static struct hw_monitor_conf conf;
static struct hw_group_spec groups[2];
static struct device device[DEVICES];
static size_t seen; /* of the world's log */
static bool calm;   /* nothing but heartbeats */
static uint64_t refreshes, looks;
static const char *const filters[2][1] = {{"one/{id}"}, {"two/{id}"}};

#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

static int64_t timeout_ns(const struct hw_device *d)
{
	return hw_monitor_timeout_ms(w->m, d) * MS;
}

static int64_t life_ns(const struct hw_device *d)
{
	return hw_ttl_ms(timeout_ns(d) / MS, conf.ttl_factor) * MS / 6 * 5;
}

static struct device *of(struct hw_ref ref)
{
	struct hw_id id = hw_device_id(hw_registry_get(hw_monitor_registry(w->m), ref));
	MUST(id.text[0] >= 'a' && id.text[0] < 'a' + DEVICES);
	return &device[id.text[0] - 'a'];
}

/* A refresh may come earlier than a timeout after the one before by the resolution in which time is counted. */
static void refreshed(struct device *d, const struct hw_device *record, int64_t at_ns)
{
	int64_t timeout = timeout_ns(record), after = at_ns - d->refreshed_ns;
	if (calm && d->refreshed_ns) {
		MUST(after >= timeout - 2 * TICK_NS);
		MUST(after <= 2 * timeout + 2 * TICK_NS);
	}
	d->refreshed_ns = at_ns;
	d->refresh_by_ns = at_ns + life_ns(record);
}

static void take_log(void)
{
	for (; seen < w->n_log; seen++) {
		const struct hw_out *out = &w->log[seen];
		bool online = out->kind == HW_OUT_TRANSITION && out->transition.state == HW_STATE_ONLINE;
		struct hw_ref ref = out->kind == HW_OUT_TRANSITION ? out->transition.device : out->device;
		if (out->kind != HW_OUT_REFRESH && out->kind != HW_OUT_REFRESH_LIGHT && out->kind != HW_OUT_TRANSITION)
			continue;
		struct device *d = of(ref);
		const struct hw_device *record = hw_registry_get(hw_monitor_registry(w->m), ref);
		refreshes += out->kind == HW_OUT_REFRESH;
		looks += out->kind == HW_OUT_REFRESH_LIGHT;
		if (out->kind == HW_OUT_REFRESH)
			refreshed(d, record, w->log_ns[seen]);
		else if (online)
			d->refresh_by_ns = w->log_ns[seen] + life_ns(record);
		if (out->kind == HW_OUT_TRANSITION)
			d->refreshed_ns = 0;
	}
	if (w->n_log > WORLD_LOG / 2)
		w->n_log = seen = 0;
}

static void check_keys(void)
{
	for (unsigned k = 0; k < DEVICES; k++)
		if (world_device(w, device[k].id) && world_is(w, device[k].id, HW_STATE_ONLINE))
			MUST(w->now.mono.ns <= device[k].refresh_by_ns);
}

static void beat(struct device *d)
{
	char topic[16];
	snprintf(topic, sizeof(topic), "%s/%s", d->group ? "two" : "one", d->id);
	if (!d->silent)
		world_say(w, topic, "", false);
	/* A little late, as heartbeats that are gathered into a batch, or at the exact time. */
	d->next_ns += d->interval_ns;
}

static void pass(int64_t ns)
{
	int64_t until = w->now.mono.ns + ns;
	for (;;) {
		struct device *first = &device[0];
		for (unsigned k = 1; k < DEVICES; k++)
			first = device[k].next_ns < first->next_ns ? &device[k] : first;
		int64_t jitter = below(3) == 0 ? below(3 * MS) : 0;
		if (first->next_ns > until)
			break;
		if (first->next_ns + jitter > w->now.mono.ns)
			world_pass(w, first->next_ns + jitter - w->now.mono.ns);
		beat(first);
		take_log();
		check_keys();
	}
	if (until > w->now.mono.ns)
		world_pass(w, until - w->now.mono.ns);
	take_log();
	check_keys();
}

static void draw_groups(void)
{
	static const int64_t timeouts[] = {1000, 5000, 30000, 30000, 61500, 600000, 4000000};
	int64_t timeout_ms = timeouts[below(7)];
	for (unsigned k = 0; k < 2; k++) {
		groups[k] = world_group(k ? "two" : "one", k ? timeout_ms / (1 + below(4)) : timeout_ms);
		groups[k].heartbeat = filters[k];
		groups[k].n_heartbeat = 1;
		groups[k].status = "";
	}
}

static void draw_device(struct device *d, unsigned k)
{
	int64_t timeout = groups[d->group].timeout_ms * MS;
	*d = (struct device){.group = d->group, .refresh_by_ns = d->refresh_by_ns};
	snprintf(d->id, sizeof(d->id), "%c", 'a' + (int)k);
	d->interval_ns =
		below(2) ? timeout / (1 + below(4)) - timeout / 50 * below(2) : timeout / 8 + below(timeout * 7 / 8);
	d->interval_ns -= d->interval_ns > timeout - 50 * MS ? 50 * MS : 0;
	d->next_ns = w->now.mono.ns + below(timeout);
}

/* Intervals go with the timeouts. */
static void draw_devices(void)
{
	for (unsigned k = 0; k < DEVICES; k++)
		draw_device(&device[k], k);
}

static void reload(void)
{
	draw_groups();
	MUST(hw_monitor_reconfigure(w->m, w->now, &conf, groups, 2) == 0);
	world_drain(w);
	draw_devices();
}

static void blindness(void)
{
	int64_t longest = groups[0].timeout_ms > groups[1].timeout_ms ? groups[0].timeout_ms : groups[1].timeout_ms;
	hw_monitor_link(w->m, w->now, 0, false);
	world_drain(w);
	pass(below(2) ? below(5 * S) : below(longest * MS));
	hw_monitor_link(w->m, w->now, 0, true);
	world_drain(w);
}

static void happen(void)
{
	struct device *d = &device[below(DEVICES)];
	switch (below(6)) {
	case 0:
		reload();
		if (below(2))
			blindness(); /* keys of before the reload end in it */
		break;
	case 1:
	case 2:
		blindness();
		break;
	case 3:
		d->group = !d->group;
		draw_device(d, (unsigned)(d - device));
		break;
	default:
		d->silent = !d->silent;
	}
}

/* Makes the devices known, with others between them that stay offline. */
static void space_out(void)
{
	for (unsigned k = 0; k < DEVICES; k++) {
		device[k].next_ns = w->now.mono.ns;
		beat(&device[k]);
		for (unsigned i = 0; i < APART; i++) {
			char id[16];
			int len = snprintf(id, sizeof(id), "%u", k * APART + i);
			struct hw_stored s = {.id = id, .id_len = (size_t)len, .state = HW_STATE_OFFLINE, .seq = 1};
			s.since_ms = s.last_seen_ms = w->now.wall_ms;
			MUST(hw_monitor_load(w->m, w->now, &s) == 0);
		}
	}
	world_drain(w);
	take_log();
}

static void begin(bool apart)
{
	conf = world_conf();
	conf.ttl_factor = 2 + (int)below(4);
	draw_groups();
	memset(device, 0, sizeof(device));
	w = world_new(&conf, groups, 2);
	world_connect(w);
	seen = w->n_log;
	for (unsigned k = 0; k < DEVICES; k++) {
		device[k].group = below(4) > 0; /* from the first group no device moves */
		draw_device(&device[k], k);
	}
	if (apart)
		space_out();
}

static int64_t some_time(void)
{
	const struct device *d = &device[below(DEVICES)];
	return below(3 * groups[d->group].timeout_ms * MS);
}

START_TEST(no_key_ends_under_a_device_that_is_online)
{
	for (int round = 0; round < ROUNDS; round++) {
		begin(round % 3 == 0);
		for (int step = 0; step < STEPS; step++) {
			if (below(4) == 0)
				happen();
			pass(some_time());
		}
		world_free(w);
	}
	printf("%llu refreshes, %llu looks without\n", (unsigned long long)refreshes, (unsigned long long)looks);
	MUST(looks > 100);
}
END_TEST

START_TEST(a_steady_fleet_is_refreshed_once_a_timeout)
{
	for (int round = 0; round < ROUNDS; round++) {
		begin(false);
		pass(4 * groups[0].timeout_ms * MS);
		for (unsigned k = 0; k < DEVICES; k++)
			device[k].refreshed_ns = 0;
		calm = conf.ttl_factor >= 4 && groups[0].timeout_ms <= 3600000 && groups[1].timeout_ms <= 3600000;
		pass(10 * some_time());
		calm = false;
		world_free(w);
	}
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("refreshes (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, no_key_ends_under_a_device_that_is_online);
	tcase_add_test(tc, a_steady_fleet_is_refreshed_once_a_timeout);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
