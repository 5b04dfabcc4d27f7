/* SPDX-License-Identifier: MIT */
/* The inventory in Redis: changes, readings of everything, followed changes, unseen ids. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/inventory.h"
#include "redis_fixture.h"

static struct {
	unsigned calls, readings, reads, n, heard;
	int rc;
	bool at_end;
	uint8_t results[HW_INVENTORY_ITEMS];
	char entry[HW_INVENTORY_ITEMS + 10][200]; /* the last values, as "ID JSON" */
	unsigned n_entries, unseen;
	unsigned n_own;        /* calls of on_entry() for an item of this node */
	unsigned unseen_after; /* n_entries at the last on_unseen() */
	bool kills;            /* on_unseen() ends the connection */
	bool rolls_back;       /* on_applied() puts Redis back to before the change of b, and ends the connection */
	bool known;            /* ... and each id is a known device */
	int64_t unseen_ms, forgotten_ms;
	struct hw_stream_id at;
	char forgotten[32];
} got;

static void on_reading(void *arg)
{
	(void)arg;
	got.readings++;
}

static void on_entry(void *arg, struct hw_id id, struct hw_id entry, bool own)
{
	(void)arg;
	got.n_own += own;
	if (got.n_entries < sizeof(got.entry) / sizeof(*got.entry))
		snprintf(got.entry[got.n_entries++], sizeof(*got.entry), "%.*s %.*s", (int)id.len, id.text,
		         (int)entry.len, entry.text ? entry.text : "");
}

static void on_unseen(void *arg, struct hw_id id, int64_t since_ms)
{
	(void)arg, (void)id;
	if (got.kills)
		rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	got.kills = false;
	if (got.known)
		hw_redis_unseen_heard(g->r, id);
	got.unseen++;
	got.unseen_after = got.n_entries;
	got.unseen_ms = since_ms;
}

static void on_read(void *arg)
{
	(void)arg;
	got.reads++;
}

static void on_followed(void *arg, bool at_end)
{
	(void)arg;
	got.at_end = at_end;
}

static void on_forgotten(void *arg, struct hw_id id, struct hw_stream_id at, int64_t time_ms)
{
	(void)arg;
	snprintf(got.forgotten, sizeof(got.forgotten), "%.*s", (int)id.len, id.text);
	got.at = at;
	got.forgotten_ms = time_ms;
}

static const struct hw_inventory_ops ops = {on_reading, on_entry, on_unseen, on_read, on_followed, on_forgotten};

static bool is_read(struct rig *rig)
{
	(void)rig;
	return got.reads > 0 && got.at_end;
}

static void set_up(void)
{
	fixture_up();
	memset(&got, 0, sizeof(got));
	ck_assert_int_eq(hw_redis_inventory_start(g->r, &ops, NULL), 0);
	rig_until(g, is_read, IDLE_MS);
}

static void on_applied(void *arg, int rc, const uint8_t *results, unsigned n)
{
	(void)arg;
	got.calls++;
	got.rc = rc;
	got.n = n;
	if (rc == 0)
		memcpy(got.results, results, n);
	if (!got.rolls_back)
		return;
	redisReply *reply = rig_ask(g, "XREVRANGE device:inventory + - COUNT 1");
	rig_do(g, "XDEL device:inventory %s", reply->element[0]->element[0]->str);
	freeReplyObject(reply);
	rig_do(g, "HDEL device:expected b");
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
}

static void on_unseen_answers(void *arg, int rc, const struct hw_unseen_answer *answers, unsigned n)
{
	(void)arg;
	got.calls++;
	got.rc = rc;
	got.n = n;
	for (unsigned i = 0; rc == 0 && i < n; i++)
		got.results[i] = (uint8_t)answers[i].result;
	if (rc == 0)
		got.at = answers[0].at;
}

static bool is_answered(struct rig *rig)
{
	(void)rig;
	return got.calls > 0;
}

