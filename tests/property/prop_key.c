/* SPDX-License-Identifier: MIT */
/* Devices that are known by keys, at random: whichever notifications arrive, no device goes offline while its key
 * exists. */
#include "../random.h"
#include "../suite.h"
#include "../unit/key_world.h"

static unsigned below(unsigned n)
{
	return (unsigned)(random64() % n);
}

static void touch_at_random(const char *id)
{
	unsigned what = below(10);
	bool told = below(3) > 0;
	if (what < 6) {
		put_quietly(id, what ? (int64_t)below(5000) + 1 : -1);
		if (told)
			look(id, HW_KEY_WRITTEN);
	} else if (what < 8) {
		store[find(id)].there = false;
		if (told)
			look(id, HW_KEY_REMOVED);
	} else {
		look(id, 0);
	}
}

/* Whichever notifications arrive, no device goes offline while its key exists, and after a check each device has the
 * state of its key. */
START_TEST(at_random)
{
	char id[16];
	size_t seen_log = 0;
	const int rounds = getenv("HW_FEW_ROUNDS") ? 150 : 3000;
	for (int round = 0; round < rounds; round++) {
		snprintf(id, sizeof(id), "d%u", below(20));
		touch_at_random(id);
		pass((int64_t)below(300) * MS);
		for (; seen_log < w->n_log; seen_log++) {
			if (w->log[seen_log].kind != HW_OUT_TRANSITION ||
			    w->log[seen_log].transition.state != HW_STATE_OFFLINE)
				continue;
			const struct hw_device *d =
				hw_registry_get(hw_monitor_registry(w->m), w->log[seen_log].transition.device);
			snprintf(id, sizeof(id), "%.*s", (int)hw_device_id(d).len, hw_device_id(d).text);
			int i = find(id);
			ck_assert_msg(!store[i].there || store[i].until_ns <= w->log_ns[seen_log] ||
			                      store[i].written_ns >= w->log_ns[seen_log],
			              "%s was called offline and had its key", id);
		}
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 20; i++) {
			snprintf(id, sizeof(id), "d%d", i);
			look(id, 0);
		}
		pass(3 * S);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "d%d", i);
		look(id, 0);
		bool there = store[find(id)].there;
		ck_assert_msg(!world_device(w, id) || world_is(w, id, HW_STATE_ONLINE) == there ||
		                      (!there && hw_monitor_due_in_ms(w->m, w->now, world_device(w, id)) > 0),
		              "%s is %s", id, there ? "offline and has its key" : "online without");
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("key");
	TCase *tc = tcase_create("all");
	random_begin(random_seed_of_now());
	tcase_add_checked_fixture(tc, key_set_up, key_tear_down);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, at_random);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
