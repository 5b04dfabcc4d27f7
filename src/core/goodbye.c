/* SPDX-License-Identifier: MIT */
/* Parses a goodbye: a filter, and the payload that counts as a goodbye on it. Also parses the lines of `while`. See
 * group.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/group.h"

/* Splits a line at its first space, into the filter and the payload. The payload may contain spaces. */
static int split(struct hw_goodbye *g, char *filter, const char **why)
{
	char *word = filter + strcspn(filter, " \t"), *equals;
	if (*word) {
		*word++ = '\0';
		word += strspn(word, " \t");
	}
	if (!*word)
		return 0;
	equals = strchr(word, '=');
	if (equals) {
		if (equals == word || !equals[1]) {
			*why = "needs a member before the = and a value after it";
			return -EINVAL;
		}
		*equals = '\0';
		g->member = strdup(word);
		word = equals + 1;
	}
	g->text = strdup(word);
	if (g->text && (g->member || !equals))
		return 0;
	*why = "finds no memory";
	return -ENOMEM;
}

int hw_goodbye_compile(struct hw_goodbye *g, const char *text, const char **why)
{
	char *filter = strdup(text ? text : "");
	int rc;
	memset(g, 0, sizeof(*g));
	*why = "finds no memory";
	if (!filter)
		return -ENOMEM;
	rc = split(g, filter, why);
	if (rc == 0)
		rc = hw_topic_compile(&g->topic, filter, HW_TOPIC_ANY, why);
	if (rc != 0)
		hw_goodbye_fini(g);
	free(filter);
	return rc;
}

int hw_while_compile(struct hw_while *w, const char *text, const char **why)
{
	struct hw_goodbye g = {0};
	char *topic = strdup(text ? text : "");
	*w = (struct hw_while){0};
	*why = "finds no memory";
	int rc = topic ? split(&g, topic, why) : -ENOMEM;
	if (rc == 0 && (!g.text || !*topic || strpbrk(topic, "+#{}"))) {
		*why = "needs a topic without wildcards, and the value that the topic has while all is well";
		rc = -EINVAL;
	}
	if (rc == 0 && strncmp(topic, "$share/", 7) == 0) {
		*why = "must not begin with $share/";
		rc = -EINVAL;
	}
	if (rc == 0) {
		*w = (struct hw_while){topic, g.member, g.text};
		return 0;
	}
	free(topic);
	free(g.member);
	free(g.text);
	return rc;
}

void hw_while_fini(struct hw_while *w)
{
	free(w->topic);
	free(w->member);
	free(w->value);
}

void hw_goodbye_fini(struct hw_goodbye *g)
{
	hw_topic_fini(&g->topic);
	free(g->member);
	free(g->text);
	memset(g, 0, sizeof(*g));
}