static void apply_all(const struct hw_inventory_item *items, unsigned n)
{
	static const char *groups[HW_INVENTORY_ITEMS];
	for (unsigned i = 0; i < n; i++)
		groups[i] = *items[i].id.text == 'z' ? "other" : "plain";
	got.calls = 0;
	ck_assert_int_eq(hw_redis_inventory_apply(g->r, rig_now(), "pumps.csv", items, groups, n, on_applied, NULL), 0);
	rig_until(g, is_answered, IDLE_MS);
	ck_assert_int_eq(got.rc, 0);
}

static unsigned apply(enum hw_inventory_kind kind, const char *id, const char *entry)
{
	struct hw_inventory_item it = {.kind = kind, .id = {id, strlen(id)}};
	if (entry)
		it.entry = (struct hw_id){entry, strlen(entry)};
	apply_all(&it, 1);
	return got.results[0];
}

#define EXPECT_ENTRY(id, want) rig_expect(g, want, "HGET device:expected %s", id)

START_TEST(an_entry_is_set_once)
{
	ck_assert_uint_eq(apply(HW_INVENTORY_SET, "a", "{\"name\":\"A\",\"source\":\"pumps.csv\",\"since_ms\":5}"),
	                  HW_INVENTORY_ADDED);
	EXPECT_ENTRY("a", "{\"name\":\"A\",\"source\":\"pumps.csv\",\"since_ms\":5}");
	ck_assert_uint_eq(apply(HW_INVENTORY_SET, "a", "{\"name\":\"A\",\"source\":\"pumps.csv\",\"since_ms\":9}"),
	                  HW_INVENTORY_SAME);
	ck_assert_int_eq(rig_number(g, "XLEN device:inventory"), 1);
	ck_assert_uint_eq(apply(HW_INVENTORY_SET, "a", "{\"name\":\"B\",\"source\":\"pumps.csv\",\"since_ms\":9}"),
	                  HW_INVENTORY_CHANGED);
	EXPECT_ENTRY("a", "{\"name\":\"B\",\"source\":\"pumps.csv\",\"since_ms\":5}");
	ck_assert_uint_eq(apply(HW_INVENTORY_MISSING, "a", "{\"since_ms\":9}"), HW_INVENTORY_SAME);
	ck_assert_uint_eq(apply(HW_INVENTORY_RESTART, "a", "{\"since_ms\":77}"), HW_INVENTORY_CHANGED);
	EXPECT_ENTRY("a", "{\"name\":\"B\",\"source\":\"pumps.csv\",\"since_ms\":77}");
	ck_assert_uint_eq(apply(HW_INVENTORY_RESTART, "b", "{\"since_ms\":77}"), HW_INVENTORY_SAME);
	ck_assert_int_eq(rig_number(g, "XLEN device:inventory"), 3);
	redisReply *reply = rig_ask(g, "XREVRANGE device:inventory + - COUNT 1");
	ck_assert_str_eq(reply->element[0]->element[1]->element[1]->str, "a");
	ck_assert_str_eq(reply->element[0]->element[1]->element[3]->str, "pumps.csv");
	freeReplyObject(reply);
	rig_do(g, "ZADD device:unseen 8 a");
	ck_assert_uint_eq(apply(HW_INVENTORY_RESTART, "a", "{\"since_ms\":78}"), HW_INVENTORY_CHANGED);
	ck_assert_int_eq(rig_number(g, "ZCARD device:unseen"), 0);
}
END_TEST

/* As the entries of a Redis that was emptied are written again. */
START_TEST(a_missing_entry_is_unseen_as_before)
{
	struct hw_inventory_item items[2] = {{.kind = HW_INVENTORY_MISSING, .id = {"a", 1}, .unseen_ms = 8},
	                                     {.kind = HW_INVENTORY_MISSING, .id = {"b", 1}}};
	items[0].entry = items[1].entry = (struct hw_id){"{\"since_ms\":5}", 14};
	apply_all(items, 2);
	rig_expect(g, "8", "ZSCORE device:unseen a");
	rig_expect(g, NULL, "ZSCORE device:unseen b");
	items[0].unseen_ms = items[1].unseen_ms = 9;
	apply_all(items, 2);
	rig_expect(g, "8", "ZSCORE device:unseen a");
	rig_expect(g, "9", "ZSCORE device:unseen b");
	ck_assert_int_eq(rig_number(g, "XLEN device:events"), 0);
}
END_TEST

