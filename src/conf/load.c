/* SPDX-License-Identifier: MIT */
/* Loads a configuration, completely or not at all. Also prints and frees it. All of this uses the table. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/file.h"
#include "conf/parse.h"
#include "conf/value.h"

static int keep_lines(struct hw_conf_draft *d)
{
	d->conf->lines = calloc(d->table->n_options, sizeof(*d->conf->lines));
	if (!d->conf->lines)
		return -ENOMEM;
	for (size_t i = 0; i < d->table->n_options; i++)
		d->conf->lines[i] = d->origins.key[i].line;
	return 0;
}

/* Called after the last line: sets defaults and applies the program's rules. */
static void complete(struct hw_conf_draft *d)
{
	const struct hw_conf_table *t = d->table;
	hw_conf_draft_defaults(d, NULL, d->conf, &d->origins);
	for (const struct hw_conf_named *k = t->named; k < t->named + HW_CONF_KINDS_MAX && k->kind; k++)
		if (k->dflt && hw_conf_named_count(k, d->conf) == 0 && hw_conf_draft_add(d, k, k->dflt, 0))
			d->errors.no_memory = true;
	if (d->errors.no_memory)
		return; /* fields may be missing */
	if (keep_lines(d))
		d->errors.no_memory = true;
	else if (t->judge)
		t->judge(d);
}

static void load(struct hw_conf_draft *d, const char *path, bool again)
{
	d->conf->table = d->table;
	d->conf->path = strdup(path);
	if (!d->conf->path) {
		d->errors.no_memory = true;
		return;
	}
	int rc = again ? hw_file_check(path) : 0;
	FILE *file = rc == 0 ? fopen(path, "re") : NULL;
	if (!file) {
		hw_conf_wrong(&d->errors, 0, NULL, NULL, "cannot be opened: %s", hw_file_error(rc ? -rc : errno));
		return;
	}
	hw_conf_parse(file, d);
	fclose(file);
	complete(d);
}

static void *load_as(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors, bool again)
{
	struct hw_conf_draft d = {.table = table, .errors = {.path = path}};
	struct hw_conf_head *conf = d.conf = calloc(1, table->size);
	if (!conf) {
		d.errors.no_memory = true;
	} else {
		load(&d, path, again);
		hw_conf_draft_fini(&d);
	}
	if (!hw_conf_any_wrong(&d.errors))
		return conf;
	hw_conf_hand_over(&d.errors, errors);
	if (conf && conf->lines)
		errors->rest = conf;
	else
		hw_conf_free(conf);
	return NULL;
}

void *hw_conf_load(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors)
{
	return load_as(table, path, errors, false);
}

void *hw_conf_load_again(const struct hw_conf_table *table, const char *path, struct hw_conf_errors *errors)
{
	return load_as(table, path, errors, true);
}

static void free_fields(const struct hw_conf_table *t, const struct hw_conf_named *kind, void *base)
{
	for (size_t i = 0; i < t->n_options; i++)
		if (hw_conf_kind_find(t, t->options[i].section) == kind)
			hw_conf_value_free(&t->options[i], base);
}

void hw_conf_free(void *conf)
{
	struct hw_conf_head *head = conf;
	if (!head)
		return;
	const struct hw_conf_table *t = head->table;
	free_fields(t, NULL, conf);
	for (const struct hw_conf_named *k = t->named; k < t->named + HW_CONF_KINDS_MAX && k->kind; k++) {
		for (size_t i = 0; i < hw_conf_named_count(k, conf); i++) {
			void *section = hw_conf_named_at(k, conf, i);
			free_fields(t, k, section);
			free(*(char **)section);
		}
		free(hw_conf_named_at(k, conf, 0));
	}
	for (size_t i = 0; i < head->n_groups; i++)
		free(head->groups[i]);
	free(head->groups);
	for (size_t i = 0; i < head->n_labels; i++)
		free(head->labels[i]);
	free(head->labels);
	free(head->lines);
	free(head->path);
	free(conf);
}

/* Not in errors.c, because `rest` is a configuration. */
void hw_conf_errors_fini(struct hw_conf_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->lines[i]);
	free(e->lines);
	hw_conf_free(e->rest);
	*e = (struct hw_conf_errors){0};
}

unsigned hw_conf_line(const void *conf, const char *section, const char *key)
{
	const struct hw_conf_head *head = conf;
	return head->lines[hw_conf_option_find(head->table, section, key)];
}

static void print_section(const struct hw_conf_table *t, const char *section, const void *base, FILE *out)
{
	for (size_t i = 0; i < t->n_options; i++)
		if (strcmp(t->options[i].section, section) == 0)
			hw_conf_value_print(&t->options[i], base, out);
}

void hw_conf_print(const void *conf, FILE *out)
{
	const struct hw_conf_head *head = conf;
	const struct hw_conf_table *t = head->table;
	for (size_t i = 0; i < t->n_options; i++) {
		const struct hw_conf_option *o = &t->options[i];
		if (hw_conf_option_is_named(t, o) || hw_conf_option_find(t, o->section, NULL) != (int)i)
			continue;
		fprintf(out, "[%s]\n", o->section);
		print_section(t, o->section, conf, out);
	}
	for (const struct hw_conf_named *k = t->named; k < t->named + HW_CONF_KINDS_MAX && k->kind; k++)
		for (size_t i = 0; i < hw_conf_named_count(k, conf); i++) {
			const void *section = hw_conf_named_at(k, conf, i);
			fprintf(out, "[%s %s]\n", k->kind, hw_conf_named_name(section));
			print_section(t, k->kind, section, out);
		}
}

void hw_conf_print_foreign(const void *conf, FILE *out)
{
	const struct hw_conf_head *head = conf;
	for (int i = 0; hw_conf_family[i].section; i++)
		if (head->sections[i] && hw_conf_is_foreign(head->table, i))
			fprintf(out, "# [%s] in line %u belongs to another program\n", hw_conf_family[i].section,
			        head->sections[i]);
}

void hw_conf_report_wrong(const void *conf, const char *path, const char *section, const char *key, const char *format,
                          ...)
{
	unsigned where = hw_conf_line(conf, section, key);
	va_list args;
	if (where)
		fprintf(stderr, "%s:%u: key '%s': ", path, where, key);
	else
		fprintf(stderr, "%s: key '%s': ", path, key);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
