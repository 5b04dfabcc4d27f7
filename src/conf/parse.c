/* SPDX-License-Identifier: MIT */
/*
 * From lines to values. inih reads the keys; lines, values, sections and comments are ours, because inih gives its
 * handler no line number, cuts lines at 200 bytes as it is usually compiled, takes an indented line as another value of
 * the key before, and does not tell of an empty section. Therefore inih sees of each line that is a plain "key = value"
 * the key and the sign alone, and an empty line in the place of any other. That makes us independent of the options
 * that it was compiled with, too.
 *
 * Invariant: when the handler runs, r->line is the line of its key (inih calls it before it asks for the next one).
 * Memory: one line, whatever the file. Time: linear in the file, but for the look-up of a named section's name.
 */
#include "conf/parse.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "conf/suggest.h"

#define FILE_MAX   (16u << 20)      /* a file beyond it is not meant for us */
#define LINE_BYTES 4095             /* of a line, without its end */
#define LINE_CAP   (LINE_BYTES + 5) /* with a byte order mark, CR and NUL */

struct reading {
	struct hw_conf_draft *draft;
	FILE *file;
	size_t bytes;  /* read so far */
	unsigned line; /* the last that was read */

	char value[LINE_BYTES + 1]; /* of that line */

	const char *section;                   /* the table's name for the one we are in; NULL before the first */
	bool skip;                             /* in a section that makes no sense, or is another program's */
	bool foreign;                          /* the latter: what is borrowed of it is read all the same */
	unsigned headers[HW_CONF_OPTIONS_MAX]; /* the line of a section's header, by the place of its first key */
};

struct raw {
	char text[LINE_CAP];
	size_t len; /* of the whole line, also of what did not fit */
	bool nul;   /* there was a NUL byte in it */
};

