/* SPDX-License-Identifier: MIT */
/*
 * Parses lines. Each line is read and its comment removed. What remains is a section header, a "key = value", or an
 * error with the line's number.
 *
 * Memory: one line, whatever the size of the file. Time: linear in the file, except for finding a named section.
 */
#include "conf/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/suggest.h"

#define FILE_MAX   (16u << 20)      /* a larger file is not a configuration */
#define LINE_BYTES 4095             /* bytes of a line without its end */
#define LINE_CAP   (LINE_BYTES + 5) /* with byte order mark, CR and NUL */
#define KEY_BYTES  198              /* longer than any key */

struct reading {
	struct hw_conf_draft *draft;
	FILE *file;
	size_t bytes;  /* read so far */
	unsigned line; /* number of the last line read */

	const char *section;              /* the table's name of the current section; NULL before the first section */
	const struct hw_conf_named *kind; /* of the current section; NULL: no named one */
	bool skip;                        /* the keys of this section are skipped, because its header is wrong or
	                                   * because only another program reads it */
	bool foreign;                     /* the section is another program's, and this program reads only those keys
	                                   * that its table marks as borrowed */
	unsigned headers[HW_CONF_OPTIONS_MAX]; /* line of each section's header, by the index of the section's first key
	                                        */
};

struct raw {
	char text[LINE_CAP];
	size_t len; /* length of the whole line, including what did not fit */
	bool nul;   /* the line has a NUL byte */
};

/* Reads a line. Returns false at the end of the file. */
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

/* A comment begins with a ';' after white space. */
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

/* Reports a line that is not "key = value" by its first word. Ends `text` after that word. */
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

/* Whether a named section cannot have this name. If so, the reason is in `why`. */
static bool wrong_name(const struct hw_conf_draft *d, const struct hw_conf_named *of, const char *name, char *why,
                       size_t cap)
{
	const char *kind = of->kind;
	*why = '\0';
	if (!*name)
		snprintf(why, cap, "a %s needs a name: write [%s NAME]", kind, kind);
	else if (strlen(name) > HW_CONF_NAME_MAX)
		snprintf(why, cap, "the %s's name is longer than %d bytes", kind, HW_CONF_NAME_MAX);
	else if (!printable(name))
		snprintf(why, cap, "the %s's name must be printable ASCII", kind);
	else if (hw_conf_named_count(of, d->conf) >= of->max)
		snprintf(why, cap, "there are already %zu %ss, which is the limit: remove some", of->max, kind);
	return *why;
}

static void enter_named(struct reading *r, const struct hw_conf_named *kind, const char *section, const char *name)
{
	struct hw_conf_draft *d = r->draft;
	char why[128];
	r->section = kind->kind;
	r->kind = kind;
	r->skip = wrong_name(d, kind, name, why, sizeof(why));
	if (r->skip) {
		wrong_section(r, section, why);
		return;
	}
	for (size_t i = 0; i < hw_conf_named_count(kind, d->conf); i++)
		if (strcmp(hw_conf_named_name(hw_conf_named_at(kind, d->conf, i)), name) == 0) {
			hw_conf_wrong(&d->errors, r->line, "section", section,
			              "is already in line %u: give this %s another name, or join the two",
			              d->named[kind - d->table->named][i]->section, kind->kind);
			break;
		}
	if (hw_conf_draft_add(d, kind, name, r->line)) {
		d->errors.no_memory = true;
		r->skip = true;
	}
}

/* Returns the name in the header of a section of that kind, after "KIND "; or NULL. */
static char *name_of_named(const struct hw_conf_named *kind, char *header)
{
	size_t n = strlen(kind->kind);
	if (strncmp(header, kind->kind, n) != 0 || (header[n] && !isspace((unsigned char)header[n])))
		return NULL;
	return skip_white(header + n);
}

/* Keeps a name of a section [group NAME] that only another program reads, because the matchers of this program may
 * contain it. */
static void keep_name(struct hw_conf_draft *d, char ***names, size_t *n, const char *name, size_t len)
{
	char **more = reallocarray(*names, *n + 2, sizeof(*more));
	if (more)
		*names = more;
	if (!more || !(more[*n] = strndup(name, len))) {
		d->errors.no_memory = true;
		return;
	}
	more[++*n] = NULL;
}

static void keep_group(struct hw_conf_draft *d, const char *name)
{
	struct hw_conf_head *c = d->conf;
	keep_name(d, &c->groups, &c->n_groups, name, strlen(name));
}

/* Called at the header of a section that belongs to the family of programs. Skips the section if only another program
 * reads it. Returns false if there is no such section. */
static bool enter_foreign(struct reading *r, char *name)
{
	int at = hw_conf_family_find(name);
	if (at >= 0 && !r->draft->conf->sections[at])
		r->draft->conf->sections[at] = r->line;
	if (at < 0 || !hw_conf_is_foreign(r->draft->table, at))
		return false;
	r->section = hw_conf_family[at].section; /* some of its keys may be borrowed */
	r->foreign = true;
	if (strcmp(r->section, "group") == 0)
		keep_group(r->draft, skip_white(name + strlen(r->section)));
	return true;
}

static void enter_known(struct reading *r, int first)
{
	struct hw_conf_draft *d = r->draft;
	const char *name = d->table->options[first].section;
	r->section = name;
	if (r->headers[first]) {
		hw_conf_wrong(&d->errors, r->line, "section", name, "is already in line %u: join the two",
		              r->headers[first]);
		/* The values of a repeated section are checked too. Its keys are not reported as given twice,
		 * because the error about the repeated section is enough. */
		for (size_t i = 0; i < d->table->n_options; i++)
			if (strcmp(d->table->options[i].section, name) == 0)
				d->origins.key[i] = (struct hw_conf_origin){0};
	}
	r->headers[first] = r->line;
}

