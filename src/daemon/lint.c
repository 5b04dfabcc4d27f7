/* SPDX-License-Identifier: MIT */
/* See lint.h. Quadratic in the groups' filters; runs at the start, at a reload and with -t. */
#include "lint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "specs.h"

struct lint {
	const struct hw_settings *conf;
	struct hw_groups groups; /* as many as the file has, in its order */
	void (*say)(void *arg, const struct hw_settings_group *g, const char *text);
	void *arg;
};

static const struct hw_topic *heard_at(const struct hw_group *g, size_t i)
{
	return i < g->n_heartbeat ? &g->heartbeat[i] : &g->goodbye[i - g->n_heartbeat].topic;
}

static size_t n_heard(const struct hw_group *g)
{
	return g->n_heartbeat + g->n_goodbye;
}

/* Whether a group that stands before has all that a filter can bring, be it to ignore it. */
static bool takes(const struct hw_group *g, const struct hw_topic *filter)
{
	for (size_t i = 0; i < n_heard(g); i++)
		if (hw_topic_covers(heard_at(g, i), filter))
			return true;
	for (size_t i = 0; i < g->n_ignore; i++)
		if (hw_topic_covers(&g->ignore[i], filter))
			return true;
	return false;
}

static bool shadows(const struct hw_group *before, const struct hw_group *g)
{
	for (size_t i = 0; i < n_heard(g); i++)
		if (!takes(before, heard_at(g, i)))
			return false;
	return true;
}

static void check_shadow(const struct lint *l, size_t at)
{
	char text[256];
	for (size_t i = 0; i < at; i++) {
		if (!shadows(l->groups.all[i], l->groups.all[at]))
			continue;
		snprintf(text, sizeof(text),
		         "takes nothing: [group %s] stands before it, and its filters have all of these topics; put "
		         "this group before that one",
		         l->conf->groups[i].name);
		l->say(l->arg, &l->conf->groups[at], text);
		return;
	}
}

/* Whether a `+` stands before the last name in braces: what stands behind that belongs to one device. */
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
		         "'%.200s': where + stands for two places, devices of one name there are one device; give it a "
		         "name, such as {place}, and id = {place}/{id}",
		         filter);
		l->say(l->arg, &l->conf->groups[at], text);
	}
}

/* An id_prefix keeps two groups' ids apart; it is no part of a status' topic, so that one may still stand for both. */
static void check_status(const struct lint *l, size_t at)
{
	const struct hw_settings_group *g = &l->conf->groups[at];
	char text[256];
	for (size_t i = 0; i < at; i++) {
		const struct hw_settings_group *before = &l->conf->groups[i];
		if (!*g->status || strcmp(g->status, before->status) != 0 ||
		    strcmp(g->id_prefix, before->id_prefix) == 0)
			continue;
		snprintf(
			text, sizeof(text),
			"has the status topic of [group %s], and only id_prefix keeps their devices apart, which is no "
			"part of it: give one of them another status",
			before->name);
		l->say(l->arg, g, text);
		return;
	}
}

int hw_lint(const struct hw_settings *c, void (*say)(void *arg, const struct hw_settings_group *g, const char *text),
            void *arg)
{
	struct hw_group_spec *specs = hw_app_group_specs(c);
	struct lint l = {.conf = c, .say = say, .arg = arg};
	int rc;
	if (!specs)
		return -ENOMEM;
	hw_groups_init(&l.groups);
	rc = hw_groups_set(&l.groups, specs, c->n_groups);
	for (size_t i = 0; rc == 0 && i < c->n_groups; i++) {
		check_shadow(&l, i);
		check_places(&l, i);
		check_status(&l, i);
	}
	hw_groups_fini(&l.groups);
	free(specs);
	return rc;
}
