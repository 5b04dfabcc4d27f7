/* SPDX-License-Identifier: MIT */
#include "redis_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct rig rig;
struct rig *const g = &rig;

void fixture_up(void)
{
	rig_up(g);
}

void fixture_node_up(void)
{
	rig_serve(g, NULL);
	g->several = true;
	for (unsigned p = 0; p < HW_PARTITIONS; p++)
		g->epoch[p] = OURS;
	rig_start(g);
	rig_until(g, rig_is_up, IDLE_MS);
}

void fixture_serve(void)
{
	rig_serve(g, NULL);
}

void fixture_down(void)
{
	rig_stop(g);
}

void settle(void)
{
	rig_until(g, rig_is_idle, IDLE_MS);
}

struct hw_transition online(uint32_t i)
{
	return rig_transit(g, i, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
}

struct hw_transition offline(uint32_t i)
{
	return rig_transit(g, i, HW_STATE_OFFLINE, HW_REASON_TIMEOUT);
}

long long events(void)
{
	return rig_number(g, "XLEN device:events");
}

void make_devices(unsigned n)
{
	char id[16];
	for (unsigned k = 0; k < n; k++) {
		snprintf(id, sizeof(id), "d%u", k);
		uint32_t i = rig_device(g, GROUP_PLAIN, id);
		rig_transit(g, i, k % 3 ? HW_STATE_ONLINE : HW_STATE_OFFLINE,
		            k % 3 ? HW_REASON_HEARTBEAT : HW_REASON_TIMEOUT);
	}
}

void compare_all(void)
{
	const struct hw_registry *devices = hw_monitor_registry(g->m);
	long long offline = 0;
	for (uint32_t i = 0; i < hw_registry_bound(devices); i++) {
		const struct hw_device *d = hw_registry_at(devices, i);
		struct hw_id id = hw_device_id(d);
		bool is_online = hw_device_state(d) == HW_STATE_ONLINE;
		offline += !is_online;
		redisReply *reply = rig_ask(g, "HMGET device:state:%b seq state", id.text, id.len);
		ck_assert_ptr_nonnull(reply->element[0]->str);
		ck_assert_uint_eq(strtoull(reply->element[0]->str, NULL, 10), d->seq);
		ck_assert_str_eq(reply->element[1]->str, hw_state_name(hw_device_state(d)));
		freeReplyObject(reply);
		ck_assert_int_eq(rig_number(g, "EXISTS device:connected:%b", id.text, id.len), is_online);
		ck_assert_int_eq(rig_number(g, "EXISTS device:disconnected:%b", id.text, id.len), !is_online);
	}
	ck_assert_int_eq(rig_number(g, "ZCARD device:offline"), offline);
}

bool is_down(struct rig *at)
{
	return at->downs > 0;
}

bool is_troubled(struct rig *at)
{
	return at->troubles > 0;
}

bool is_marked(struct rig *at)
{
	return rig_number(at, "EXISTS device:monitor:node-1") == 1;
}
