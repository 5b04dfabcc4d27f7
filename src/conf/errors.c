/* SPDX-License-Identifier: MIT */
/*
 * The list of errors, at most HW_CONF_ERRORS_MAX lines. Functions here return no error. If memory runs out, the list
 * records this; the file is then refused at the end, and one place reports the reason.
 */
#include "conf/errors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hw_conf_shown(const char *text, char *buf, size_t cap)
{
	size_t i;
	for (i = 0; text[i] && i + 1 < cap; i++)
		buf[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	buf[i] = '\0';
	if (text[i] && cap > 3)
		memcpy(buf + cap - 4, "...", 4);
	return buf;
}

static void push(struct hw_conf_errlist *l, unsigned line, char *text)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		struct hw_conf_found *grown = reallocarray(l->found, cap, sizeof(*grown));
		if (!grown) {
			l->no_memory = true;
			free(text);
			return;
		}
		l->found = grown;
		l->cap = cap;
	}
	l->found[l->n] = (struct hw_conf_found){.line = line, .order = l->n, .text = text};
	l->n++;
}

void hw_conf_wrong(struct hw_conf_errlist *l, unsigned line, const char *what, const char *name, const char *fmt, ...)
{
	char why[512], place[16] = "", subject[128] = "", shown[96], *text;
	va_list ap;
	if (l->n == HW_CONF_ERRORS_MAX) {
		l->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (line)
		snprintf(place, sizeof(place), ":%u", line);
	if (what)
		snprintf(subject, sizeof(subject), "%s '%s': ", what, hw_conf_shown(name, shown, sizeof(shown)));
	if (asprintf(&text, "%s%s: %s%s", l->path, place, subject, why) < 0)
		l->no_memory = true;
	else
		push(l, line, text);
}

bool hw_conf_any_wrong(const struct hw_conf_errlist *l)
{
	return l->n > 0 || l->no_memory;
}

static int by_line(const void *left, const void *right)
{
	const struct hw_conf_found *a = left, *b = right;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* The last line of an incomplete list. */
static char *rest(const struct hw_conf_errlist *l)
{
	char *text = NULL;
	int ok = 0;
	if (l->no_memory)
		ok = asprintf(&text, "%s: cannot be checked: out of memory", l->path);
	else if (l->more)
		ok = asprintf(&text, "%s: %zu more errors; is it the right file?", l->path, l->more);
	return ok < 0 ? NULL : text;
}

void hw_conf_hand_over(struct hw_conf_errlist *l, struct hw_conf_errors *out)
{
	char *last = rest(l);
	if (l->n)
		qsort(l->found, l->n, sizeof(*l->found), by_line);
	out->n = 0;
	out->lines = calloc(l->n + 1, sizeof(*out->lines));
	out->no_memory = l->no_memory || !out->lines;
	for (size_t i = 0; i < l->n; i++) {
		if (out->lines)
			out->lines[out->n++] = l->found[i].text;
		else
			free(l->found[i].text);
	}
	if (last && out->lines)
		out->lines[out->n++] = last;
	else
		free(last);
	free(l->found);
	*l = (struct hw_conf_errlist){.path = l->path};
}