/* Returns false at the end of the file. */
static bool read_raw(struct reading *r, struct raw *raw)
{
	int c;
	raw->len = 0;
	raw->nul = false;
	while ((c = getc_unlocked(r->file)) != EOF && c != '\n' && ++r->bytes <= FILE_MAX) {
		if (raw->len < LINE_CAP - 1)
			raw->text[raw->len] = (char)c;
		raw->nul |= c == '\0';
		raw->len++;
	}
	if (r->bytes > FILE_MAX) {
		hw_conf_wrong(&r->draft->errors, 0, NULL, NULL, "longer than %u MiB: give a configuration file",
		              FILE_MAX >> 20);
		return false;
	}
	raw->text[raw->len < LINE_CAP ? raw->len : LINE_CAP - 1] = '\0';
	if (c == EOF && raw->len == 0)
		return false;
	r->line++;
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

static void wrong_section(struct reading *r, const char *name, const char *why)
{
	hw_conf_wrong(&r->draft->errors, r->line, "section", name, "%s", why);
}

/* For a line that is not "key = value": named by its first word. Cuts `text` there. */
static void wrong_line(struct reading *r, char *text, const char *why)
{
	char *word = skip_white(text);
	word[strcspn(word, " \t=:")] = '\0';
	hw_conf_wrong(&r->draft->errors, r->line, "key", word, "%s", why);
}

static bool printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

/* Whether there can be no section of that name; then `why` says so. */
static bool wrong_name(const struct hw_conf_draft *d, const char *name, char *why, size_t cap)
{
	const char *kind = d->table->named.kind;
	size_t max = d->table->named.max;
	*why = '\0';
	if (!*name)
		snprintf(why, cap, "a %s needs a name: write [%s NAME]", kind, kind);
	else if (strlen(name) > HW_CONF_NAME_MAX)
		snprintf(why, cap, "the %s's name is longer than %d bytes", kind, HW_CONF_NAME_MAX);
	else if (!printable(name))
		snprintf(why, cap, "the %s's name must be printable ASCII", kind);
	else if (hw_conf_named_count(d->table, d->conf) >= max)
		snprintf(why, cap, "there are %zu %ss already, which is the most: remove some", max, kind);
	return *why;
}

static void enter_named(struct reading *r, const char *section, const char *name)
{
	struct hw_conf_draft *d = r->draft;
	const struct hw_conf_named *kind = &d->table->named;
	char why[128];
	r->section = kind->kind;
	r->skip = wrong_name(d, name, why, sizeof(why));
	if (r->skip) {
		wrong_section(r, section, why);
		return;
	}
	for (size_t i = 0; i < hw_conf_named_count(d->table, d->conf); i++)
		if (strcmp(hw_conf_named_name(hw_conf_named_at(d->table, d->conf, i)), name) == 0) {
			hw_conf_wrong(&d->errors, r->line, "section", section,
			              "stands in line %u already: give this %s another name, or join the two",
			              d->named[i]->section, kind->kind);
			break;
		}
	if (hw_conf_draft_add(d, name, r->line)) {
		d->errors.no_memory = true;
		r->skip = true;
	}
}

/* What stands behind "KIND " in the header of a named section, or NULL. */
static char *name_of_named(const struct hw_conf_draft *d, char *header)
{
	const char *kind = d->table->named.kind;
	size_t n = kind ? strlen(kind) : 0;
	if (!kind || strncmp(header, kind, n) != 0 || (header[n] && !isspace((unsigned char)header[n])))
		return NULL;
	return skip_white(header + n);
}

/* Passes over a section that another program reads; false: there is none of that name. */
static bool enter_foreign(struct reading *r, const char *name)
{
	int at = hw_conf_foreign_find(r->draft->table, name);
	if (at < 0)
		return false;
	if (!r->draft->conf->foreign[at])
		r->draft->conf->foreign[at] = r->line;
	r->section = hw_conf_family[at].section; /* some of its keys may be borrowed */
	r->foreign = true;
	return true;
}

static void enter_known(struct reading *r, int first)
{
	struct hw_conf_draft *d = r->draft;
	const char *name = d->table->options[first].section;
	r->section = name;
	if (r->headers[first]) {
		hw_conf_wrong(&d->errors, r->line, "section", name, "stands in line %u already: join the two",
		              r->headers[first]);
		/* Its values are judged, but that they were given before has been said with this line. */
		for (size_t i = 0; i < d->table->n_options; i++)
			if (strcmp(d->table->options[i].section, name) == 0)
				d->marks.key[i] = (struct hw_conf_mark){0};
	}
	r->headers[first] = r->line;
}

static void enter_section(struct reading *r, char *header, bool indented)
{
	char *end = strchr(header, ']'), *name = skip_white(header + 1), why[256];
	r->skip = true;
	r->foreign = false;
	if (!end) {
		wrong_section(r, name, "the closing ] is missing");
		return;
	}
	*end = '\0';
	cut_white(name);
	if (indented)
		wrong_section(r, name, "the line is indented: a section starts the line");
	if (*skip_white(end + 1))
		wrong_section(r, name, "something follows the ]: put it on a line of its own, or after ' ;'");
	const char *own = name_of_named(r->draft, name);
	if (own) {
		enter_named(r, name, own);
		return;
	}
	if (enter_foreign(r, name))
		return;
	int first = hw_conf_option_find(r->draft->table, name, NULL);
	if (first < 0) {
		hw_conf_unknown_section(r->draft->table, name, why, sizeof(why));
		wrong_section(r, name, why);
		return;
	}
	r->skip = false;
	enter_known(r, first);
}

/*
 * Whether the line may go to inih. `text` is without its line end; all but "key = value" is dealt with here. A blank
 * line or one that is only a comment may be as long as it likes.
 */
static bool judge_line(struct reading *r, char *text, size_t len)
{
	char *start = skip_white(text), why[128];
	if (*start == '#' || *start == ';')
		return false;
	if (len > LINE_BYTES) {
		r->skip |= *start == '[';
		snprintf(why, sizeof(why), "the line is %zu bytes long: at most %d are possible, comment included", len,
		         LINE_BYTES);
		wrong_line(r, start, why);
		return false;
	}
	cut_comment(start);
	if (*start == '[')
		enter_section(r, start, start > text);
	else if (*start && start > text)
		wrong_line(r, start, "the line is indented: a value goes on one line, and its key starts the line");
	else if (*start && !strpbrk(start, "=:"))
		wrong_line(r, start, "not 'key = value'");
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

/* Keeps the value, and leaves the key with its sign to inih. No key is so long that inih would cut it. */
static void part(struct reading *r, char *text, char *buf, int cap)
{
	size_t key = strcspn(text, "=:");
	if (key + sizeof("=") >= (size_t)cap) {
		wrong_line(r, text, "there is no key of that length");
		return;
	}
	snprintf(r->value, sizeof(r->value), "%s", skip_white(text + key + 1));
	memcpy(buf, text, key);
	memcpy(buf + key, "=", sizeof("="));
}

/* inih's reader: a line that it cannot misunderstand, or an empty one. */
static char *next_line(char *buf, int cap, void *arg)
{
	struct reading *r = arg;
	struct raw raw;
	char *text;
	if (!read_raw(r, &raw))
		return NULL;
	text = strip(&raw, r->line);
	buf[0] = '\0';
	if (raw.nul)
		wrong_line(r, text, "the line holds a NUL byte: is it a text file?");
	else if (judge_line(r, text, raw.len))
		part(r, text, buf, cap);
	return buf;
}

/* The section's own storage and marks, or the common ones. */
static void *place(struct reading *r, struct hw_conf_marks **marks)
{
	struct hw_conf_draft *d = r->draft;
	if (r->section != d->table->named.kind) {
		*marks = &d->marks;
		return d->conf;
	}
	size_t last = hw_conf_named_count(d->table, d->conf) - 1;
	*marks = d->named[last];
	return hw_conf_named_at(d->table, d->conf, last);
}

static void set_value(struct reading *r, int at)
{
	struct hw_conf_draft *d = r->draft;
	const struct hw_conf_option *o = &d->table->options[at];
	struct hw_conf_marks *marks;
	void *base = place(r, &marks);
	struct hw_conf_mark *mark = &marks->key[at];
	char why[512];
	if (mark->line && o->type != HW_CONF_TOPICS) {
		hw_conf_wrong(&d->errors, r->line, "key", o->key,
		              "given in line %u already: remove one of the two lines", mark->line);
		return;
	}
	mark->line = r->line;
	int rc = hw_conf_draft_set(d, base, marks, at, r->value, r->line, why, sizeof(why));
	if (rc == -EINVAL)
		hw_conf_wrong(&d->errors, r->line, "key", o->key, "%s", why);
	mark->bad = rc != 0;
}

/* inih's handler. The section that inih believes in is never set: ours counts. */
static int on_pair(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	const struct hw_conf_table *t = r->draft->table;
	char why[256];
	(void)section;
	(void)value; /* ours is whole */
	int at = r->section ? hw_conf_option_find(t, r->section, key) : -1;
	if (r->foreign && at >= 0)
		set_value(r, at);
	if (r->skip)
		return 1;
	if (!r->section) {
		hw_conf_sections_of(t, key, why, sizeof(why));
		hw_conf_wrong(&r->draft->errors, r->line, "key", key, "stands before the first section%s%s",
		              why[0] ? ": move it to " : "", why);
		return 1;
	}
	if (at >= 0) {
		set_value(r, at);
		return 1;
	}
	hw_conf_unknown_key(t, r->section, key, why, sizeof(why));
	hw_conf_wrong(&r->draft->errors, r->line, "key", key, "%s", why);
	return 1;
}

void hw_conf_parse(FILE *file, struct hw_conf_draft *d)
{
	struct reading r = {.draft = d, .file = file};
	errno = 0;
	int rc = ini_parse_stream(next_line, &r, on_pair, &r);
	if (ferror(file))
		hw_conf_wrong(&d->errors, 0, NULL, NULL, "cannot be read: %s", strerror(errno));
	else if (rc < 0)
		d->errors.no_memory = true;
	else if (rc > 0)
		hw_conf_wrong(&d->errors, (unsigned)rc, NULL, NULL, "cannot be understood");
}
