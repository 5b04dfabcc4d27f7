/* SPDX-License-Identifier: MIT */
/* The latest canaries that the broker has not answered yet. Header only. */
#ifndef HW_MQTT_OPEN_CANARIES_H
#define HW_MQTT_OPEN_CANARIES_H

#include <stdbool.h>
#include <stdint.h>

#define HW_OPEN_CANARIES 64

struct hw_open_canaries {
	struct {
		int mid; /* 0: none */
		uint64_t publish_id;
		uint64_t topic; /* hash of the topic */
	} out[HW_OPEN_CANARIES];
	unsigned next;
};

static inline void hw_open_canaries_add(struct hw_open_canaries *c, int mid, uint64_t publish_id, uint64_t topic)
{
	unsigned i = c->next++ % HW_OPEN_CANARIES;
	c->out[i].mid = mid;
	c->out[i].publish_id = publish_id;
	c->out[i].topic = topic;
}

static inline bool hw_open_canaries_any(const struct hw_open_canaries *c)
{
	unsigned i = 0;
	while (i < HW_OPEN_CANARIES && !c->out[i].mid)
		i++;
	return i < HW_OPEN_CANARIES;
}

/* Whether `mid` is a canary's. If so, the canary counts as answered. */
static inline bool hw_open_canaries_take(struct hw_open_canaries *c, int mid, uint64_t *publish_id, uint64_t *topic)
{
	unsigned i = 0;
	while (i < HW_OPEN_CANARIES && c->out[i].mid != mid)
		i++;
	if (i == HW_OPEN_CANARIES)
		return false;
	c->out[i].mid = 0;
	*publish_id = c->out[i].publish_id;
	*topic = c->out[i].topic;
	return true;
}

#endif
