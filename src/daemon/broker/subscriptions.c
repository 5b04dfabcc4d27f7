/* SPDX-License-Identifier: MIT */
/* The readers' subscriptions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker_priv.h"
#include "heartwheel/filter_index.h"

#define STATUS    "heartwheel/+/status"
#define KNOWN     "heartwheel/+/known"
#define OF_NODES  2 /* filters for the nodes' presences */
#define OF_PROBES 1

struct wanted {
	struct hw_mqtt_filter *filters;
	const struct hw_topic **topics;
	size_t n;
	struct hw_filter_index index; /* of the filters */
	int rc;
};

/* A filter that is compared with the others. */
struct compared {
	const struct wanted *w;
	size_t k;
};

static bool get(void *arg, size_t k)
{
	*(size_t *)arg = k;
	return true;
}

static void add_filter(struct wanted *w, const struct hw_topic *topic, bool replay)
{
	size_t k;
	if (hw_filter_index_equal(&w->index, topic->filter, get, &k)) {
		w->filters[k].replay |= replay;
		return;
	}
	w->rc = w->rc ? w->rc : hw_filter_index_add(&w->index, topic->filter, w->n);
	w->topics[w->n] = topic;
	w->filters[w->n++] = (struct hw_mqtt_filter){.filter = topic->filter, .replay = replay};
}

/* Whether filter i covers filter c->k, so that c->k is unnecessary. A filter with levels after {name...} covers no
 * other filter: it could only cover one with the same text, and each text occurs once. */
static bool makes_needless(void *arg, size_t i)
{
	const struct compared *c = arg;
	const struct wanted *w = c->w;
	return i != c->k && (w->filters[i].replay || !w->filters[c->k].replay) && w->topics[i]->tail == 0;
}

/* Drops filters that others cover. Many brokers send a message once for each matching filter, so a message would
 * arrive twice. */
static int drop_covered(struct wanted *w)
{
	bool *covered = calloc(w->n + 1, sizeof(*covered));
	size_t left = 0;
	if (!covered)
		return -ENOMEM;
	for (size_t k = 0; k < w->n; k++)
		covered[k] = hw_filter_index_covers(&w->index, w->filters[k].filter, makes_needless,
		                                    &(struct compared){w, k});
	for (size_t k = 0; k < w->n; k++)
		if (!covered[k])
			w->filters[left++] = w->filters[k];
	w->n = left;
	free(covered);
	return 0;
}

/* Decides for each filter whether the broker keeps the retain flag of new messages. If retained messages of a topic are
 * requested, the flag marks the old messages of the topic, so new messages must come without the flag. A filter that
 * overlaps with such a topic does not request the flag. */
static int ask_for_flags(struct wanted *w)
{
	struct hw_filter_index history = {0};
	int rc = 0;
	size_t k;
	for (k = 0; k < w->n && rc == 0; k++)
		if (w->filters[k].replay)
			rc = hw_filter_index_add(&history, w->filters[k].filter, k);
	for (size_t i = 0; i < w->n && rc == 0; i++)
		w->filters[i].as_published = !hw_filter_index_overlaps(&history, w->filters[i].filter, get, &k);
	hw_filter_index_fini(&history);
	return rc;
}

/* Adds the topic on which probes are answered, compiled into `answers`. */
static int add_answers(struct hw_app *a, struct wanted *w, struct hw_topic *answers)
{
	const char *why, *text = hw_app_stands_by(a) ? NULL : hw_monitor_probe_answers(a->monitor);
	size_t n = w->n;
	int rc = text ? hw_topic_compile(answers, text, HW_TOPIC_ANY, &why) : 0;
	if (!text || rc)
		return rc;
	add_filter(w, answers, false);
	if (w->n > n)
		w->filters[n].filter = text; /* `answers` is freed, `text` is not */
	return 0;
}

/* Puts the filters of all groups into `w`, except filters that other filters cover. Without a store, also adds the
 * status topics, because only the retained statuses show the states of the previous run. A node that stands by has no
 * filters. */
static void add_groups(struct hw_app *a, struct wanted *w)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	bool memory = a->conf->store == HW_STORE_MEMORY;
	for (size_t k = 0; k < g->n_order && !hw_app_stands_by(a); k++) {
		const struct hw_group *group = g->all[g->order[k]];
		for (size_t h = 0; h < group->n_heartbeat; h++)
			add_filter(w, &group->heartbeat[h], false);
		for (size_t h = 0; h < group->n_goodbye; h++)
			add_filter(w, &group->goodbye[h].topic, false);
		if (memory && group->status.filter)
			add_filter(w, &group->status, true);
	}
	struct hw_topic answers = {0};
	int rc = add_answers(a, w, &answers);
	if (!w->rc)
		w->rc = rc;
	if (!w->rc)
		w->rc = drop_covered(w);
	if (!w->rc)
		w->rc = ask_for_flags(w);
	hw_topic_fini(&answers);
}

/* The filters of reader 0, and an index of them. */
struct own {
	struct hw_mqtt_filter *filters;
	size_t n;
	struct hw_filter_index index;
	bool indexed; /* there was memory for the index */
};

