/* SPDX-License-Identifier: MIT */
/* See subscriptions.h. */
#include "subscriptions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OF_NODES  2 /* filters that bring what nodes say of themselves */
#define OF_PROBES 1

/* Filters that are put together, each with the topic that it is of. */
struct wanted {
	struct hw_mqtt_filter *filters;
	const struct hw_topic **topics;
	size_t n;
};

static void add_filter(struct wanted *w, const struct hw_topic *topic, bool replay)
{
	for (size_t k = 0; k < w->n; k++) {
		if (strcmp(w->filters[k].filter, topic->filter) != 0)
			continue;
		w->filters[k].replay |= replay;
		return;
	}
	w->topics[w->n] = topic;
	w->filters[w->n++] = (struct hw_mqtt_filter){.filter = topic->filter, .replay = replay};
}

/* Whether another filter brings all that this one would. */
static bool is_covered(const struct wanted *w, size_t k)
{
	for (size_t i = 0; i < w->n; i++)
		if (i != k && (w->filters[i].replay || !w->filters[k].replay) &&
		    hw_topic_covers(w->topics[i], w->topics[k]))
			return true;
	return false;
}

/* Many a broker sends a message once for each filter that it matches: what is covered would only bring it twice. */
static void drop_covered(struct wanted *w)
{
	for (size_t k = 0; k < w->n;) {
		if (!is_covered(w, k)) {
			k++;
			continue;
		}
		w->n--;
		memmove(w->filters + k, w->filters + k + 1, (w->n - k) * sizeof(*w->filters));
		memmove(w->topics + k, w->topics + k + 1, (w->n - k) * sizeof(*w->topics));
	}
}

/* A message with the flag is history where retained messages are asked for, and only there: so a filter that may bring
 * such topics, too, does not bring the flag of what is published now. */
static void ask_for_flags(struct wanted *w)
{
	for (size_t k = 0; k < w->n; k++) {
		bool history = false;
		for (size_t i = 0; i < w->n; i++)
			history |= w->filters[i].replay &&
			           hw_topic_filters_overlap(w->filters[i].filter, w->filters[k].filter);
		w->filters[k].as_published = !history;
	}
}

/* The topic of probes' answers, in `answers`. */
static int add_answers(struct hw_app *a, struct wanted *w, struct hw_topic *answers)
{
	const char *why, *text = hw_app_stands_by(a) ? NULL : hw_monitor_probe_answers(a->monitor);
	size_t n = w->n;
	int rc = text ? hw_topic_compile(answers, text, HW_TOPIC_ANY, &why) : 0;
	if (!text || rc)
		return rc;
	add_filter(w, answers, false);
	if (w->n > n)
		w->filters[n].filter = text; /* which stays */
	return 0;
}

/*
 * Every group's filters, without those that others cover. Without a store also its status topic, for the retained
 * messages that are all that is left of the run before. None of a node that stands by.
 */
int hw_app_filters(struct hw_app *a, struct hw_mqtt_filter **out, size_t *n_out)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	size_t most = 0, n_groups = hw_app_stands_by(a) ? 0 : g->n_order;
	for (size_t k = 0; k < n_groups; k++)
		most += g->all[g->order[k]]->n_heartbeat + g->all[g->order[k]]->n_goodbye + 1;
	for (size_t k = 0; k < n_groups; k++)
		most += g->all[g->order[k]]->n_whiles;
	most += OF_NODES + OF_PROBES;
	struct wanted w = {calloc(most, sizeof(*w.filters)), calloc(most, sizeof(*w.topics)), 0};
	if (!w.filters || !w.topics) {
		free(w.filters);
		free(w.topics);
		return -ENOMEM;
	}
	bool memory = a->conf->store == HW_STORE_MEMORY;
	for (size_t k = 0; k < n_groups; k++) {
		const struct hw_group *group = g->all[g->order[k]];
		for (size_t h = 0; h < group->n_heartbeat; h++)
			add_filter(&w, &group->heartbeat[h], false);
		for (size_t h = 0; h < group->n_goodbye; h++)
			add_filter(&w, &group->goodbye[h].topic, false);
		if (memory && group->status.filter)
			add_filter(&w, &group->status, true);
	}
	struct hw_topic answers = {0};
	int rc = add_answers(a, &w, &answers);
	drop_covered(&w);
	ask_for_flags(&w);
	free(w.topics);
	hw_topic_fini(&answers);
	if (rc)
		free(w.filters);
	*out = rc ? NULL : w.filters;
	*n_out = rc ? 0 : w.n;
	return rc;
}

/* A topic that one reader alone reads, with what is retained there. */
static size_t add_whole(struct hw_mqtt_filter *filters, size_t n, const char *topic)
{
	for (size_t k = 0; k < n; k++) {
		if (strcmp(filters[k].filter, topic) != 0)
			continue;
		filters[k].replay = filters[k].plain = true;
		filters[k].as_published = false;
		return n;
	}
	filters[n] = (struct hw_mqtt_filter){.filter = topic, .replay = true, .plain = true};
	return n + 1;
}

size_t hw_app_filters_of(const struct hw_app *a, unsigned reader, struct hw_mqtt_filter *filters, size_t n)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	if (reader != 0)
		return n;
	for (size_t k = 0; k < g->n_order && !hw_app_stands_by(a); k++)
		for (size_t w = 0; w < g->all[g->order[k]]->n_whiles; w++)
			n = add_whole(filters, n, g->all[g->order[k]]->whiles[w].topic);
	if (!a->cluster)
		return n;
	filters[n++] = (struct hw_mqtt_filter){.filter = "heartwheel/+/status", .replay = true, .plain = true};
	filters[n++] = (struct hw_mqtt_filter){.filter = "heartwheel/+/known", .replay = true, .plain = true};
	return n;
}

int hw_app_expect_copies(struct hw_app *a, const struct hw_mqtt_filter *filters, size_t n)
{
	return hw_copies_set(&a->copies, filters, a->start->mqtt.protocol == 5 ? n : 0);
}

int hw_app_subscribe(struct hw_app *a)
{
	struct hw_mqtt_filter *filters = NULL;
	size_t n = 0;
	int rc = hw_app_filters(a, &filters, &n);
	if (!rc)
		rc = hw_app_expect_copies(a, filters, n);
	for (unsigned i = 0; i < a->n_readers && a->reader[i].reader && !rc; i++)
		rc = hw_reader_set_filters(a->reader[i].reader, filters, hw_app_filters_of(a, i, filters, n));
	free(filters);
	return rc;
}
