/* SPDX-License-Identifier: MIT */
/*
 * See frames.h. The length field of a packet takes one or two bytes, because at most FRAME_MAX bytes follow it.
 */
#include "frames.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 1024
#define PUBLISH   0x30

int frames_make(struct frames *f, size_t n, const char *payload)
{
	char topic[64];
	size_t topic_len = (size_t)snprintf(topic, sizeof(topic), "nodes/sensor-%07zu/heartbeat", (size_t)0);
	size_t payload_len = strlen(payload), rest = 2 + topic_len + 1 + payload_len;
	*f = (struct frames){.n = n, .len = (rest > 127 ? 3 : 2) + rest};
	f->all = rest <= FRAME_MAX ? malloc(n * f->len) : NULL;
	if (!f->all)
		return -ENOMEM;
	unsigned char *to = f->all;
	for (size_t i = 0; i < n; i++) {
		snprintf(topic, sizeof(topic), "nodes/sensor-%07zu/heartbeat", i % 10000000);
		*to++ = PUBLISH;
		if (rest > 127)
			*to++ = (unsigned char)((rest & 127) | 128);
		*to++ = (unsigned char)(rest > 127 ? rest >> 7 : rest);
		*to++ = 0;
		*to++ = (unsigned char)topic_len;
		to = (unsigned char *)memcpy(to, topic, topic_len) + topic_len;
		*to++ = 0; /* no properties */
		to = (unsigned char *)memcpy(to, payload, payload_len) + payload_len;
	}
	return 0;
}

/* Fisher and Yates, with xorshift64. */
void frames_shuffle(struct frames *f)
{
	uint64_t x = 88172645463325252;
	unsigned char kept[FRAME_MAX + 3];
	for (size_t i = f->n; i > 1; i--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		unsigned char *a = f->all + (i - 1) * f->len, *b = f->all + (size_t)(x % i) * f->len;
		memcpy(kept, a, f->len);
		memmove(a, b, f->len);
		memcpy(b, kept, f->len);
	}
}
