/* SPDX-License-Identifier: MIT */
/*
 * One of several nodes, among others that decide at random. Roles change for each partition separately, the stream is
 * read late, writes are refused, links are lost, devices send heartbeats and goodbyes and fall silent. A twin keeps the
 * store (the last entry of each device in the stream) and when each entry was read. It checks all outputs by these
 * rules:
 *
 *   - no transition of a device for which another node decides; no refresh and no pending status of a device that
 *     another node owns;
 *   - each transition differs from the state in the store, and seq grows as long as the device is known;
 *   - no device becomes offline that was heard, or was reported online by the stream, less than a timeout ago, unless a
 *     goodbye was read after that; no device becomes online that was not heard within a timeout;
 *   - when the stream is read to its end, the state of every device is that of the store, whichever node decides;
 *   - at the end this node decides for all devices, each of which is heard or has been silent for long enough; the
 *     states are then true.
 *
 * The seed is printed; HW_SEED sets it.
 */
#include "../random.h"
#include "../suite.h"
#include "../unit/world.h"

#define ROUNDS  1000
#define STEPS   400
#define DEVICES 16
#define STREAM  4096
#define TIMEOUT (4 * S)
#define NEVER   (INT64_MIN / 4)

struct device {
	char id[8];
	unsigned p;
	enum hw_role role;
	enum hw_state state; /* the store's; HW_STATE_FORGOTTEN: it has none */
	uint64_t seq;
	enum hw_state here; /* the last that was read of it, or decided */
	uint64_t here_seq;
	int64_t heard, word; /* monotonic: the last heartbeat, and the last "online" that was read in the stream or
	                      * the store */
	bool goodbye;        /* read after that heartbeat */
	bool again;          /* heard since it was last said to be gone */
	bool refused;        /* what came out before that was known is void */
	bool lives;
};

static struct {
	struct world *w;
	struct device device[DEVICES];
	struct {
		int device;
		enum hw_state state;
		uint64_t seq;
	} stream[STREAM];
	int written, read;
	int64_t link_lost; /* last */
	bool up, ends;
	uint64_t decided;
} t;

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

static bool one_in(int64_t n)
{
	return below(n) == 0;
}

static int64_t now_ns(void)
{
	return t.w->now.mono.ns;
}

static struct device *device_of(struct hw_ref ref)
{
	const struct hw_device *record = hw_registry_get(hw_monitor_registry(t.w->m), ref);
	if (!record)
		return NULL; /* removed since */
	struct hw_id id = hw_device_id(record);
	return &t.device[(id.text[1] - '0') * 10 + id.text[2] - '0'];
}

/* --- the stream ------------------------------------------------------------------ */

static void append(struct device *d, enum hw_state state, uint64_t seq)
{
	world_must(t.written < STREAM);
	d->state = state;
	d->seq = seq;
	t.stream[t.written].device = (int)(d - t.device);
	t.stream[t.written].state = state;
	t.stream[t.written++].seq = seq;
}

static void reap(const struct device *d)
{
	uint32_t i = hw_registry_find(hw_monitor_registry(t.w->m), d->id, strlen(d->id));
	if (i != HW_NIL)
		hw_monitor_reap(t.w->m, hw_registry_ref(hw_monitor_registry(t.w->m), i));
}

static void set_here(struct device *d, enum hw_state state, uint64_t seq)
{
	d->here = state;
	d->here_seq = seq;
	d->again &= state == HW_STATE_ONLINE;
}

/* A heartbeat that was heard before counts more than another node's entry. */
static void take_word(struct device *d, enum hw_state state, uint64_t seq)
{
	if (d->role == HW_ROLE_AUTHORITATIVE || seq <= d->here_seq)
		return;
	if (state == HW_STATE_ONLINE && d->here != HW_STATE_ONLINE && !d->again)
		d->word = now_ns();
	set_here(d, state, seq);
}

static void read_word(struct device *d, enum hw_state state, uint64_t seq)
{
	struct hw_event e = {.id = d->id,
	                     .id_len = strlen(d->id),
	                     .group = "default",
	                     .group_len = 7,
	                     .state = state,
	                     .reason = HW_REASON_TIMEOUT,
	                     .time_ms = t.w->now.wall_ms - below(100000),
	                     .last_seen_ms = t.w->now.wall_ms - below(100000),
	                     .seq = seq};
	take_word(d, state, seq);
	world_must(hw_monitor_stream(t.w->m, t.w->now, &e) == 0);
	reap(d);
}

