/* SPDX-License-Identifier: MIT */
#include "mqtt/records.h"

#include <stdint.h>
#include <string.h>

#include "mqtt/barrier.h"

/* A record of the ring. The topic and payload of a message follow it. After another event follow a barrier, a time, or
 * a text with its NUL. */
struct record {
	uint8_t kind;
	bool retained, truncated;
	uint16_t topic_len;
	uint32_t size; /* of the payload, or of the other data */
};

#define RECORD_MAX (sizeof(struct record) + UINT16_MAX + HW_READER_PAYLOAD_MAX)
_Static_assert(RECORD_MAX <= HW_RECORDS_RING_MIN / 4, "the ring takes records up to a quarter of it");

bool hw_records_have_room(struct hw_ring *ring)
{
	return hw_ring_reserve(ring, RECORD_MAX) != NULL;
}

bool hw_records_message(struct hw_ring *ring, const struct hw_packet *p)
{
	size_t len = p->payload_len, kept = len > HW_READER_PAYLOAD_MAX ? HW_READER_PAYLOAD_MAX : len;
	size_t size = sizeof(struct record) + p->topic_len + kept;
	struct record *rec = hw_ring_reserve(ring, size);
	if (!rec)
		return false;
	*rec = (struct record){.kind = HW_READER_MESSAGE,
	                       .retained = p->retained,
	                       .truncated = kept < len,
	                       .topic_len = (uint16_t)p->topic_len,
	                       .size = (uint32_t)kept};
	char *to = (char *)(rec + 1);
	memcpy(to, p->topic, p->topic_len);
	if (kept)
		memcpy(to + p->topic_len, p->payload, kept);
	hw_ring_commit(ring, size);
	return true;
}

bool hw_records_event(struct hw_ring *ring, enum hw_reader_event_kind kind, const void *data, size_t size)
{
	struct record *rec = hw_ring_reserve(ring, sizeof(*rec) + size);
	if (!rec)
		return false;
	*rec = (struct record){.kind = (uint8_t)kind, .size = (uint32_t)size};
	if (size)
		memcpy(rec + 1, data, size);
	hw_ring_commit(ring, sizeof(*rec) + size);
	return true;
}

bool hw_records_take(struct hw_ring *ring, struct hw_reader_event *ev)
{
	size_t size;
	const struct record *rec = hw_ring_take(ring, &size);
	if (!rec)
		return false;
	const char *data = (const char *)(rec + 1);
	*ev = (struct hw_reader_event){.kind = (enum hw_reader_event_kind)rec->kind, .topic = "", .text = ""};
	struct hw_barrier b;
	switch (ev->kind) {
	case HW_READER_MESSAGE:
		ev->topic = data;
		ev->topic_len = rec->topic_len;
		ev->payload = data + rec->topic_len;
		ev->payload_len = rec->size;
		ev->retained = rec->retained;
		ev->truncated = rec->truncated;
		break;
	case HW_READER_BARRIER:
	case HW_READER_SHARE:
		memcpy(&b, data, sizeof(b));
		ev->run_id = b.run_id;
		ev->number = b.number;
		break;
	case HW_READER_STALL:
		memcpy(&ev->planned_ns, data, sizeof(ev->planned_ns));
		break;
	default:
		ev->text = rec->size ? data : "";
	}
	return true;
}
