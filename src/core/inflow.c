/* SPDX-License-Identifier: MIT */
/* See inflow.h. */
#include "heartwheel/inflow.h"

bool hw_inflow_flush(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now)
{
	bool late = false;
	while (hw_inflow_left(f) && !late) {
		size_t n = hw_monitor_messages(m, now, f->message + f->first, f->n - f->first);
		f->first += n;
		late = f->on_taken(f->arg, now, n);
	}
	if (hw_inflow_left(f))
		return false;
	f->first = f->n = 0;
	return true;
}

bool hw_inflow_begin(struct hw_inflow *f, struct hw_monitor *m, struct hw_now now)
{
	f->arrived = f->n > 0;
	if (f->arrived)
		hw_monitor_arrived(m, now, f->source);
	return hw_inflow_flush(f, m, now);
}