START_TEST(ids_that_are_removed_together)
{
	struct hw_inventory_item items[3] = {{.kind = HW_INVENTORY_REMOVE, .id = {"a", 1}},
	                                     {.kind = HW_INVENTORY_REMOVE, .id = {"z", 1}},
	                                     {.kind = HW_INVENTORY_SET, .id = {"a", 1}}};
	items[2].entry = (struct hw_id){"{\"since_ms\":7}", 14};
	apply(HW_INVENTORY_SET, "a", "{\"since_ms\":5}");
	apply(HW_INVENTORY_SET, "z", "{\"since_ms\":5}");
	rig_do(g, "ZADD device:unseen 8 z");
	apply_all(items, 3);
	ck_assert_uint_eq(got.results[0], HW_INVENTORY_REMOVED);
	ck_assert_uint_eq(got.results[1], HW_INVENTORY_REMOVED);
	ck_assert_uint_eq(got.results[2], HW_INVENTORY_ADDED);
	EXPECT_ENTRY("a", "{\"since_ms\":7}");
	EXPECT_ENTRY("z", NULL);
	redisReply *reply = rig_ask(g, "XRANGE device:events - +");
	ck_assert_uint_eq(reply->elements, 1);
	ck_assert_str_eq(reply->element[0]->element[1]->element[1]->str, "z");
	ck_assert_str_eq(reply->element[0]->element[1]->element[11]->str, "other");
	freeReplyObject(reply);
}
END_TEST

START_TEST(an_entry_is_removed)
{
	const char *entry = "{\"name\":\"A\",\"source\":\"y\",\"since_ms\":5}";
	const char *other = "{\"name\":\"B\",\"source\":\"y\",\"since_ms\":5}";
	ck_assert_uint_eq(apply(HW_INVENTORY_SET, "a", entry), HW_INVENTORY_ADDED);
	ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "a", other), HW_INVENTORY_ABSENT);
	ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "b", NULL), HW_INVENTORY_ABSENT);
	EXPECT_ENTRY("a", entry);
	rig_do(g, "ZADD device:unseen 8 a");
	ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "a", entry), HW_INVENTORY_REMOVED);
	EXPECT_ENTRY("a", NULL);
	ck_assert_int_eq(rig_number(g, "ZCARD device:unseen"), 0);
	ck_assert_int_eq(rig_number(g, "XLEN device:events"), 1);
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	const redisReply *f = reply->element[0]->element[1];
	ck_assert_str_eq(f->element[1]->str, "a");
	ck_assert_str_eq(f->element[3]->str, "forgotten");
	ck_assert_str_eq(f->element[5]->str, "operator");
	ck_assert_str_eq(f->element[11]->str, "plain");
	/* The client of this node learns it at once. */
	char at[64];
	snprintf(at, sizeof(at), "%llu-%llu", (unsigned long long)got.at.ms, (unsigned long long)got.at.seq);
	ck_assert_str_eq(reply->element[0]->element[0]->str, at);
	ck_assert_str_eq(got.forgotten, "a");
	ck_assert_int_eq(got.forgotten_ms, strtoll(f->element[7]->str, NULL, 10));
	freeReplyObject(reply);
	*got.forgotten = '\0';
	ck_assert_uint_eq(apply(HW_INVENTORY_SET, "c", "{\"since_ms\":5}"), HW_INVENTORY_ADDED);
	ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "c", NULL), HW_INVENTORY_REMOVED);
	ck_assert_int_eq(rig_number(g, "XLEN device:events"), 1);
	ck_assert_str_eq(got.forgotten, "");
}
END_TEST

