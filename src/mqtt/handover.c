/* SPDX-License-Identifier: MIT */
#include "mqtt/handover.h"

#include <errno.h>
#include <string.h>

#define ANSWER_BYTES (1 << 18)

int hw_handover_init(struct hw_handover *h)
{
	h->statuses = hw_ring_new(HW_HANDOVER_STATUS_BYTES);
	h->barriers = hw_ring_new(HW_HANDOVER_BARRIER_BYTES);
	h->answers = hw_ring_new(ANSWER_BYTES);
	int rc = hw_orders_init(&h->orders);
	return !rc && h->statuses && h->barriers && h->answers ? 0 : -ENOMEM;
}

void hw_handover_fini(struct hw_handover *h)
{
	hw_ring_free(h->statuses);
	hw_ring_free(h->barriers);
	hw_ring_free(h->answers);
	hw_orders_fini(&h->orders);
}

/*
 * Returns memory for an answer; NULL if the thread must end. The ring has room for the answers to all messages of the
 * handover. So it can be full only if many connections open and end while the loop does not run. This function then
 * waits until the loop has read answers.
 */
static struct hw_handover_answer *reserve(struct hw_handover *h, size_t size)
{
	struct hw_handover_answer *a = hw_ring_reserve(h->answers, size);
	while (!a) {
		hw_ring_wait_room(h->answers);
		a = hw_ring_reserve(h->answers, size);
		if (a)
			break;
		hw_orders_wait(&h->orders, hw_ring_room_fd(h->answers), -1);
		if (hw_orders_stop(&h->orders))
			return NULL;
	}
	return a;
}

void hw_handover_answer(struct hw_handover *h, enum hw_publisher_event_kind kind, uint64_t publish_id, int reason,
                        const char *text)
{
	size_t size = sizeof(struct hw_handover_answer) + strlen(text) + 1;
	struct hw_handover_answer *a = reserve(h, size);
	if (!a)
		return;
	*a = (struct hw_handover_answer){.publish_id = publish_id,
	                                 .kind = (uint32_t)kind,
	                                 .connection = h->connection,
	                                 .window = h->window,
	                                 .reason = (uint32_t)reason};
	memcpy(a->text, text, strlen(text) + 1);
	hw_ring_commit(h->answers, size);
	h->unannounced++;
}

void hw_handover_notify(struct hw_handover *h)
{
	hw_ring_publish(h->answers);
	h->unannounced = 0;
}