static void enter_section(struct reading *r, char *header, bool indented)
{
	char *end = strchr(header, ']'), *name = skip_white(header + 1), why[256];
	r->skip = true;
	r->foreign = false;
	r->kind = NULL;
	if (!end) {
		wrong_section(r, name, "the closing ] is missing");
		return;
	}
	*end = '\0';
	cut_white(name);
	if (indented)
		wrong_section(r, name, "the line is indented: a section must start at the beginning of its line");
	if (*skip_white(end + 1))
		wrong_section(r, name, "there is text after the ]: put it on a line of its own, or after ' ;'");
	if (enter_foreign(r, name))
		return;
	const struct hw_conf_named *kinds = r->draft->table->named;
	for (size_t i = 0; i < HW_CONF_KINDS_MAX && kinds[i].kind; i++) {
		const char *own = name_of_named(&kinds[i], name);
		if (own) {
			enter_named(r, &kinds[i], name, own);
			return;
		}
	}
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
 * Returns true if the line is "key = value", which the caller handles. This function handles all other lines. `text`
 * has no line end. A blank line or a comment may have any length.
 */
static bool judge_line(struct reading *r, char *text, size_t len)
{
	char *start = skip_white(text), why[128];
	if (*start == '#' || *start == ';')
		return false;
	if (len > LINE_BYTES) {
		r->skip |= *start == '[';
		snprintf(why, sizeof(why), "the line is %zu bytes long: the limit is %d, with its comment", len,
		         LINE_BYTES);
		wrong_line(r, start, why);
		return false;
	}
	cut_comment(start);
	if (*start == '[')
		enter_section(r, start, start > text);
	else if (*start && start > text)
		wrong_line(r, start, "the line is indented: a value stays on one line, and its key starts the line");
	else if (*start && !strpbrk(start, "=:"))
		wrong_line(r, start, "not 'key = value'");
	else
		return *start != '\0';
	return false;
}

/* Removes the CR before an LF, and a byte order mark before the first line. */
static char *strip(struct raw *r, unsigned line)
{
	if (r->len && r->len < LINE_CAP && r->text[r->len - 1] == '\r')
		r->text[--r->len] = '\0';
	if (line != 1 || r->len < 3 || memcmp(r->text, "\xef\xbb\xbf", 3) != 0)
		return r->text;
	r->len -= 3;
	return r->text + 3;
}

/* Returns the struct of the current named section, or the program's struct. *origins: the origins of its keys. */
static void *place(struct reading *r, struct hw_conf_origins **origins)
{
	struct hw_conf_draft *d = r->draft;
	if (!r->kind) {
		*origins = &d->origins;
		return d->conf;
	}
	size_t last = hw_conf_named_count(r->kind, d->conf) - 1;
	*origins = d->named[r->kind - d->table->named][last];
	return hw_conf_named_at(r->kind, d->conf, last);
}

static void set_value(struct reading *r, int at, const char *value)
{
	struct hw_conf_draft *d = r->draft;
	const struct hw_conf_option *o = &d->table->options[at];
	struct hw_conf_origins *origins;
	void *base = place(r, &origins);
	struct hw_conf_origin *origin = &origins->key[at];
	char why[512];
	if (origin->line && o->type != HW_CONF_TOPICS) {
		hw_conf_wrong(&d->errors, r->line, "key", o->key, "is already in line %u: remove one of the two lines",
		              origin->line);
		return;
	}
	origin->line = r->line;
	int rc = hw_conf_draft_set(d, base, origins, at, value, r->line, why, sizeof(why));
	if (rc == -EINVAL)
		hw_conf_wrong(&d->errors, r->line, "key", o->key, "%s", why);
	origin->bad = rc != 0;
}

static void take_pair(struct reading *r, const char *key, const char *value)
{
	const struct hw_conf_table *t = r->draft->table;
	char why[256];
	int at = r->section ? hw_conf_option_find(t, r->section, key) : -1;
	if (at >= 0 && (r->foreign || !r->skip)) {
		set_value(r, at, value);
	} else if (r->foreign && strcmp(r->section, "group") == 0 && strcmp(key, "label") == 0) {
		struct hw_conf_head *c = r->draft->conf;
		keep_name(r->draft, &c->labels, &c->n_labels, value, strcspn(value, " \t"));
	} else if (r->skip) {
		return;
	} else if (!r->section) {
		hw_conf_sections_of(t, key, why, sizeof(why));
		hw_conf_wrong(&r->draft->errors, r->line, "key", key, "is above the first section%s%s",
		              why[0] ? ": move it to " : "", why);
	} else {
		hw_conf_unknown_key(t, r->section, key, why, sizeof(why));
		hw_conf_wrong(&r->draft->errors, r->line, "key", key, "%s", why);
	}
}

/* Cuts the line at its '=' or ':'. */
static void split(struct reading *r, char *text)
{
	size_t n = strcspn(text, "=:");
	if (n > KEY_BYTES) {
		wrong_line(r, text, "no key is that long");
		return;
	}
	text[n] = '\0';
	cut_white(text);
	take_pair(r, text, skip_white(text + n + 1));
}

void hw_conf_parse(FILE *file, struct hw_conf_draft *d)
{
	struct reading r = {.draft = d, .file = file};
	struct raw raw;
	errno = 0;
	while (!d->errors.no_memory && read_raw(&r, &raw)) {
		char *text = strip(&raw, r.line);
		if (raw.nul)
			wrong_line(&r, text, "the line holds a NUL byte: is it a text file?");
		else if (judge_line(&r, text, raw.len))
			split(&r, text);
	}
	if (ferror(file))
		hw_conf_wrong(&d->errors, 0, NULL, NULL, "cannot be read: %s", strerror(errno));
}