/* Another program may write an entry with another order of its members, or with spaces. */
START_TEST(an_entry_of_another_program_is_removed)
{
	const char *entry = "{\"parents\":[\"p\",\"q\"],\"labels\":{\"k\":\"1\"},\"since_ms\":5}";
	const char *kept[] = {
		"{\"since_ms\":5, \"labels\":{\"k\":\"1\"}, \"parents\":[\"q\",\"p\"]}", /* another order of parents */
		"{\"since_ms\":5, \"labels\":{\"k\":\"2\"}, \"parents\":[\"p\",\"q\"]}",
		"{\"since_ms\":5, \"labels\":{\"k\":\"1\"}}",
		"{\"note\":\"n\", \"parents\":[\"p\",\"q\"], \"labels\":{\"k\":\"1\"}, \"since_ms\":5}",
		"not JSON",
		"5"};
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		rig_do(g, "HSET device:expected a %s", kept[i]);
		ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "a", entry), HW_INVENTORY_ABSENT);
		EXPECT_ENTRY("a", kept[i]);
	}
	rig_do(g, "HSET device:expected a %s",
	       "{\"since_ms\": 5, \"labels\": {\"k\": \"1\"}, \"parents\": [\"p\", \"q\"]}");
	ck_assert_uint_eq(apply(HW_INVENTORY_REMOVE, "a", entry), HW_INVENTORY_REMOVED);
	EXPECT_ENTRY("a", NULL);
}
END_TEST

static bool has_entries(struct rig *rig)
{
	(void)rig;
	return got.n_entries >= 3;
}

START_TEST(many_at_once_and_followed)
{
	struct hw_inventory_item items[HW_INVENTORY_ITEMS];
	char ids[HW_INVENTORY_ITEMS][16];
	for (unsigned i = 0; i < HW_INVENTORY_ITEMS; i++) {
		int n = snprintf(ids[i], sizeof(ids[i]), "d%u", i / 2); /* each id twice */
		items[i] = (struct hw_inventory_item){.kind = i % 2 ? HW_INVENTORY_REMOVE : HW_INVENTORY_SET,
		                                      .id = {ids[i], (size_t)n},
		                                      .entry = {"{\"since_ms\":5}", 14}};
	}
	items[1].kind = items[3].kind = items[5].kind = HW_INVENTORY_SET;
	got.n_entries = 0;
	apply_all(items, HW_INVENTORY_ITEMS);
	ck_assert_uint_eq(got.results[0], HW_INVENTORY_ADDED);
	ck_assert_uint_eq(got.results[1], HW_INVENTORY_SAME);
	ck_assert_uint_eq(got.results[6], HW_INVENTORY_ADDED);
	ck_assert_uint_eq(got.results[7], HW_INVENTORY_REMOVED);
	ck_assert_int_eq(rig_number(g, "HLEN device:expected"), 3);
	rig_until(g, has_entries, IDLE_MS);
	ck_assert_str_eq(got.entry[0], "d0 {\"since_ms\":5}");
	ck_assert_int_eq(rig_number(g, "XLEN device:inventory"), 1);
}
END_TEST

static bool has_all(struct rig *rig)
{
	(void)rig;
	return got.n_entries >= 5;
}

/* What this node has written is reported with the answer, and not read again. */
START_TEST(own_changes_are_not_read)
{
	got.n_entries = got.n_own = 0;
	apply(HW_INVENTORY_SET, "a", "{\"name\":\"A\",\"since_ms\":5}");
	ck_assert_uint_eq(got.n_own, 1);
	ck_assert_str_eq(got.entry[0], "a {\"name\":\"A\",\"since_ms\":5}");
	apply(HW_INVENTORY_SET, "a", "{\"name\":\"A\",\"since_ms\":5}"); /* changes nothing */
	apply(HW_INVENTORY_SET, "b", "{\"since_ms\":5}");
	/* The stored since_ms stays, so the node reads what is stored now. */
	apply(HW_INVENTORY_SET, "b", "{\"name\":\"B\",\"since_ms\":9}");
	apply(HW_INVENTORY_REMOVE, "a", NULL);
	ck_assert_uint_eq(got.n_own, 3);
	rig_do(g, "HSET device:expected z {}");
	rig_do(g, "XADD device:inventory * ids z source x");
	rig_until(g, has_all, IDLE_MS);
	ck_assert_uint_eq(got.n_entries, 5);
	ck_assert_uint_eq(got.n_own, 3);
	char all[256] = "";
	for (unsigned i = 0; i < 5; i++)
		strcat(strcat(all, got.entry[i]), "\n");
	ck_assert_ptr_nonnull(strstr(all, "a \n"));
	ck_assert_ptr_nonnull(strstr(all, "b {\"name\":\"B\",\"since_ms\":5}\n"));
	ck_assert_ptr_nonnull(strstr(all, "z {}\n"));
}
END_TEST

