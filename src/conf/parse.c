/* SPDX-License-Identifier: MIT */
/*
 * From lines to values. inih parts keys from values; lines, sections and comments are ours, because inih gives its
 * handler no line number, cuts lines and section names, takes an indented line as another value of the key before, and
 * does not tell of an empty section. Therefore inih never sees a line that is not a plain "key = value": it gets an
 * empty one instead. That makes us independent of the options that it was compiled with, too.
 *
 * Invariant: when the handler runs, p->line is the line of its key (inih calls it before it asks for the next one).
 * Memory: one line, whatever the file. Time: linear in the file, but for the look-up of a group's name.
 */
#include "conf/parse.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "conf/value.h"

#define FILE_MAX  (16u << 20) /* a file beyond it is not meant for us */
#define LINE_CAP  1024        /* of which inih takes less */
#define LINE_ENDS 3           /* inih counts CR, LF and NUL into its limit */
#define GROUP_LEN 64          /* of a group */

struct raw {
	char text[LINE_CAP];
	size_t len; /* of the whole line, also of what did not fit */
	bool nul;   /* there was a NUL byte in it */
};

/* Returns false at the end of the file. */
static bool read_raw(struct hw_conf_parse *p, struct raw *r)
{
	int c;

	r->len = 0;
	r->nul = false;
	while ((c = getc_unlocked(p->file)) != EOF && c != '\n' && ++p->bytes <= FILE_MAX) {
		if (r->len < LINE_CAP - 1)
			r->text[r->len] = (char)c;
		r->nul |= c == '\0';
		r->len++;
	}
	if (p->bytes > FILE_MAX) {
		hw_conf_wrong(&p->errors, 0, NULL, NULL, "longer than %u MiB: give a configuration file",
		              FILE_MAX >> 20);
		return false;
	}
	r->text[r->len < LINE_CAP ? r->len : LINE_CAP - 1] = '\0';
	if (c == EOF && r->len == 0)
		return false;
	p->line++;
	return true;
}

static char *skip_white(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static void cut_white(char *s)
{
	size_t n = strlen(s);

	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
}

/* A comment starts at a ';' after white space. */
static void cut_comment(char *s)
{
	for (char *c = s; *c; c++)
		if (*c == ';' && (c == s || isspace((unsigned char)c[-1]))) {
			*c = '\0';
			break;
		}
	cut_white(s);
}

static void wrong_section(struct hw_conf_parse *p, const char *name, const char *why)
{
	hw_conf_wrong(&p->errors, p->line, "section", name, "%s", why);
}

/* For a line that is not "key = value": named by its first word. Cuts `text` there. */
static void wrong_line(struct hw_conf_parse *p, char *text, const char *why)
{
	char *word = skip_white(text);

	word[strcspn(word, " \t=:")] = '\0';
	hw_conf_wrong(&p->errors, p->line, "key", word, "%s", why);
}

int hw_conf_parse_add_group(struct hw_conf_parse *p, const char *name)
{
	size_t n = p->conf->n_groups;
	struct hw_conf_group *groups = reallocarray(p->conf->groups, n + 1, sizeof(*groups));
	struct hw_conf_marks **marks, *own;

	if (!groups)
		return -ENOMEM;
	p->conf->groups = groups;
	marks = reallocarray(p->group_marks, n + 1, sizeof(struct hw_conf_marks *));
	if (!marks)
		return -ENOMEM;
	p->group_marks = marks;
	own = calloc(1, sizeof(*own));
	groups[n] = (struct hw_conf_group){.name = strdup(name)};
	if (!own || !groups[n].name) {
		free(own);
		free(groups[n].name);
		return -ENOMEM;
	}
	own->section = p->line;
	marks[n] = own;
	p->conf->n_groups++;
	return 0;
}

static const char *wrong_group_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0)
		return "a group needs a name: write [group NAME]";
	if (len > GROUP_LEN)
		return "the group's name is longer than 64 bytes";
	for (size_t i = 0; i < len; i++)
		if (name[i] < 0x20 || name[i] > 0x7e)
			return "the group's name must be printable ASCII";
	return NULL;
}