static void read_some(int64_t n)
{
	for (; n > 0 && t.read < t.written; n--, t.read++)
		read_word(&t.device[t.stream[t.read].device], t.stream[t.read].state, t.stream[t.read].seq);
}

/* --- what comes out -------------------------------------------------------------- */

static bool link_was_lost_since(int64_t at)
{
	return !t.up || t.link_lost > at - TIMEOUT;
}

static void judge(const struct device *d, const struct hw_transition *out)
{
	int64_t heard = now_ns() - d->heard, word = now_ns() - d->word;
	world_must(d->role == HW_ROLE_AUTHORITATIVE);
	world_must(out->state != d->state && (out->seq > d->seq || d->state == HW_STATE_FORGOTTEN));
	if (out->state == HW_STATE_ONLINE)
		world_must(heard < TIMEOUT || link_was_lost_since(d->heard));
	else if (out->reason == HW_REASON_WILL)
		world_must(d->goodbye);
	else if (out->state == HW_STATE_OFFLINE)
		world_must(heard >= TIMEOUT && word >= TIMEOUT);
}

/* Another node wrote first: the store keeps its entry. */
static void refuse(struct device *d, struct hw_ref ref)
{
	struct hw_stored s = {.id = d->id, .id_len = strlen(d->id), .state = d->state, .seq = d->seq};
	d->role = HW_ROLE_WATCHES;
	d->refused = true;
	hw_monitor_role(t.w->m, d->p, d->role, 0);
	hw_monitor_withdraw(t.w->m, ref);
	d->here_seq = 0;
	if (d->state == HW_STATE_FORGOTTEN)
		read_word(d, d->state, d->seq + 1);
	else
		world_must(hw_monitor_load(t.w->m, t.w->now, &s) == 0);
	take_word(d, d->state, d->seq);
}

static void take_transition(struct device *d, const struct hw_transition *out)
{
	judge(d, out);
	t.decided++;
	if (!t.ends && one_in(10)) {
		refuse(d, out->device);
		return;
	}
	append(d, out->state, out->seq);
	set_here(d, d->state, d->seq);
	if (d->state == HW_STATE_FORGOTTEN)
		reap(d);
}

static void take(const struct hw_out *out)
{
	bool is_transition = out->kind == HW_OUT_TRANSITION;
	struct hw_ref ref = is_transition ? out->transition.device : out->device;
	if (!is_transition && out->kind != HW_OUT_REFRESH && out->kind != HW_OUT_REFRESH_LIGHT &&
	    out->kind != HW_OUT_STATUS)
		return;
	struct device *d = device_of(ref);
	if (!d || d->refused)
		return;
	if (is_transition)
		take_transition(d, &out->transition);
	else
		world_must(d->role != HW_ROLE_WATCHES);
}

/* What has come out since the last time. */
static void look(void)
{
	for (size_t k = 0; k < t.w->n_log; k++)
		take(&t.w->log[k]);
	t.w->n_log = 0;
	for (int k = 0; k < DEVICES; k++)
		t.device[k].refused = false;
}

/* With the stream read to its end. */
static void compare(void)
{
	for (int k = 0; t.read == t.written && k < DEVICES; k++) {
		const struct hw_device *record = world_device(t.w, t.device[k].id);
		enum hw_state state = record ? hw_device_state(record) : HW_STATE_FORGOTTEN;
		if (state == HW_STATE_PROVISIONAL && t.device[k].role != HW_ROLE_AUTHORITATIVE)
			state = HW_STATE_FORGOTTEN;
		world_must(state == t.device[k].state);
	}
}

/* --- what is put in ---------------------------------------------------------------- */

static void beat(struct device *d)
{
	if (!t.up)
		return;
	d->heard = now_ns();
	d->goodbye = false;
	d->again = true;
	world_beat(t.w, d->id, "");
}

static void say_goodbye(struct device *d)
{
	if (!t.up)
		return;
	d->goodbye = true;
	d->again &= d->here != HW_STATE_OFFLINE || link_was_lost_since(now_ns()); /* void while nothing is proven */
	world_beat(t.w, d->id, "{\"online\":false}");
}

