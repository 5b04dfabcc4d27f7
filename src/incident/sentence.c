/* SPDX-License-Identifier: MIT */
/* The names of kinds, states, classes and news of incidents, written and parsed, and the sentence that describes an
 * incident. No other file writes them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "heartwheel/print.h"
#include "incident/incidents.h"

static const char *const kinds[] = {"device", "mass", "blind", "unseen", "task"};
static const char *const states[] = {"open", "closed", "merged"};
static const char *const classes[] = {"none", "pending", "unreachable", "down"};
static const char *const news[] = {"none",  "opened",   "flapping", "steady", "acknowledged",
                                   "grown", "reminder", "closed",   "merged"};

#define COUNT(names) (sizeof(names) / sizeof(*(names)))

static const char *name_of(const char *const *names, size_t n, unsigned k)
{
	return k < n ? names[k] : "?";
}

/* Returns the position or -EINVAL. */
static int find(const char *const *names, size_t n, const char *name)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(names[k], name) == 0)
			return (int)k;
	return -EINVAL;
}

const char *hw_incident_kind_name(enum hw_incident_kind k)
{
	return name_of(kinds, COUNT(kinds), k);
}

const char *hw_incident_state_name(enum hw_incident_state s)
{
	return name_of(states, COUNT(states), s);
}

const char *hw_incident_class_name(enum hw_incident_class c)
{
	return name_of(classes, COUNT(classes), c);
}

const char *hw_news_name(enum hw_news n)
{
	return name_of(news, COUNT(news), n);
}

int hw_incident_kind_parse(const char *name, enum hw_incident_kind *out)
{
	int k = find(kinds, COUNT(kinds), name);
	if (k >= 0)
		*out = (enum hw_incident_kind)k;
	return k < 0 ? k : 0;
}

int hw_incident_state_parse(const char *name, enum hw_incident_state *out)
{
	int k = find(states, COUNT(states), name);
	if (k >= 0)
		*out = (enum hw_incident_state)k;
	return k < 0 ? k : 0;
}

int hw_incident_class_parse(const char *name, enum hw_incident_class *out)
{
	if (strcmp(name, "unseen") == 0) { /* as a down member that is unseen is stored */
		*out = HW_CLASS_DOWN;
		return 0;
	}
	int k = find(classes, COUNT(classes), name);
	if (k >= 0)
		*out = (enum hw_incident_class)k;
	return k < 0 ? k : 0;
}

int hw_news_parse(const char *name, enum hw_news *out)
{
	int k = find(news, COUNT(news), name);
	if (k >= 0)
		*out = (enum hw_news)k;
	return k < 0 ? k : 0;
}

/* --- the sentence ---------------------------------------------------------------------------------------------------
 */

struct text {
	char *buf;
	size_t cap, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	t->len += hw_vprint(t->buf + t->len, t->cap - t->len, format, args);
	va_end(args);
}

/* "1,500" */
static void add_number(struct text *t, uint64_t n)
{
	char digits[24];
	size_t len = hw_print(digits, sizeof(digits), "%" PRIu64, n);
	for (size_t k = 0; k < len; k++)
		add(t, "%s%c", k > 0 && (len - k) % 3 == 0 ? "," : "", digits[k]);
}

static void add_devices(struct text *t, uint64_t n)
{
	add_number(t, n);
	add(t, n == 1 ? " device" : " devices");
}

static void add_time(struct text *t, int64_t wall_ms, hw_window_clock *clock)
{
	struct tm reads;
	(clock ? clock : hw_window_libc)(wall_ms, false, &reads);
	add(t, "%02d:%02d:%02d", reads.tm_hour, reads.tm_min, reads.tm_sec);
}

/* Writes "since 14:39:16", or "from 14:39:16 to 14:41:02" if the incident is over. */
static void add_span(struct text *t, const struct hw_incident_view *v, hw_window_clock *clock)
{
	bool open = v->state == HW_INCIDENT_OPEN;
	add(t, open ? " since " : " from ");
	add_time(t, v->since_ms, clock);
	if (open)
		return;
	add(t, " to ");
	add_time(t, v->closed_ms, clock);
}

