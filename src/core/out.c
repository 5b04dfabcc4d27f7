/* SPDX-License-Identifier: MIT */
/* See out.h. Invariant: at most HW_OUTS outputs are queued, in a ring that is part of the monitor. Cost: constant. */
#include "out.h"

#include <assert.h>

void hw_monitor_emit(struct hw_monitor *m, const struct hw_out *out)
{
	assert(m->outs_n < HW_OUTS); /* the caller drains after each input */
	m->outs[(m->outs_head + m->outs_n++) % HW_OUTS] = *out;
}

/* Whether only the owner of a device emits this kind of output. Any node may emit HW_OUT_KEY_CHECK, because any node
 * may check keys. */
static bool is_the_owners(enum hw_out_kind kind)
{
	return kind == HW_OUT_REFRESH || kind == HW_OUT_REFRESH_LIGHT || kind == HW_OUT_STATUS;
}

void hw_monitor_emit_device(struct hw_monitor *m, enum hw_out_kind kind, uint32_t i)
{
	if (is_the_owners(kind) && !hw_gate_owns(m, hw_monitor_at(m, i))) {
		hw_monitor_at(m, i)->flags |= kind == HW_OUT_STATUS ? HW_FLAG_TOUCHED : 0;
		return;
	}
	hw_monitor_emit(m, &(struct hw_out){.kind = kind, .device = hw_registry_ref(m->registry, i)});
}

bool hw_monitor_caused(struct hw_monitor *m, struct hw_out *out)
{
	if (m->outs_n == 0)
		return false;
	*out = m->outs[m->outs_head];
	m->outs_head = (m->outs_head + 1) % HW_OUTS;
	m->outs_n--;
	return true;
}