static void enter_group(struct hw_conf_parse *p, const char *section, const char *name)
{
	const char *wrong = wrong_group_name(name);

	p->section = "group";
	if (!wrong && p->conf->n_groups >= HW_CONF_GROUPS_MAX)
		wrong = "there are 4096 groups already, which is the most: remove some";
	p->skip = wrong != NULL;
	if (wrong) {
		wrong_section(p, section, wrong);
		return;
	}
	for (size_t i = 0; i < p->conf->n_groups; i++)
		if (strcmp(p->conf->groups[i].name, name) == 0) {
			hw_conf_wrong(&p->errors, p->line, "section", section,
			              "stands in line %u already: give this group another name, or join the two",
			              p->group_marks[i]->section);
			break;
		}
	if (hw_conf_parse_add_group(p, name)) {
		p->errors.no_memory = true;
		p->skip = true;
	}
}

static void enter_known(struct hw_conf_parse *p, int first)
{
	const char *name = hw_conf_options[first].section;

	p->section = name;
	if (p->headers[first]) {
		hw_conf_wrong(&p->errors, p->line, "section", name, "stands in line %u already: join the two",
		              p->headers[first]);
		/* Its values are judged, but that they were given before has been said with this line. */
		for (size_t i = 0; i < hw_conf_n_options; i++)
			if (strcmp(hw_conf_options[i].section, name) == 0)
				p->marks.key[i] = (struct hw_conf_mark){0};
	}
	p->headers[first] = p->line;
}

static void enter_section(struct hw_conf_parse *p, char *header, bool indented)
{
	char *end = strchr(header, ']'), *name = skip_white(header + 1), why[256];
	int first;

	p->skip = true;
	if (!end) {
		wrong_section(p, name, "the closing ] is missing");
		return;
	}
	*end = '\0';
	cut_white(name);
	if (indented)
		wrong_section(p, name, "the line is indented: a section starts the line");
	if (*skip_white(end + 1))
		wrong_section(p, name, "something follows the ]: put it on a line of its own, or after ' ;'");
	if (strncmp(name, "group", 5) == 0 && (!name[5] || isspace((unsigned char)name[5]))) {
		enter_group(p, name, skip_white(name + 5));
		return;
	}
	first = hw_conf_option_find(name, NULL);
	if (first < 0) {
		hw_conf_unknown_section(name, why, sizeof(why));
		wrong_section(p, name, why);
		return;
	}
	p->skip = false;
	enter_known(p, first);
}

/*
 * Whether the line may go to inih. `text` is without its line end; all but "key = value" is dealt with here. A blank
 * line or one that is only a comment may be as long as it likes.
 */
static bool judge_line(struct hw_conf_parse *p, char *text, size_t len, size_t max)
{
	char *start = skip_white(text), why[128];

	if (*start == '#' || *start == ';')
		return false;
	if (len > max) {
		p->skip |= *start == '[';
		snprintf(why, sizeof(why), "the line is %zu bytes long: at most %zu are possible, comment included",
		         len, max);
		wrong_line(p, start, why);
		return false;
	}
	cut_comment(start);
	if (*start == '[')
		enter_section(p, start, start > text);
	else if (*start && start > text)
		wrong_line(p, start, "the line is indented: a value goes on one line, and its key starts the line");
	else if (*start && !strpbrk(start, "=:"))
		wrong_line(p, start, "not 'key = value'");
	else
		return *start != '\0';
	return false;
}

/* Takes off the CR of a CR LF, and the byte order mark that some editors put before the first line. */
static char *strip(struct raw *r, unsigned line)
{
	if (r->len && r->len < LINE_CAP && r->text[r->len - 1] == '\r')
		r->text[--r->len] = '\0';
	if (line != 1 || r->len < 3 || memcmp(r->text, "\xef\xbb\xbf", 3) != 0)
		return r->text;
	r->len -= 3;
	return r->text + 3;
}

/* inih's reader: a line that it cannot misunderstand, or an empty one. */
static char *next_line(char *buf, int cap, void *arg)
{
	struct hw_conf_parse *p = arg;
	size_t max = cap < LINE_CAP ? (size_t)(cap - LINE_ENDS) : LINE_CAP - LINE_ENDS;
	struct raw raw;
	char *text;

	if (!read_raw(p, &raw))
		return NULL;
	text = strip(&raw, p->line);
	buf[0] = '\0';
	if (raw.nul)
		wrong_line(p, text, "the line holds a NUL byte: is it a text file?");
	else if (judge_line(p, text, raw.len, max))
		memcpy(buf, text, strlen(text) + 1);
	return buf;
}

