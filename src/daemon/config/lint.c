/* SPDX-License-Identifier: MIT */
/* See lint.h. Runs at the start, at a reload, and with -t. */
#include "lint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/context.h"
#include "heartwheel/filter_index.h"
#include "specs.h"

struct lint {
	const struct hw_settings *conf;
	struct hw_groups groups; /* one for each group of the file, in its order */
	void (*report)(void *arg, const struct hw_settings_group *g, const char *text);
	void *arg;
	/* The filters by which earlier groups take or ignore topics, each with its group's index in the file. A filter
	 * with {name...} before its last level covers only itself, so its text is in `texts`. */
	struct hw_filter_index earlier, texts;
	struct covering *by; /* one for each group of the file */
};

/* How many filters of the present group are covered by the filters of one earlier group. */
struct covering {
	size_t n;      /* filters, counted while `group` is the present group */
	size_t group;  /* the present group */
	size_t filter; /* the last one that was counted */
};

static const struct hw_topic *heard_at(const struct hw_group *g, size_t i)
{
	return i < g->n_heartbeat ? &g->heartbeat[i] : &g->goodbye[i - g->n_heartbeat].topic;
}

static size_t n_heard(const struct hw_group *g)
{
	return g->n_heartbeat + g->n_goodbye;
}

/* The position of the filter that is being compared. */
struct place {
	struct lint *l;
	size_t group, filter;
};

static bool count(void *arg, size_t earlier)
{
	const struct place *p = arg;
	struct covering *c = &p->l->by[earlier];
	if (c->n > 0 && c->group == p->group && c->filter == p->filter)
		return false;
	*c = (struct covering){c->group == p->group ? c->n + 1 : 1, p->group, p->filter};
	return false;
}

/* Finds the first earlier group whose filters take or ignore every topic of this group. Returns `at` if there is
 * none. */
static size_t find_shadow(struct lint *l, size_t at)
{
	const struct hw_group *g = l->groups.all[at];
	size_t i = 0;
	for (size_t k = 0; k < n_heard(g); k++) {
		struct place p = {l, at, k};
		hw_filter_index_covers(&l->earlier, heard_at(g, k)->filter, count, &p);
		if (heard_at(g, k)->tail > 0)
			hw_filter_index_equal(&l->texts, heard_at(g, k)->text, count, &p);
	}
	while (i < at && n_heard(g) > 0 && (l->by[i].group != at || l->by[i].n < n_heard(g)))
		i++;
	return i;
}

static int add_earlier(struct lint *l, const struct hw_topic *t, size_t at)
{
	return t->tail > 0 ? hw_filter_index_add(&l->texts, t->text, at)
	                   : hw_filter_index_add(&l->earlier, t->filter, at);
}

static int check_shadow(struct lint *l, size_t at)
{
	const struct hw_group *g = l->groups.all[at];
	size_t i = find_shadow(l, at);
	char text[256];
	int rc = 0;
	if (i < at) {
		snprintf(text, sizeof(text),
		         "never matches: [group %s] is above it, and its filters match all of these topics; move this "
		         "group above that one",
		         l->conf->groups[i].name);
		l->report(l->arg, &l->conf->groups[at], text);
	}
	for (size_t k = 0; k < n_heard(g) && rc == 0; k++)
		rc = add_earlier(l, heard_at(g, k), at);
	for (size_t k = 0; k < g->n_ignore && rc == 0; k++)
		rc = add_earlier(l, &g->ignore[k], at);
	return rc;
}

/* Whether a `+` comes before the last name in braces: devices in different places may then get the same id. (Levels
 * after that name belong to one device.) */
static bool joins_places(const char *text)
{
	const char *last = strrchr(text, '{');
	for (const char *plus = strchr(text, '+'); plus; plus = strchr(plus + 1, '+'))
		if (last && plus < last)
			return true;
	return false;
}

static void check_places(const struct lint *l, size_t at)
{
	const struct hw_group *g = l->groups.all[at];
	char text[512];
	for (size_t i = 0; i < n_heard(g); i++) {
		const char *filter = heard_at(g, i)->text;
		if (!joins_places(filter))
			continue;
		snprintf(text, sizeof(text),
		         "'%.200s': two devices that differ only in the level at + are one device; name that level, "
		         "such as {place}, and set id = {place}/{id}",
		         filter);
		l->report(l->arg, &l->conf->groups[at], text);
	}
}

/* Checks whether groups have the same status topics. Two groups with different id_prefixes have different ids, but
 * the status topic does not contain the id_prefix. */
static void check_status(const struct lint *l, size_t at)
{
	const struct hw_settings_group *g = &l->conf->groups[at];
	char text[256];
	for (size_t i = 0; i < at; i++) {
		const struct hw_settings_group *before = &l->conf->groups[i];
		if (!*g->status || strcmp(g->status, before->status) != 0 ||
		    strcmp(g->id_prefix, before->id_prefix) == 0)
			continue;
		snprintf(text, sizeof(text),
		         "has the status topic of [group %s]; their devices differ only in id_prefix, which is not "
		         "part of the topic; give one of the groups another status",
		         before->name);
		l->report(l->arg, g, text);
		return;
	}
}

/* Checks whether keys about parents have an effect. The inventory may also give parents. */
static void check_parents(const struct lint *l, size_t at)
{
	const struct hw_settings_group *g = &l->conf->groups[at];
	char text[256];
	if (g->n_parents > 0 || !(g->child_proves || g->parent_death == HW_PARENT_TAKE))
		return;
	snprintf(
		text, sizeof(text),
		"has %s, but no parent: only devices whose entry in the inventory has a parent obey it; add parent, or "
		"remove this line",
		g->child_proves ? "child_proves" : "parent_death");
	l->report(l->arg, g, text);
}

int hw_lint(const struct hw_settings *c, void (*report)(void *arg, const struct hw_settings_group *g, const char *text),
            void *arg)
{
	struct hw_group_spec *specs = hw_app_group_specs(c);
	struct lint l = {.conf = c, .report = report, .arg = arg};
	int rc = specs ? 0 : -ENOMEM;
	hw_groups_init(&l.groups);
	l.by = calloc(c->n_groups + 1, sizeof(*l.by));
	if (rc == 0)
		rc = l.by ? hw_groups_set(&l.groups, specs, c->n_groups) : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < c->n_groups; i++) {
		rc = check_shadow(&l, i);
		check_places(&l, i);
		check_status(&l, i);
		check_parents(&l, i);
	}
	hw_filter_index_fini(&l.earlier);
	hw_filter_index_fini(&l.texts);
	free(l.by);
	hw_groups_fini(&l.groups);
	free(specs);
	return rc;
}
