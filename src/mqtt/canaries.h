/* SPDX-License-Identifier: MIT */
/* The canaries that the broker has not answered, of those sent last. Header only. */
#ifndef HW_MQTT_CANARIES_H
#define HW_MQTT_CANARIES_H

#include <stdbool.h>
#include <stdint.h>

#define HW_CANARIES 64

struct hw_canaries {
	struct {
		int mid; /* 0: none */
		uint64_t token;
	} out[HW_CANARIES];
	unsigned next;
};

static inline void hw_canaries_add(struct hw_canaries *c, int mid, uint64_t token)
{
	unsigned i = c->next++ % HW_CANARIES;
	c->out[i].mid = mid;
	c->out[i].token = token;
}

/* Whether this was a canary; it is not out any more. */
static inline bool hw_canaries_take(struct hw_canaries *c, int mid, uint64_t *token)
{
	unsigned i = 0;
	while (i < HW_CANARIES && c->out[i].mid != mid)
		i++;
	if (i == HW_CANARIES)
		return false;
	c->out[i].mid = 0;
	*token = c->out[i].token;
	return true;
}

#endif
