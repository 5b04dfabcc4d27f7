/* SPDX-License-Identifier: MIT */
/* Operations on the value in a field: compare, copy, print, free. Each operation is a switch on the type. */
#include "conf/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const void *field_of(const struct hw_conf_option *o, const void *base)
{
	return (const char *)base + o->offset;
}

static char *const *list_of(const struct hw_conf_option *o, const void *base, size_t *n)
{
	*n = *(const size_t *)(const void *)((const char *)base + o->count_offset);
	return *(char *const *const *)field_of(o, base);
}

static const char *text_of(const struct hw_conf_option *o, const void *base)
{
	return *(char *const *)field_of(o, base);
}

static bool is_text(const struct hw_conf_option *o)
{
	switch (o->type) {
	case HW_CONF_STRING:
	case HW_CONF_WORD:
	case HW_CONF_ID:
	case HW_CONF_PATH:
	case HW_CONF_ADDRESS:
	case HW_CONF_LOG:
	case HW_CONF_NODE_ID:
	case HW_CONF_TOPIC:
		return true;
	case HW_CONF_INT:
	case HW_CONF_DURATION:
	case HW_CONF_BOOL:
	case HW_CONF_ENUM:
	case HW_CONF_TOPICS:
		break;
	}
	return false;
}

static bool lists_equal(const struct hw_conf_option *o, const void *a, const void *b)
{
	size_t na, nb;
	char *const *la = list_of(o, a, &na), *const *lb = list_of(o, b, &nb);

	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (strcmp(la[i], lb[i]) != 0)
			return false;
	return true;
}

bool hw_conf_value_equal(const struct hw_conf_option *o, const void *a, const void *b)
{
	if (o->type == HW_CONF_TOPICS)
		return lists_equal(o, a, b);
	if (is_text(o))
		return strcmp(text_of(o, a), text_of(o, b)) == 0;
	return memcmp(field_of(o, a), field_of(o, b), o->size) == 0;
}

int hw_conf_value_copy(const struct hw_conf_option *o, const void *from, void *to)
{
	void *field = (char *)to + o->offset;
	char *copy;
	if (!is_text(o)) {
		memcpy(field, field_of(o, from), o->size);
		return 0;
	}
	copy = strdup(text_of(o, from));
	if (!copy)
		return -ENOMEM;
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

static const char *choice_name(const struct hw_conf_option *o, int value)
{
	const struct hw_conf_choice *c = o->choices;
	while (c->name && c->value != value)
		c++;
	return c->name ? c->name : "";
}

/* Prints a key and its value. Leaves out the spaces around `=` if the value would otherwise be read as a comment. */
static void print_text(const char *key, const char *text, FILE *out)
{
	bool tight = text[0] == ';';
	fprintf(out, tight ? "%s=%s\n" : *text ? "%s = %s\n" : "%s =%s\n", key, text);
}

void hw_conf_value_print(const struct hw_conf_option *o, const void *base, FILE *out)
{
	const void *field = field_of(o, base);
	char buf[32];
	if (o->type == HW_CONF_TOPICS) {
		size_t n;
		char *const *list = list_of(o, base, &n);
		for (size_t i = 0; i < n; i++)
			print_text(o->key, list[i], out);
	} else if (is_text(o)) {
		print_text(o->key, text_of(o, base), out);
	} else if (o->type == HW_CONF_INT) {
		fprintf(out, "%s = %lld\n", o->key, (long long)*(const int64_t *)field);
	} else if (o->type == HW_CONF_DURATION) {
		hw_conf_duration_format(*(const int64_t *)field, buf, sizeof(buf));
		print_text(o->key, buf, out);
	} else if (o->type == HW_CONF_BOOL) {
		print_text(o->key, *(const bool *)field ? "yes" : "no", out);
	} else {
		print_text(o->key, choice_name(o, *(const int *)field), out);
	}
}

void hw_conf_value_free(const struct hw_conf_option *o, void *base)
{
	if (o->type == HW_CONF_TOPICS) {
		size_t n;
		char *const *list = list_of(o, base, &n);
		for (size_t i = 0; i < n; i++)
			free(list[i]);
		free(*(char ***)((char *)base + o->offset));
	} else if (is_text(o)) {
		free(*(char **)((char *)base + o->offset));
	}
}