static void add_group(struct text *t, const struct hw_incident_view *v)
{
	if (v->group)
		add(t, " of group %s", v->group);
}

/* Writes "Pump 7 (pump-7)", or the id alone if the device has no other name. */
static void add_device(struct text *t, const struct hw_incident_view *v)
{
	const char *id = v->device ? v->device : "?";
	if (v->name && strcmp(v->name, id) != 0)
		add(t, "%s (%s)", v->name, id);
	else
		add(t, "%s", id);
}

static void write_device(struct text *t, const struct hw_incident_view *v, hw_window_clock *clock)
{
	bool open = v->state == HW_INCIDENT_OPEN, gateway = (open ? v->unreachable : v->most) > 0;
	add(t, gateway ? "gateway " : "device ");
	add_device(t, v);
	if (!gateway)
		add_group(t, v);
	if (v->flapping)
		add(t, " goes offline and returns again and again");
	else
		add(t, open ? " is offline" : " was offline");
	add_span(t, v, clock);
	if (!gateway)
		return;
	add(t, open ? ": " : ", with ");
	add_devices(t, open ? v->unreachable : v->most);
	add(t, " behind it");
	if (open)
		add(t, v->unreachable == 1 ? " is unreachable" : " are unreachable");
}

/* Returns how many devices of the group still send heartbeats. The hint may be of a time before these devices stopped.
 */
static uint64_t count_online(const struct hw_incident_view *v)
{
	uint64_t all = v->online + v->offline, offline = v->down + v->unreachable;
	if (offline < v->offline)
		offline = v->offline;
	return all > offline ? all - offline : 0;
}

static void write_mass(struct text *t, const struct hw_incident_view *v, hw_window_clock *clock)
{
	bool open = v->state == HW_INCIDENT_OPEN;
	uint64_t online = count_online(v);
	add_number(t, open ? v->down + v->unreachable : v->most);
	if (open && online > 0) {
		add(t, " of ");
		add_number(t, v->online + v->offline);
	}
	add(t, " devices");
	add_group(t, v);
	add(t, open ? " are offline" : " were offline");
	add_span(t, v, clock);
	if (!open)
		return;
	if (online > 0) {
		add(t, "; ");
		add_number(t, online);
		add(t, online == 1 ? " still sends heartbeats" : " still send heartbeats");
	}
	add(t, ": probably their network or power");
}

static void write_blind(struct text *t, const struct hw_incident_view *v, hw_window_clock *clock)
{
	const char *cause = v->cause ? v->cause : "";
	if (strcmp(cause, "deaf") == 0)
		add(t, "no message of group %s was received", v->group ? v->group : "?");
	else if (strcmp(cause, "redis") == 0)
		add(t, "Redis did not answer");
	else if (strcmp(cause, "state") == 0)
		add(t, "heartwheel-alert could not store its state");
	else
		add(t, v->state == HW_INCIDENT_OPEN ? "no monitor has received the fleet's messages"
		                                    : "no monitor received the fleet's messages");
	add_span(t, v, clock);
	if (v->state == HW_INCIDENT_OPEN)
		add(t, strcmp(cause, "deaf") == 0 ? ": its devices are not judged"
		                                  : ": devices that stop now are not noticed");
}

const char *hw_incident_sentence(const struct hw_incident_view *v, hw_window_clock *clock, char *buf, size_t cap)
{
	struct text t = {buf, cap, 0};
	if (cap > 0)
		buf[0] = '\0';
	switch (v->kind) {
	case HW_INCIDENT_DEVICE:
		write_device(&t, v, clock);
		break;
	case HW_INCIDENT_MASS:
		write_mass(&t, v, clock);
		break;
	case HW_INCIDENT_BLIND:
		write_blind(&t, v, clock);
		break;
	case HW_INCIDENT_UNSEEN_KIND:
		add_devices(&t, v->state == HW_INCIDENT_OPEN ? v->down : v->most);
		add_group(&t, v);
		add(&t, v->state == HW_INCIDENT_OPEN ? " never sent a heartbeat:" : " had never sent a heartbeat:");
		add(&t, " unseen");
		add_span(&t, v, clock);
		break;
	default:
		add(&t, "%s", v->cause ? v->cause : "a task has failed");
	}
	return buf;
}
