/* SPDX-License-Identifier: MIT */
/* The labels of a group. See heartwheel/group.h and label.h. */
#include "heartwheel/label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/utf8.h"

bool hw_label_name_valid(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || name[i] == '_' ||
		      (i > 0 && name[i] >= '0' && name[i] <= '9')))
			return false;
	return len > 0 && len <= HW_LABEL_NAME_MAX;
}

int hw_group_label_compile(struct hw_group_label *l, const char *text, const char **why)
{
	size_t len = strcspn(text, " \t");
	const char *value = text + len + strspn(text + len, " \t");
	*l = (struct hw_group_label){.name = NULL};
	*why = !hw_label_name_valid(text, len)
	               ? "is no label: give NAME VALUE, such as site {site}; a name has a-z, 0-9 and _, at most 32"
	       : !*value ? "has no value after its name: give NAME VALUE, such as site {site}"
	                 : NULL;
	if (*why)
		return -EINVAL;
	int rc = hw_pattern_compile(&l->value, value, why);
	if (rc == 0 && !(l->name = strndup(text, len)))
		rc = -ENOMEM;
	if (rc != 0)
		hw_group_label_fini(l);
	return rc;
}

void hw_group_label_fini(struct hw_group_label *l)
{
	hw_pattern_fini(&l->value);
	free(l->name);
	l->name = NULL;
}

/* Finds the value of a name in lines NAME=VALUE; of no length: no line has the name. */
static struct hw_value find_line(struct hw_id lines, struct hw_value name)
{
	for (size_t at = 0; at < lines.len;) {
		const char *s = lines.text + at, *end = memchr(s, '\n', lines.len - at);
		size_t len = end ? (size_t)(end - s) : lines.len - at;
		if (len > name.len && memcmp(s, name.text, name.len) == 0 && s[name.len] == '=')
			return (struct hw_value){s + name.len + 1, len - name.len - 1};
		at += len + 1;
	}
	return (struct hw_value){"", 0};
}

static bool is_plain(const char *text, size_t len)
{
	uint32_t c;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0 || hw_utf8_is_control(c))
			return false;
	}
	return true;
}

size_t hw_group_label_value(const struct hw_group *g, unsigned k, struct hw_id id, struct hw_id captured,
                            char value[HW_LABEL_VALUE_MAX + 1])
{
	struct hw_value values[HW_CAPTURES_MAX];
	for (unsigned n = 0; n < HW_CAPTURES_MAX; n++)
		values[n] = (struct hw_value){"", 0};
	(void)hw_group_values(g, id.text, id.len, values);
	for (unsigned n = 0; n < g->n_captured; n++)
		values[g->form.n_captures + n] = find_line(captured, g->captured[n]);
	size_t len = hw_pattern_compose(&g->labels[k].value, values, value, HW_LABEL_VALUE_MAX);
	if (!is_plain(value, len))
		len = 0;
	value[len] = '\0';
	return len;
}
