/* SPDX-License-Identifier: MIT */
#include "incident/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum field { FIELD_ID, FIELD_GROUP, FIELD_LABEL };

struct term {
	enum field field;
	bool begins_line;        /* it is the first term of its line */
	const char *name, *glob; /* the name is that of a label */
};

struct hw_match {
	size_t n;
	struct term terms[HW_MATCH_TERMS];
	char text[]; /* the names and globs */
};

/* Copies the next term of a line, without its quotes, to *to, and moves both pointers. Returns the term; NULL: there is
 * none. */
static char *take_term(const char **in, char **to)
{
	while (**in == ' ' || **in == '\t')
		++*in;
	if (**in == '\0' || **in == '\n')
		return NULL;
	char *term = *to;
	bool quoted = false;
	for (; **in && **in != '\n' && (quoted || (**in != ' ' && **in != '\t')); ++*in)
		if (**in == '"')
			quoted = !quoted;
		else
			*(*to)++ = **in;
	*(*to)++ = '\0';
	return term;
}

static int read_term(char *text, struct term *out)
{
	char *value = strchr(text, ':');
	if (!value || value[1] == '\0')
		return -EINVAL;
	*value++ = '\0';
	*out = (struct term){.glob = value};
	if (strcmp(text, "id") == 0) {
		out->field = FIELD_ID;
	} else if (strcmp(text, "group") == 0) {
		out->field = FIELD_GROUP;
	} else if (strcmp(text, "label") == 0) {
		char *equals = strchr(value, '=');
		if (!equals || equals == value)
			return -EINVAL;
		*equals = '\0';
		*out = (struct term){.field = FIELD_LABEL, .name = value, .glob = equals + 1};
	} else {
		return -EINVAL;
	}
	return 0;
}

static int read_lines(struct hw_match *m, const char *in)
{
	char *to = m->text;
	for (bool begins = true; *in; begins = true, in += *in == '\n') {
		for (char *text; (text = take_term(&in, &to)) != NULL; begins = false) {
			if (m->n == HW_MATCH_TERMS || read_term(text, &m->terms[m->n]) != 0)
				return -EINVAL;
			m->terms[m->n++].begins_line = begins;
		}
	}
	return 0;
}

int hw_match_parse(const char *text, struct hw_match **out)
{
	size_t len = strlen(text), quotes = 0;
	if (len > HW_MATCH_TEXT)
		return -EINVAL;
	for (const char *p = text; *p; p++) {
		quotes += *p == '"';
		if (quotes % 2 && (p[1] == '\0' || p[1] == '\n')) /* a quote is closed on its line */
			return -EINVAL;
	}
	struct hw_match *m = calloc(1, sizeof(*m) + 2 * len + 2);
	if (!m)
		return -ENOMEM;
	int rc = read_lines(m, text);
	if (rc != 0) {
		hw_match_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

void hw_match_free(struct hw_match *m)
{
	free(m);
}

const char *hw_match_group(const struct hw_match *m, size_t *k)
{
	while (*k < m->n) {
		const struct term *t = &m->terms[(*k)++];
		if (t->field == FIELD_GROUP)
			return t->glob;
	}
	return NULL;
}

const char *hw_match_label(const struct hw_match *m, size_t *k)
{
	while (*k < m->n) {
		const struct term *t = &m->terms[(*k)++];
		if (t->field == FIELD_LABEL)
			return t->name;
	}
	return NULL;
}

static bool matches_label(const struct term *t, const char *labels)
{
	size_t name_len = strlen(t->name);
	while (labels && *labels) {
		const char *end = strchrnul(labels, '\n');
		if ((size_t)(end - labels) > name_len && labels[name_len] == '=' &&
		    memcmp(labels, t->name, name_len) == 0)
			return hw_glob(t->glob, labels + name_len + 1, (size_t)(end - labels) - name_len - 1);
		labels = *end ? end + 1 : end;
	}
	return false;
}

static bool matches_term(const struct term *t, const struct hw_match_subject *s)
{
	if (t->field == FIELD_LABEL)
		return matches_label(t, s->labels);
	const char *text = t->field == FIELD_ID ? s->id : s->group;
	return text && hw_glob(t->glob, text, strlen(text));
}

bool hw_match_is(const struct hw_match *m, const struct hw_match_subject *subject)
{
	if (!m || m->n == 0)
		return true;
	bool line = false;
	for (size_t k = 0; k < m->n; k++) {
		if (m->terms[k].begins_line && line)
			return true;
		line = (m->terms[k].begins_line || line) && matches_term(&m->terms[k], subject);
	}
	return line;
}