static bool has_answers(struct rig *rig)
{
	(void)rig;
	return got.calls == 100;
}

static bool has_z(struct rig *rig)
{
	(void)rig;
	return got.n_entries > 0 && *got.entry[got.n_entries - 1] == 'z';
}

/* A node remembers fewer of its changes than these: it reads the first ones again. */
START_TEST(own_changes_in_flight_together)
{
	struct hw_inventory_item it = {.entry = {"{\"since_ms\":5}", 14}};
	const char *group = "plain";
	char id[8];
	got.n_entries = got.n_own = got.calls = 0;
	for (unsigned i = 0; i < 100; i++) {
		it.id = (struct hw_id){id, (size_t)snprintf(id, sizeof(id), "d%u", i)};
		ck_assert_int_eq(hw_redis_inventory_apply(g->r, rig_now(), "x", &it, &group, 1, on_applied, NULL), 0);
	}
	rig_until(g, has_answers, IDLE_MS);
	ck_assert_uint_eq(got.n_own, 100);
	rig_do(g, "HSET device:expected z {}");
	rig_do(g, "XADD device:inventory * ids z source x");
	rig_until(g, has_z, IDLE_MS);
	ck_assert_uint_le(got.n_entries, 200);
}
END_TEST

static bool is_read_again(struct rig *rig)
{
	(void)rig;
	return got.reads > 1;
}

/* Redis restarts without the change that it has just accepted. */
START_TEST(an_own_change_is_lost)
{
	apply(HW_INVENTORY_SET, "a", "{\"since_ms\":5}");
	rig_do(g, "HSET device:expected z {}");
	rig_do(g, "XADD device:inventory * ids z source x");
	rig_until(g, has_z, IDLE_MS);
	got.n_own = got.n_entries = 0;
	got.rolls_back = true;
	apply(HW_INVENTORY_SET, "b", "{\"since_ms\":5}");
	got.rolls_back = false;
	ck_assert_uint_eq(got.n_own, 1);
	rig_until(g, is_read_again, IDLE_MS);
	ck_assert_uint_eq(got.n_entries, 3); /* b as applied, then a and z as read */
}
END_TEST

static void call_unseen(const char *id)
{
	struct hw_unseen_item it = {{id, strlen(id)}, "plain"};
	got.calls = 0;
	ck_assert_int_eq(hw_redis_unseen(g->r, rig_now(), &it, 1, on_unseen_answers, NULL), 0);
	rig_until(g, is_answered, IDLE_MS);
	ck_assert_int_eq(got.rc, 0);
}

static bool is_unseen(struct rig *rig)
{
	(void)rig;
	return got.unseen > 0;
}

START_TEST(an_id_is_unseen_once)
{
	apply(HW_INVENTORY_SET, "a", "{\"since_ms\":5}");
	call_unseen("b");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_UNEXPECTED);
	call_unseen("a");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_ADDED);
	ck_assert_uint_gt(got.at.ms, 1000);
	call_unseen("a");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_KNOWN);
	ck_assert_int_eq(rig_number(g, "XLEN device:events"), 1);
	ck_assert_int_eq(rig_number(g, "ZCARD device:unseen"), 1);
	rig_until(g, is_unseen, IDLE_MS);
	ck_assert_int_gt(got.unseen_ms, 1000);
	rig_do(g, "HSET device:state:a state online");
	call_unseen("a");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_HAS_STATE);
	ck_assert_int_eq(rig_number(g, "ZCARD device:unseen"), 0);
}
END_TEST

