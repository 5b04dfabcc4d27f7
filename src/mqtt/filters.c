/* SPDX-License-Identifier: MIT */
/*
 * The subscriptions of a reader. Each filter has a SUBSCRIBE of its own, because the options differ and an error must
 * name the refused filter. SUBACKs arrive in the order of the requests. So the search for a SUBACK's filter begins at
 * the previous one.
 */
#include "mqtt/filters.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/filter_index.h"

#define REFUSED_FROM 0x80

struct filter {
	char *sent; /* as it goes to the broker, with the share prefix */
	bool replay, as_published, renew, asked, granted;
	bool renewing; /* it was granted before, and is requested by a renewal */
	bool refused;  /* the last renewal was refused */
	int mid;
};

struct hw_filters {
	size_t n;
	size_t next;  /* after the filter of the last SUBACK */
	size_t first; /* those before it are granted */
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
		f->all[i].renew = filters[i].renew;
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
		f->all[i].asked = f->all[i].granted = f->all[i].renewing = f->all[i].refused = false;
	f->first = 0;
}

bool hw_filters_replay(struct hw_filters *f, bool renews)
{
	bool any = false;
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[i];
		if (renews ? !it->renew : !it->replay)
			continue;
		any = true;
		it->asked = it->granted = false;
		it->renewing = renews;
	}
	f->first = 0;
	return any;
}

static bool get(void *arg, size_t k)
{
	*(size_t *)arg = k;
	return true;
}

/* `index` NULL: there is no memory for it. */
static struct filter *find(struct hw_filters *f, const struct hw_filter_index *index, const char *sent)
{
	size_t k = index ? f->n : 0;
	if (index)
		hw_filter_index_equal(index, sent, get, &k);
	while (!index && k < f->n && strcmp(f->all[k].sent, sent) != 0)
		k++;
	return k < f->n ? &f->all[k] : NULL;
}

static int take_over(struct hw_filters *f, const struct hw_filter_index *index, const struct filter *old,
                     struct hw_link *l)
{
	struct filter *same = find(f, index, old->sent);
	if (same && (old->replay || !same->replay) && old->as_published == same->as_published) {
		same->asked = old->asked;
		same->granted = old->granted;
		same->renewing = old->renewing;
		same->refused = old->refused;
		same->mid = old->mid;
	}
	if (same || !old->asked)
		return 0;
	int rc = mosquitto_unsubscribe(l->m, NULL, old->sent);
	if (rc)
		hw_why_set(&l->why, "cannot unsubscribe from '%s': %s", old->sent, mosquitto_strerror(rc));
	return rc ? -1 : 0;
}

int hw_filters_replace(struct hw_filters *f, const struct hw_filters *from, struct hw_link *l)
{
	struct hw_filter_index index = {0};
	bool indexed = true;
	int rc = 0;
	for (size_t i = f->n; i-- > 0 && indexed;)
		indexed = hw_filter_index_add(&index, f->all[i].sent, i) == 0;
	for (size_t i = 0; i < from->n && rc == 0; i++)
		rc = take_over(f, indexed ? &index : NULL, &from->all[i], l);
	hw_filter_index_fini(&index);
	return rc;
}

int hw_filters_ask(struct hw_filters *f, struct hw_link *l)
{
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[i];
		if (it->asked)
			continue;
		/* the library ignores the options for 3.1.1 */
		int options = it->replay ? MQTT_SUB_OPT_SEND_RETAIN_ALWAYS : MQTT_SUB_OPT_SEND_RETAIN_NEVER;
		if (it->as_published)
			options |= MQTT_SUB_OPT_RETAIN_AS_PUBLISHED;
		int rc = mosquitto_subscribe_v5(l->m, &it->mid, it->sent, l->conf.qos, options, NULL);
		if (rc) {
			hw_why_set(&l->why, "cannot subscribe to '%s': %s", it->sent, mosquitto_strerror(rc));
			return -1;
		}
		it->asked = true;
	}
	return 0;
}

const char *hw_filters_answer(struct hw_filters *f, int mid, int code, bool *renewal)
{
	for (size_t i = 0; i < f->n; i++) {
		struct filter *it = &f->all[(f->next + i) % f->n];
		if (!it->asked || it->granted || it->mid != mid)
			continue;
		bool refused = code >= REFUSED_FROM, known = it->refused;
		*renewal = it->renewing;
		it->granted = !refused || it->renewing;
		it->refused = refused && it->renewing;
		f->next = (f->next + i) % f->n + 1;
		while (f->first < f->n && f->all[f->first].granted)
			f->first++;
		return refused && !known ? it->sent : NULL;
	}
	return NULL;
}

bool hw_filters_granted(const struct hw_filters *f)
{
	for (size_t i = f->first; i < f->n; i++)
		if (!f->all[i].granted)
			return false;
	return true;
}
