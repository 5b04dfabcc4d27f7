/* SPDX-License-Identifier: MIT */
/*
 * The subscriptions of a reader. One SUBSCRIBE each: they differ in options, and a refusal must name its filter.
 * Linear: a configuration has tens of filters.
 */
#include "mqtt/filters.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_FROM 0x80

struct filter {
	char *sent; /* as it goes to the broker, with the share prefix */
	bool replay, as_published, asked, granted;
	int mid;
};

struct hw_filters {
	size_t n;
	struct filter all[];
};

static char *with_share(const char *group, const char *filter)
{
	char *s;
	if (!group)
		return strdup(filter);
	return asprintf(&s, "$share/%s/%s", group, filter) < 0 ? NULL : s;
}

struct hw_filters *hw_filters_new(const struct hw_mqtt_filter *filters, size_t n, const char *share_group,
                                  const char *barrier_topic, const char *share_topic)
{
	struct hw_filters *f = calloc(1, sizeof(*f) + (n + 2) * sizeof(f->all[0]));
	if (!f)
		return NULL;
	f->n = n + 1 + (share_group != NULL);
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		f->all[i].sent = with_share(filters[i].plain ? NULL : share_group, filters[i].filter);
		f->all[i].replay = filters[i].replay;
		f->all[i].as_published = filters[i].as_published;
		ok = ok && f->all[i].sent;
	}
	f->all[n].sent = strdup(barrier_topic);
	if (share_group)
		f->all[n + 1].sent = with_share(share_group, share_topic);
	if (ok && f->all[n].sent && f->all[f->n - 1].sent)
		return f;
	hw_filters_free(f);
	return NULL;
}

void hw_filters_free(struct hw_filters *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->all[i].sent);
	free(f);
}

void hw_filters_forget(struct hw_filters *f)
{
	for (size_t i = 0; i < f->n; i++)
		f->all[i].asked = f->all[i].granted = false;
}

bool hw_filters_replay(struct hw_filters *f)
{
	bool any = false;
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[i];
		if (!it->replay)
			continue;
		any = true;
		it->asked = it->granted = false;
	}
	return any;
}

static struct filter *find(const struct hw_filters *f, const char *sent)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->all[i].sent, sent) == 0)
			return (struct filter *)(uintptr_t)&f->all[i];
	return NULL;
}

int hw_filters_replace(struct hw_filters *f, const struct hw_filters *from, struct hw_link *l)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct filter *old = &from->all[i];
		struct filter *same = find(f, old->sent);
		if (same && (old->replay || !same->replay) && old->as_published == same->as_published) {
			same->asked = old->asked;
			same->granted = old->granted;
			same->mid = old->mid;
		}
		if (same || !old->asked)
			continue;
		int rc = mosquitto_unsubscribe(l->m, NULL, old->sent);
		if (rc) {
			hw_why_say(&l->why, "cannot unsubscribe from '%s': %s", old->sent, mosquitto_strerror(rc));
			return -1;
		}
	}
	return 0;
}

int hw_filters_ask(struct hw_filters *f, struct hw_link *l)
{
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[i];
		if (it->asked)
			continue;
		/* 3.1.1 has no options; the library leaves them out there */
		int options = it->replay ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS : MQTT_SUB_OPT_SEND_RETAIN_NEVER;
		if (it->as_published)
			options |= MQTT_SUB_OPT_RETAIN_AS_PUBLISHED;
		int rc = mosquitto_subscribe_v5(l->m, &it->mid, it->sent, l->conf.qos, options, NULL);
		if (rc) {
			hw_why_say(&l->why, "cannot subscribe to '%s': %s", it->sent, mosquitto_strerror(rc));
			return -1;
		}
		it->asked = true;
	}
	return 0;
}

const char *hw_filters_answer(struct hw_filters *f, int mid, int code)
{
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[i];
		if (!it->asked || it->granted || it->mid != mid)
			continue;
		it->granted = code < REFUSED_FROM;
		return it->granted ? NULL : it->sent;
	}
	return NULL;
}

bool hw_filters_granted(const struct hw_filters *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->all[i].granted)
			return false;
	return true;
}