START_TEST(fenced)
{
	fixture_node_up();
	memset(&got, 0, sizeof(got));
	ck_assert_int_eq(hw_redis_inventory_start(g->r, &ops, NULL), 0);
	rig_until(g, is_read, IDLE_MS);
	apply(HW_INVENTORY_SET, "a", "{\"since_ms\":5}");
	apply(HW_INVENTORY_SET, "b", "{\"since_ms\":5}");
	call_unseen("a");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_ADDED);
	redisReply *reply = rig_ask(g, "XREVRANGE device:events + - COUNT 1");
	ck_assert_str_eq(reply->element[0]->element[1]->element[16]->str, "epoch");
	freeReplyObject(reply);
	rig_do(g, "HSET device:owners %u %s", hw_partition_of("b", 1), "51 node-2");
	call_unseen("b");
	ck_assert_uint_eq(got.results[0], HW_UNSEEN_FENCED);
	ck_assert_int_eq(rig_number(g, "ZCARD device:unseen"), 1);
	g->epoch[hw_partition_of("b", 1)] = 0;
	struct hw_unseen_item it = {{"b", 1}, "plain"};
	ck_assert_int_eq(hw_redis_unseen(g->r, rig_now(), &it, 1, on_unseen_answers, NULL), -ESTALE);
}
END_TEST

/* A gap in the stream makes everything be read again. */
START_TEST(a_gap)
{
	apply(HW_INVENTORY_SET, "a", "{\"since_ms\":5}");
	rig_until(g, is_read, IDLE_MS);
	rig_do(g, "HSET device:expected b %s", "{\"since_ms\":6}");
	rig_do(g, "ZADD device:unseen 7 b");
	rig_do(g, "XADD device:inventory * ids a source x");
	for (int i = 0; i < 50; i++)
		event_base_loop(g->base, EVLOOP_ONCE);
	got.n_entries = got.unseen = 0;
	rig_do(g, "DEL device:inventory");
	rig_until(g, is_read_again, IDLE_MS);
	ck_assert_uint_eq(got.n_entries, 2);
	ck_assert_uint_eq(got.unseen, 1);
	hw_redis_inventory_read(g->r);
	got.reads = 1;
	rig_until(g, is_read_again, IDLE_MS);
}
END_TEST

static bool has_a(struct rig *rig)
{
	(void)rig;
	for (unsigned i = 0; i < got.n_entries; i++)
		if (strcmp(got.entry[i], "a {\"since_ms\":6}") == 0)
			return true;
	return false;
}

/* The stream names a change, and then its entry cannot be read: the connection ends, or Redis refuses the read. */
START_TEST(a_change_that_cannot_be_read)
{
	rig_do(g, "HSET device:expected a %s", "{\"since_ms\":6}");
	got.kills = _i == 0;
	if (_i == 1)
		rig_do(g, "ACL SETUSER default -hmget");
	rig_do(g, "MULTI");
	rig_do(g, "XADD device:inventory * ids a source x");
	rig_do(g, "XADD device:inventory * ids b unseen_ms 7");
	rig_do(g, "EXEC");
	rig_until(g, is_unseen, IDLE_MS);
	if (_i == 1)
		rig_until(g, is_read_again, IDLE_MS);
	rig_until(g, has_a, IDLE_MS);
}
END_TEST

static bool has_unseen_after_entry(struct rig *rig)
{
	(void)rig;
	return got.unseen_after > 0;
}

/* A page of the stream names an id twice: it is expected, and it is unseen. */
START_TEST(expected_and_unseen_in_one_page)
{
	rig_do(g, "MULTI");
	rig_do(g, "HSET device:expected a %s", "{\"since_ms\":6}");
	rig_do(g, "XADD device:inventory * ids a source x");
	rig_do(g, "XADD device:inventory * ids a unseen_ms 7");
	rig_do(g, "EXEC");
	rig_until(g, has_unseen_after_entry, IDLE_MS);
	ck_assert_int_eq(got.unseen_ms, 7);
	ck_assert_str_eq(got.entry[0], "a {\"since_ms\":6}");
}
END_TEST

static bool has_no_unseen(struct rig *rig)
{
	return rig_number(rig, "ZCARD device:unseen") == 0;
}

static bool has_entry(struct rig *rig)
{
	(void)rig;
	return got.n_entries == 1;
}

static bool is_refused(struct rig *rig)
{
	return hw_redis_refusal(rig->r) != NULL;
}

