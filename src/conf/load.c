/* SPDX-License-Identifier: MIT */
/*
 * The life of a configuration: loaded whole or not at all, printed, freed. All of it runs over the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/parse.h"
#include "conf/value.h"

static void load(struct hw_conf_parse *p, const char *path)
{
	p->conf->path = strdup(path);
	if (!p->conf->path) {
		p->errors.no_memory = true;
		return;
	}
	p->file = fopen(path, "re");
	if (!p->file) {
		hw_conf_wrong(&p->errors, 0, NULL, NULL, "cannot be opened: %s", strerror(errno));
		return;
	}
	hw_conf_parse_file(p);
	fclose(p->file);
	hw_conf_complete(p);
}

struct hw_conf *hw_conf_load(const char *path, hw_conf_template_check *check, struct hw_conf_errors *errors)
{
	struct hw_conf_parse p = {.errors = {.path = path}, .check = check};
	struct hw_conf *conf = p.conf = calloc(1, sizeof(*conf));

	if (!conf) {
		p.errors.no_memory = true;
	} else {
		load(&p, path);
		hw_conf_parse_fini(&p);
	}
	if (!hw_conf_any_wrong(&p.errors))
		return conf;
	hw_conf_hand_over(&p.errors, errors);
	if (conf && conf->lines)
		errors->rest = conf;
	else
		hw_conf_free(conf);
	return NULL;
}

void hw_conf_free(struct hw_conf *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < hw_conf_n_options; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		if (!hw_conf_option_in_group(o))
			hw_conf_value_free(o, c);
		for (size_t g = 0; hw_conf_option_in_group(o) && g < c->n_groups; g++)
			hw_conf_value_free(o, &c->groups[g]);
	}
	for (size_t g = 0; g < c->n_groups; g++)
		free(c->groups[g].name);
	free(c->groups);
	free(c->lines);
	free(c->path);
	free(c);
}

unsigned hw_conf_line(const struct hw_conf *c, const char *section, const char *key)
{
	return c->lines[hw_conf_option_find(section, key)];
}

static void print_section(const struct hw_conf_option *first, const void *base, FILE *out)
{
	const struct hw_conf_option *end = hw_conf_options + hw_conf_n_options;

	for (const struct hw_conf_option *o = first; o < end && strcmp(o->section, first->section) == 0; o++)
		hw_conf_value_print(o, base, out);
}

void hw_conf_print(const struct hw_conf *c, FILE *out)
{
	for (size_t i = 0; i < hw_conf_n_options; i++) {
		const struct hw_conf_option *o = &hw_conf_options[i];
		if (hw_conf_option_in_group(o) || hw_conf_option_find(o->section, NULL) != (int)i)
			continue;
		fprintf(out, "[%s]\n", o->section);
		print_section(o, c, out);
	}
	for (size_t g = 0; g < c->n_groups; g++) {
		fprintf(out, "[group %s]\n", c->groups[g].name);
		print_section(&hw_conf_options[hw_conf_option_find("group", NULL)], &c->groups[g], out);
	}
}