static void note(struct own *o, size_t k)
{
	o->indexed = o->indexed && hw_filter_index_add(&o->index, o->filters[k].filter, k) == 0;
}

static size_t find(const struct own *o, const char *topic)
{
	size_t k = o->n;
	if (o->indexed)
		hw_filter_index_equal(&o->index, topic, get, &k);
	else
		for (k = 0; k < o->n && strcmp(o->filters[k].filter, topic) != 0;)
			k++;
	return k;
}

/* Whether the filter is for retained statuses (see ask_for_flags()). The topics of `while` do not count, because the
 * core finds out when their retained values have arrived. */
static bool brings_history(void *arg, size_t k)
{
	const struct own *o = arg;
	return o->filters[k].replay && !o->filters[k].plain;
}

/* Adds a topic to which only one reader subscribes, with its retained messages. */
static void add_whole(struct own *o, const char *topic)
{
	size_t k = find(o, topic);
	if (k < o->n) {
		o->filters[k].replay = o->filters[k].plain = o->filters[k].renew = true;
		return;
	}
	bool history = !o->indexed || hw_filter_index_overlaps(&o->index, topic, brings_history, o);
	o->filters[o->n++] = (struct hw_mqtt_filter){
		.filter = topic, .replay = true, .plain = true, .as_published = !history, .renew = true};
	note(o, k);
}

/* Only reader 0 subscribes to the topics of `while`. */
static size_t add_whiles(const struct hw_app *a, struct hw_mqtt_filter *filters, size_t n)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	struct own o = {.filters = filters, .n = n, .indexed = true};
	for (size_t k = 0; k < n; k++)
		note(&o, k);
	for (size_t k = 0; k < g->n_order && !hw_app_stands_by(a); k++)
		for (size_t w = 0; w < g->all[g->order[k]]->n_whiles; w++)
			add_whole(&o, g->all[g->order[k]]->whiles[w].topic);
	hw_filter_index_fini(&o.index);
	return o.n;
}

/* Chooses, from the filters of reader 0, the filters of the other readers. */
static void choose_shared(struct hw_app_filters *f)
{
	for (size_t k = 0; k < f->n; k++)
		if (!f->all[k].plain)
			f->shared[f->n_shared++] = f->all[k];
}

int hw_app_filters(struct hw_app *a, struct hw_app_filters *out)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	size_t most = OF_NODES + OF_PROBES;
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *group = g->all[g->order[k]];
		most += group->n_heartbeat + group->n_goodbye + 1 + group->n_whiles;
	}
	struct wanted w = {.filters = calloc(2 * most, sizeof(*w.filters)), .topics = calloc(most, sizeof(*w.topics))};
	w.rc = w.filters && w.topics ? 0 : -ENOMEM;
	if (!w.rc)
		add_groups(a, &w);
	hw_filter_index_fini(&w.index);
	free(w.topics);
	if (w.rc) {
		free(w.filters);
		return w.rc;
	}
	*out = (struct hw_app_filters){.all = w.filters, .shared = w.filters + most};
	out->n = add_whiles(a, out->all, w.n);
	/* A broker sends no retained message to a shared subscription (MQTT 5.0, section 4.8.2). */
	for (size_t k = 0; k < out->n; k++)
		out->all[k].plain = out->all[k].replay;
	out->n_devices = out->n;
	if (a->cluster) {
		out->all[out->n++] = (struct hw_mqtt_filter){.filter = STATUS, .replay = true, .plain = true};
		out->all[out->n++] = (struct hw_mqtt_filter){.filter = KNOWN, .replay = true, .plain = true};
	}
	choose_shared(out);
	return 0;
}

bool hw_app_nodes_are_flagged(struct hw_app *a)
{
	struct hw_app_filters f;
	if (a->start->mqtt.protocol != 5)
		return false;
	if (hw_app_filters(a, &f) < 0)
		return true;
	bool flagged = false;
	for (size_t k = 0; k < f.n_devices; k++)
		flagged |= f.all[k].as_published && (hw_topic_filters_overlap(f.all[k].filter, STATUS) ||
		                                     hw_topic_filters_overlap(f.all[k].filter, KNOWN));
	free(f.all);
	return flagged;
}

int hw_app_expect_copies(struct hw_app *a, const struct hw_app_filters *f)
{
	return hw_copies_set(&a->broker->copies, f->all, a->start->mqtt.protocol == 5 ? f->n_devices : 0);
}

int hw_app_subscribe(struct hw_app *a, bool restarts)
{
	struct hw_app_filters f;
	int rc = hw_app_filters(a, &f);
	if (rc)
		return rc;
	rc = hw_app_expect_copies(a, &f);
	for (unsigned i = 0; i < a->broker->n_readers && a->broker->reader[i].reader && !rc; i++)
		rc = hw_reader_set_filters(a->broker->reader[i].reader, i ? f.shared : f.all, i ? f.n_shared : f.n);
	free(f.all);
	for (unsigned i = 0; i < a->broker->n_readers && a->broker->reader[i].reader && restarts && !rc; i++) {
		a->broker->reader[i].renewed = true;
		hw_reader_reconnect(a->broker->reader[i].reader);
	}
	return rc;
}
