/* SPDX-License-Identifier: MIT */
/* See discovery.h. The sink's callbacks get the struct hw_app as their argument, and find the daemon's other parts
 * in it. */
#include "discovery.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/context.h"
#include "heartwheel/fnv.h"
#include "heartwheel/json_writer.h"
#include "presence.h"

/* Jinja2 templates. A device may itself publish on its status topic. If its message is no JSON, or has no `online`, the
 * templates give no state. */
#define VALUE_TEMPLATE                                                                                                 \
	"{% if value_json is defined and value_json.online is defined %}"                                              \
	"{{ 'ON' if value_json.online else 'OFF' }}{% endif %}"
#define AVAILABILITY_TEMPLATE "{{ 'online' if value_json.online and not value_json.blind else 'offline' }}"

void hw_discovery_slug(struct hw_id id, char slug[HW_SLUG_MAX + 1])
{
	bool same = true;
	size_t n = id.len < HW_ID_MAX ? id.len : HW_ID_MAX;
	for (size_t k = 0; k < n; k++) {
		unsigned char c = (unsigned char)id.text[k];
		bool fits = c < 0x80 && (isalnum(c) || c == '_' || c == '-');
		slug[k] = fits ? (char)c : '_';
		same &= fits;
	}
	slug[n] = '\0';
	/* The hash distinguishes ids that have the same slug. */
	if (!same)
		snprintf(slug + n, HW_SLUG_MAX + 1 - n, "_%08x", hw_fnv32(id.text, id.len));
}

static const struct hw_app *app_of(const struct hw_retained_sink *s)
{
	return s->arg;
}

static bool wanted(const struct hw_retained_sink *s, const struct hw_group *g)
{
	return app_of(s)->start->mqtt.homeassistant && g->status.filter;
}

static uint64_t version(const struct hw_device *d)
{
	return hw_device_state(d) == HW_STATE_FORGOTTEN;
}

static void write_config(const struct hw_app *a, const char *slug, struct hw_id id, const char *status,
                         struct hw_json *j)
{
	char entity[sizeof("binary_sensor.heartwheel_") + HW_SLUG_MAX];
	const char *name = entity + strlen("binary_sensor.");
	snprintf(entity, sizeof(entity), "binary_sensor.heartwheel_%s", slug);
	hw_json_open(j, '{');
	hw_json_text(j, "name", "Connectivity");
	hw_json_text(j, "unique_id", name);
	/* The name of the entity. Home Assistant reads object_id until version 2026.4, and default_entity_id from
	 * 2025.10 on. */
	hw_json_text(j, "object_id", name);
	hw_json_text(j, "default_entity_id", entity);
	hw_json_text(j, "device_class", "connectivity");
	hw_json_text(j, "state_topic", status);
	hw_json_text(j, "value_template", VALUE_TEMPLATE);
	hw_json_text(j, "payload_on", "ON");
	hw_json_text(j, "payload_off", "OFF");
	hw_json_text(j, "availability_topic", hw_app_presence_topic(a));
	hw_json_text(j, "availability_template", AVAILABILITY_TEMPLATE);
	hw_json_text(j, "payload_available", "online");
	hw_json_text(j, "payload_not_available", "offline");
	hw_json_text(j, "json_attributes_topic", status);
	hw_json_open_member(j, "device", '{');
	hw_json_open_member(j, "identifiers", '[');
	hw_json_item(j, name);
	hw_json_close(j, ']');
	hw_json_bytes(j, "name", id.text, id.len);
	hw_json_close(j, '}');
	hw_json_open_member(j, "origin", '{');
	hw_json_text(j, "name", "heartwheel");
	hw_json_text(j, "sw_version", HW_VERSION);
	hw_json_close(j, '}');
	hw_json_close(j, '}');
}

static int topic(const struct hw_retained_sink *s, const struct hw_device *d, char *buf, size_t cap)
{
	char slug[HW_SLUG_MAX + 1];
	hw_discovery_slug(hw_device_id(d), slug);
	int n = snprintf(buf, cap, "%s" HW_DISCOVERY_BEFORE "%s" HW_DISCOVERY_AFTER,
	                 app_of(s)->start->mqtt.homeassistant_prefix, slug);
	return n < 0 || (size_t)n >= cap ? -1 : n;
}

static int payload(const struct hw_retained_sink *s, struct hw_now now, const struct hw_device *d, char *buf,
                   size_t cap)
{
	struct hw_id id = hw_device_id(d);
	char slug[HW_SLUG_MAX + 1], status[HW_RETAINED_PAYLOAD_MAX];
	struct hw_json j;
	(void)now;
	hw_discovery_slug(id, slug);
	buf[0] = '\0';
	if (hw_device_state(d) == HW_STATE_FORGOTTEN)
		return 0;
	if (hw_group_status_topic(hw_monitor_group_of(s->m, d), id.text, id.len, status, sizeof(status)) <= 0)
		return -1;
	hw_json_begin_text(&j, buf, cap);
	write_config(app_of(s), slug, id, status, &j);
	return hw_json_end_text(&j);
}

const struct hw_retained_kind hw_discovery_kind = {.pending = HW_PENDING_DISCOVERY,
                                                   .queued = HW_QUEUED_DISCOVERY,
                                                   .publish_id = UINT64_C(1) << 62,
                                                   .lenient = true,
                                                   .wanted = wanted,
                                                   .version = version,
                                                   .topic = topic,
                                                   .payload = payload};