static bool is_writable(struct rig *rig)
{
	return hw_redis_refusal(rig->r) == NULL;
}

static bool has_read_twice(struct rig *rig)
{
	(void)rig;
	return got.readings == 2;
}

/* A key has another type: the refusal is reported as long as it stands, and everything is read again, at longer and
 * longer intervals. */
START_TEST(a_key_of_another_type)
{
	static const char *const keys[] = {"expected", "unseen"};
	struct hw_mono began = rig_now().mono;
	rig_do(g, "XADD device:inventory * ids a source x");
	rig_until(g, has_entry, IDLE_MS);
	rig_do(g, "SET device:%s x", keys[_i]);
	got.at_end = false;
	rig_do(g, "DEL device:inventory");
	rig_do(g, "XADD device:inventory * ids x source x");
	rig_until(g, is_refused, IDLE_MS);
	ck_assert_ptr_nonnull(strstr(hw_redis_refusal(g->r), "the inventory cannot be read or written"));
	ck_assert_str_eq(hw_redis_refusal_name(g->r), "WRONGTYPE");
	got.readings = 0;
	rig_until(g, has_read_twice, IDLE_MS);
	ck_assert_int_ge(rig_now().mono.ns - began.ns, 2500 * HW_NS_PER_MS); /* 1 s and 2 s */
	ck_assert(is_refused(g));
	rig_do(g, "DEL device:%s", keys[_i]);
	rig_until(g, is_writable, IDLE_MS);
	ck_assert(got.at_end);
}
END_TEST

static bool refuses_all(struct rig *rig)
{
	return is_refused(rig) && strstr(hw_redis_refusal(rig->r), "no write is accepted");
}

static bool refuses_the_inventory(struct rig *rig)
{
	return is_refused(rig) && strstr(hw_redis_refusal(rig->r), "the inventory cannot be read or written");
}

/* The inventory is refused first, and then all writes with the same error: the text names what is refused now. */
START_TEST(refused_after_the_inventory)
{
	rig_do(g, "SET device:unseen x");
	hw_redis_inventory_read(g->r);
	rig_until(g, refuses_the_inventory, IDLE_MS);
	rig_do(g, "SET device:events x");
	online(rig_device(g, GROUP_PLAIN, "a"));
	rig_until(g, refuses_all, IDLE_MS);
	rig_do(g, "DEL device:events");
	rig_until(g, refuses_the_inventory, IDLE_MS);
	rig_do(g, "DEL device:unseen");
	rig_until(g, is_writable, IDLE_MS);
}
END_TEST

static bool is_read_whole(struct rig *rig)
{
	(void)rig;
	return got.readings == 1 && got.at_end;
}

static bool is_refused_or_read_whole(struct rig *rig)
{
	return is_refused(rig) || is_read_whole(rig);
}

/* A list of ids that is longer than a monitor writes, or is empty, is not read: the keys are. */
START_TEST(a_list_without_bound)
{
	char ids[4 * HW_INVENTORY_ITEMS];
	size_t n = 0;
	for (int i = 0; i <= HW_INVENTORY_ITEMS; i++)
		n += (size_t)snprintf(ids + n, sizeof(ids) - n, "%sd", i ? "\n" : "");
	memset(&got, 0, sizeof(got));
	rig_do(g, "XADD device:inventory * ids %s unseen_ms 7", ids);
	rig_until(g, is_read_whole, IDLE_MS);
	ck_assert_int_eq(got.unseen, 0);
	memset(&got, 0, sizeof(got));
	rig_do(g, "XADD device:inventory * ids %s source x", ids);
	rig_until(g, is_read_whole, IDLE_MS);
	ck_assert_int_eq(got.n_entries, 0);
	memset(&got, 0, sizeof(got));
	rig_do(g, "XADD device:inventory * ids %s source x", "");
	rig_until(g, is_refused_or_read_whole, IDLE_MS);
	ck_assert(!is_refused(g));
}
END_TEST