/* The group's own storage and marks, or the common ones. */
static void place(struct hw_conf_parse *p, void **base, struct hw_conf_marks **marks)
{
	bool group = strcmp(p->section, "group") == 0;

	*base = group ? (void *)&p->conf->groups[p->conf->n_groups - 1] : (void *)p->conf;
	*marks = group ? p->group_marks[p->conf->n_groups - 1] : &p->marks;
}

/* Notes the line of the heartbeat that the group has just got. */
static int mark_heartbeat(struct hw_conf_parse *p, struct hw_conf_marks *marks)
{
	size_t n = p->conf->groups[p->conf->n_groups - 1].n_heartbeat;
	unsigned *lines = reallocarray(marks->heartbeat, n, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	marks->heartbeat = lines;
	lines[n - 1] = p->line;
	return 0;
}

static void set_value(struct hw_conf_parse *p, int at, const char *value)
{
	const struct hw_conf_option *o = &hw_conf_options[at];
	struct hw_conf_marks *marks;
	struct hw_conf_mark *mark;
	const char *wrong = NULL;
	char why[512];
	void *base;
	int rc;

	place(p, &base, &marks);
	mark = &marks->key[at];
	if (mark->line && o->type != HW_CONF_TOPICS) {
		hw_conf_wrong(&p->errors, p->line, "key", o->key,
		              "given in line %u already: remove one of the two lines", mark->line);
		return;
	}
	mark->line = p->line;
	rc = hw_conf_value_set(o, value, base, why, sizeof(why));
	/* What a heartbeat's template must be is known when the group is complete. */
	if (rc == 0 && o->type == HW_CONF_TOPICS)
		rc = mark_heartbeat(p, marks);
	if (rc == 0 && o->type == HW_CONF_TOPIC && *value && p->check) {
		rc = p->check(value, HW_CONF_TEMPLATE_STATUS, &wrong);
		snprintf(why, sizeof(why), "%s", wrong ? wrong : "not a topic template");
	}
	if (rc == -ENOMEM)
		p->errors.no_memory = true;
	else if (rc)
		hw_conf_wrong(&p->errors, p->line, "key", o->key, "%s", why);
	mark->bad = rc != 0;
}

/* inih's handler. The section that inih believes in is never set: ours counts. */
static int on_pair(void *arg, const char *section, const char *key, const char *value)
{
	struct hw_conf_parse *p = arg;
	char why[256];
	int at;

	(void)section;
	if (p->skip)
		return 1;
	if (!p->section) {
		hw_conf_sections_of(key, why, sizeof(why));
		hw_conf_wrong(&p->errors, p->line, "key", key, "stands before the first section%s%s",
		              why[0] ? ": move it to " : "", why);
		return 1;
	}
	at = hw_conf_option_find(p->section, key);
	if (at >= 0) {
		set_value(p, at, value ? value : "");
		return 1;
	}
	hw_conf_unknown_key(p->section, key, why, sizeof(why));
	hw_conf_wrong(&p->errors, p->line, "key", key, "%s", why);
	return 1;
}

void hw_conf_parse_file(struct hw_conf_parse *p)
{
	int rc;

	errno = 0;
	rc = ini_parse_stream(next_line, p, on_pair, p);
	if (ferror(p->file))
		hw_conf_wrong(&p->errors, 0, NULL, NULL, "cannot be read: %s", strerror(errno));
	else if (rc < 0)
		p->errors.no_memory = true;
	else if (rc > 0)
		hw_conf_wrong(&p->errors, (unsigned)rc, NULL, NULL, "cannot be understood");
}

void hw_conf_parse_fini(struct hw_conf_parse *p)
{
	for (size_t i = 0; i < p->conf->n_groups; i++) {
		free(p->group_marks[i]->heartbeat);
		free(p->group_marks[i]);
	}
	free(p->group_marks);
}
