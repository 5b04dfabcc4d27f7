/* SPDX-License-Identifier: MIT */
/* The timeout in force of a device, and its source. See monitor.h. Cost: constant. */
#include <errno.h>

#include "arm.h"
#include "form.h"
#include "learning.h"

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

const char *hw_timeout_from_name(enum hw_timeout_from from)
{
	static const char *const names[] = {"device", "inventory", "learned", "group"};
	return (unsigned)from < sizeof(names) / sizeof(*names) ? names[from] : "unknown";
}

/*
 * After a reload that changed the filters, a device may belong to another group. Until its next heartbeat shows the
 * group, the longer of the old and the new timeout is in force. If this heartbeat moves the device to a later group of
 * the file, a filter of the earlier group may still receive the device. So the old timeout stays in force until it has
 * passed once without a heartbeat in the earlier group.
 */
struct hw_timeout hw_monitor_timeout(const struct hw_monitor *m, const struct hw_device *d)
{
	const struct hw_group *g = m->groups.all[d->group];
	const struct hw_form *f = &m->form[d->group];
	const struct hw_extra *x = hw_device_extra(d);
	bool before = hw_form_is_older(m, d);
	int64_t moved = d->form == HW_FORM_MOVED ? f->moved_timeout_ms : 0;
	if (x && x->own_timeout_ms > 0) {
		int64_t most = longer(longer(g->timeout_max_ms, f->timeout_max_ms), before ? f->was_timeout_max_ms : 0);
		int64_t own = x->own_timeout_ms;
		most = longer(most, moved);
		if (own > most)
			own = most;
		return (struct hw_timeout){longer(own, HW_TIMEOUT_MIN_MS), HW_TIMEOUT_DEVICE};
	}
	if (x && x->inventory_timeout_ms > 0)
		return (struct hw_timeout){x->inventory_timeout_ms, HW_TIMEOUT_INVENTORY};
	int64_t least = longer(before ? f->was_timeout_ms : 0, moved),
		learned = hw_learning_is_on(m, d) ? hw_learning_ms(m, d) : 0;
	if (learned > 0)
		return (struct hw_timeout){longer(learned, least), HW_TIMEOUT_LEARNED};
	return (struct hw_timeout){longer(longer(g->timeout_ms, f->timeout_ms), least), HW_TIMEOUT_GROUP};
}

int64_t hw_monitor_timeout_ms(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_monitor_timeout(m, d).ms;
}

int hw_monitor_set_inventory_timeout(struct hw_monitor *m, struct hw_now now, struct hw_ref device, int64_t timeout_ms)
{
	const struct hw_device *d = hw_registry_get(m->registry, device);
	if (!d || (timeout_ms == 0 && !hw_device_extra(d)))
		return 0;
	struct hw_extra *x = hw_registry_extra(m->registry, device.index);
	if (!x)
		return -ENOMEM;
	x->inventory_timeout_ms = timeout_ms;
	hw_monitor_arm_earlier(m, now, device.index);
	return 0;
}