/* An unseen device is heard while the connection is lost, or just before. */
START_TEST(heard_without_a_connection)
{
	rig_do(g, "ZADD device:unseen 7 a");
	got.known = true;
	if (_i == 0)
		hw_redis_unseen_heard(g->r, (struct hw_id){"a", 1});
	rig_do(g, "CLIENT KILL TYPE normal SKIPME yes");
	rig_until(g, is_down, IDLE_MS);
	if (_i == 1)
		hw_redis_unseen_heard(g->r, (struct hw_id){"a", 1});
	rig_until(g, has_no_unseen, IDLE_MS);
}
END_TEST

static bool has_begun_to_read(struct rig *rig)
{
	(void)rig;
	return got.readings > 0;
}

/* Redis refuses to remove the id of a device that was heard, and later accepts that. Meanwhile everything is not read
 * again and again. */
START_TEST(heard_while_redis_refuses)
{
	rig_do(g, "ZADD device:unseen 7 a");
	got.known = true;
	rig_do(g, "ACL SETUSER default -zrem");
	hw_redis_unseen_heard(g->r, (struct hw_id){"a", 1});
	got.readings = 0;
	rig_until(g, has_begun_to_read, IDLE_MS);
	int64_t until = rig_now().mono.ns + 3 * HW_NS_PER_S;
	while (rig_now().mono.ns < until)
		event_base_loop(g->base, EVLOOP_ONCE);
	ck_assert_uint_eq(got.readings, 1);
	ck_assert(is_refused(g));
	rig_do(g, "ACL SETUSER default +zrem");
	rig_until(g, has_no_unseen, IDLE_MS);
	rig_until(g, is_writable, IDLE_MS);
}
END_TEST

/* The connection ends while a call is in flight. */
START_TEST(a_lost_connection)
{
	struct hw_inventory_item it = {.id = {"a", 1}, .entry = {"{\"since_ms\":5}", 14}};
	const char *group = "plain";
	got.calls = 0;
	ck_assert_int_eq(hw_redis_inventory_apply(g->r, rig_now(), "", &it, &group, 1, on_applied, NULL), 0);
	rig_kill_server(g);
	rig_until(g, is_answered, IDLE_MS);
	rig_until(g, is_down, IDLE_MS);
	ck_assert(got.rc == -ENOTCONN || got.rc == 0);
	ck_assert_int_eq(hw_redis_inventory_apply(g->r, rig_now(), "", &it, &group, 1, on_applied, NULL), -ENOTCONN);
	got.at_end = false;
	rig_serve_again(g, NULL);
	rig_until(g, is_read, IDLE_MS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("redis inventory");
	TCase *one = tcase_create("one"), *several = tcase_create("several nodes");
	tcase_add_checked_fixture(one, set_up, fixture_down);
	tcase_add_test(one, an_entry_is_set_once);
	tcase_add_test(one, a_missing_entry_is_unseen_as_before);
	tcase_add_test(one, an_entry_is_removed);
	tcase_add_test(one, an_entry_of_another_program_is_removed);
	tcase_add_test(one, ids_that_are_removed_together);
	tcase_add_test(one, many_at_once_and_followed);
	tcase_add_test(one, own_changes_are_not_read);
	tcase_add_test(one, own_changes_in_flight_together);
	tcase_add_test(one, an_own_change_is_lost);
	tcase_add_test(one, an_id_is_unseen_once);
	tcase_add_test(one, a_gap);
	tcase_add_loop_test(one, a_change_that_cannot_be_read, 0, 2);
	tcase_add_test(one, expected_and_unseen_in_one_page);
	tcase_add_loop_test(one, a_key_of_another_type, 0, 2);
	tcase_add_test(one, refused_after_the_inventory);
	tcase_add_test(one, a_list_without_bound);
	tcase_add_loop_test(one, heard_without_a_connection, 0, 2);
	tcase_add_test(one, heard_while_redis_refuses);
	tcase_add_test(one, a_lost_connection);
	tcase_set_timeout(one, 60);
	suite_add_tcase(suite, one);
	tcase_add_checked_fixture(several, NULL, fixture_down);
	tcase_add_test(several, fenced);
	tcase_set_timeout(several, 60);
	suite_add_tcase(suite, several);
	return rig_run(suite);
}