static void set_role(struct device *d, enum hw_role role)
{
	if (role == HW_ROLE_AUTHORITATIVE)
		read_some(STREAM);
	d->role = role;
	hw_monitor_role(t.w->m, d->p, role, 1);
	world_drain(t.w);
}

static void link_to(bool up)
{
	if (t.up == up)
		return;
	t.up = up;
	t.link_lost = now_ns();
	hw_monitor_link(t.w->m, t.w->now, 0, up);
	world_drain(t.w);
}

/* An operator, here or elsewhere. */
static void forget(struct device *d)
{
	bool known = d->state != HW_STATE_FORGOTTEN;
	if (d->role == HW_ROLE_AUTHORITATIVE)
		world_must(hw_monitor_forget(t.w->m, t.w->now, d->id, strlen(d->id)) == known);
	else if (known && d->role == HW_ROLE_WATCHES)
		append(d, HW_STATE_FORGOTTEN, d->seq + 1);
	world_drain(t.w);
}

/* The other node decides. */
static void decide_elsewhere(struct device *d)
{
	enum hw_state to = d->state == HW_STATE_ONLINE ? HW_STATE_OFFLINE : HW_STATE_ONLINE;
	if (d->role == HW_ROLE_WATCHES)
		append(d, to, d->seq + 1 + (uint64_t)below(1000));
}

static void act(void)
{
	struct device *d = &t.device[below(DEVICES)];
	switch (below(24)) {
	case 0:
		say_goodbye(d);
		break;
	case 1:
	case 2:
		decide_elsewhere(d);
		break;
	case 3:
	case 4:
	case 5:
		set_role(d, (enum hw_role)below(3));
		break;
	case 6:
		if (one_in(4))
			link_to(!t.up);
		break;
	case 7:
		if (one_in(3))
			forget(d);
		break;
	case 8:
	case 9:
	case 10:
		read_some(1 + below(8));
		break;
	default:
		beat(d);
	}
	look();
}

/* --- rounds ------------------------------------------------------------------------ */

static void begin(void)
{
	struct hw_monitor_conf conf = world_conf();
	struct hw_group_spec g = world_group("default", TIMEOUT / MS);
	memset(&t, 0, sizeof(t));
	conf.several = true;
	t.w = world_new(&conf, &g, 1);
	world_connect(t.w);
	t.up = true;
	t.link_lost = now_ns();
	for (int k = 0; k < DEVICES; k++) {
		struct device *d = &t.device[k];
		*d = (struct device){.state = HW_STATE_FORGOTTEN,
		                     .here = HW_STATE_FORGOTTEN,
		                     .seq = 1,
		                     .heard = NEVER,
		                     .word = NEVER};
		snprintf(d->id, sizeof(d->id), "d%02u", (unsigned)k % 100);
		d->p = hw_partition_of(d->id, 3);
		for (int j = 0; j < k; j++) /* each has one of its own */
			world_must(t.device[j].p != d->p);
	}
}

/* This node owns all partitions; running devices are heard, and the others have been silent for long enough. */
static void end(void)
{
	link_to(true);
	t.ends = true;
	for (int k = 0; k < DEVICES; k++)
		t.device[k].lives = one_in(2);
	for (int n = 0; n < 20; n++) {
		for (int k = 0; k < DEVICES; k++) {
			if (t.device[k].lives)
				beat(&t.device[k]);
			if (n >= 12 && t.device[k].role != HW_ROLE_AUTHORITATIVE)
				set_role(&t.device[k], HW_ROLE_AUTHORITATIVE);
			look();
		}
		world_pass(t.w, TIMEOUT / 4);
		look();
	}
	compare();
	for (int k = 0; k < DEVICES; k++)
		world_must((t.device[k].state == HW_STATE_ONLINE) == t.device[k].lives);
}

START_TEST(a_watcher_follows_and_an_owner_decides)
{
	uint64_t decided = 0;
	for (int round = 0; round < ROUNDS; round++) {
		begin();
		for (int step = 0; step < STEPS; step++) {
			act();
			world_pass(t.w, one_in(20) ? below(2 * TIMEOUT) : below(200 * MS));
			look();
			compare();
		}
		end();
		decided += t.decided;
		world_free(t.w);
	}
	world_must(decided > 20 * ROUNDS);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());

	Suite *suite = suite_create("gate (random)");
	TCase *tc = tcase_create("twin");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, a_watcher_follows_and_an_owner_decides);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
