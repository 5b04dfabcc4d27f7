/* SPDX-License-Identifier: MIT */
/* See accounts.h. Hashes are compared, so the time that a comparison takes reveals nothing about a token. */
#include "http/accounts.h"

#include <errno.h>
#include <openssl/evp.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/file.h"

static const char *const roles[] = {[HW_USER_ROLE_READ] = "read", [HW_USER_ROLE_OPERATE] = "operate"};

static const char name_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

const char *hw_user_role_name(enum hw_user_role role)
{
	return roles[role];
}

bool hw_user_role_parse(const char *text, enum hw_user_role *role)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(text, roles[i]) == 0) {
			*role = (enum hw_user_role)i;
			return true;
		}
	}
	return false;
}

bool hw_account_name_is_right(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && len <= HW_ACCOUNT_NAME_MAX && strspn(name, name_bytes) == len;
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
	return at ? (int)(at - digits) : -1;
}

static bool parse_hash(const char *text, unsigned char hash[HW_API_TOKEN_HASH])
{
	if (strlen(text) != 2 * HW_API_TOKEN_HASH)
		return false;
	for (size_t i = 0; i < HW_API_TOKEN_HASH; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		hash[i] = (unsigned char)(high * 16 + low);
	}
	return true;
}

static bool parse_time(const char *text, int64_t *seconds)
{
	size_t len = strlen(text);
	if (len == 0 || len > 15 || strspn(text, "0123456789") != len)
		return false;
	*seconds = strtoll(text, NULL, 10);
	return true;
}

static const char *judge(struct hw_account *a, char *field[4], size_t n)
{
	if (n < 3 || n > 4)
		return "a line must be NAME:ROLE:SHA256 or NAME:ROLE:SHA256:EXPIRES";
	if (!hw_account_name_is_right(field[0]))
		return "a name must be 1 to 64 letters, digits, '.', '_' and '-'";
	if (!hw_user_role_parse(field[1], &a->role))
		return "a role must be 'read' or 'operate'";
	if (!parse_hash(field[2], a->hash))
		return "SHA256 must be 64 hexadecimal digits: 'heartwheelctl user add' writes such lines";
	if (n == 4 && !parse_time(field[3], &a->expires_s))
		return "EXPIRES must be a time in Unix seconds";
	memcpy(a->name, field[0], strlen(field[0]) + 1);
	return NULL;
}

int hw_account_parse(struct hw_account *account, const char *line, const char **what)
{
	char copy[HW_ACCOUNT_NAME_MAX + 2 * HW_API_TOKEN_HASH + 64], *field[4] = {copy};
	size_t n = 1;
	*account = (struct hw_account){0};
	if (!*line || *line == '#' || *line == ';')
		return 1;
	if (strlen(line) >= sizeof(copy)) {
		*what = "the line is too long";
		return -EINVAL;
	}
	memcpy(copy, line, strlen(line) + 1);
	for (char *at = copy; (at = strchr(at, ':')); n++) {
		*at++ = '\0';
		if (n < 4)
			field[n] = at;
	}
	*what = judge(account, field, n);
	return *what ? -EINVAL : 0;
}

static int by_hash(const void *a, const void *b)
{
	const struct hw_account *x = a, *y = b;
	return memcmp(x->hash, y->hash, HW_API_TOKEN_HASH);
}

static int by_name(const void *a, const void *b)
{
	const struct hw_account *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

/* The state while a file is read. A file of 16 MiB must not block the loop, so two trees find an earlier user of the
 * same name or token in logarithmic time. The trees point into a->at, which has room for HW_ACCOUNTS_MAX users and does
 * not move. */
struct reading {
	struct hw_accounts *a;
	void *names, *hashes; /* trees of tsearch() */
	size_t n_wrong;
	hw_accounts_wrong *wrong;
	void *arg;
};

static int name_order(const void *a, const void *b)
{
	const struct hw_account *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* NULL: the user can be added. */
static const char *conflict(const struct reading *r, const struct hw_account *one)
{
	if (r->a->n >= HW_ACCOUNTS_MAX)
		return "there are more than 10000 users";
	if (tfind(one, &r->names, name_order))
		return "an earlier line has this name";
	if (tfind(one, &r->hashes, by_hash))
		return "an earlier user has the same API token";
	return NULL;
}

static int add(struct reading *r, const struct hw_account *one)
{
	struct hw_accounts *a = r->a;
	if (!a->at && !(a->at = malloc(HW_ACCOUNTS_MAX * sizeof(*a->at))))
		return -ENOMEM;
	struct hw_account *added = &a->at[a->n++];
	*added = *one;
	return tsearch(added, &r->names, name_order) && tsearch(added, &r->hashes, by_hash) ? 0 : -ENOMEM;
}

static int report(struct reading *r, unsigned number, const char *what)
{
	if (r->n_wrong++ < HW_CONF_ERRORS_MAX)
		r->wrong(r->arg, number, what);
	return -EINVAL;
}

static void report_rest(const struct reading *r)
{
	char text[64];
	if (r->n_wrong <= HW_CONF_ERRORS_MAX)
		return;
	snprintf(text, sizeof(text), "%zu more errors; is it the right file?", r->n_wrong - HW_CONF_ERRORS_MAX);
	r->wrong(r->arg, 0, text);
}

/* Parses a line and adds its user. Returns 0 or -errno. If it returns -EINVAL, it has reported the error. */
static int take(struct reading *r, unsigned number, const char *line)
{
	struct hw_account one;
	const char *what = NULL;
	int rc = hw_account_parse(&one, line, &what);
	if (rc == 1)
		return 0;
	if (rc == 0)
		what = conflict(r, &one);
	return what ? report(r, number, what) : add(r, &one);
}

static int read_lines(struct reading *r, FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	int worst = 0;
	for (unsigned number = 1; (len = getline(&line, &cap, f)) >= 0; number++) {
		while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
			line[--len] = '\0';
		int rc = strlen(line) != (size_t)len ? report(r, number, "the file holds a zero byte")
		                                     : take(r, number, line);
		if (rc && worst != -ENOMEM)
			worst = rc;
	}
	if (!feof(f) && !worst)
		worst = errno ? -errno : -EIO;
	free(line);
	return worst;
}

static void keep(void *account)
{
	(void)account;
}

/* Sorts the users and frees the memory that they do not need. */
static void finish(struct hw_accounts *a)
{
	struct hw_account *less = a->n ? realloc(a->at, a->n * sizeof(*less)) : NULL;
	if (less)
		a->at = less;
	if (a->n > 1)
		qsort(a->at, a->n, sizeof(*a->at), by_hash);
}

int hw_accounts_load(struct hw_accounts *a, const char *path, hw_accounts_wrong *wrong, void *arg)
{
	struct reading r = {.a = a, .wrong = wrong, .arg = arg};
	*a = (struct hw_accounts){0};
	int fd = hw_file_open(path);
	if (fd < 0)
		return fd;
	FILE *f = fdopen(fd, "r");
	if (!f) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	errno = 0;
	int rc = read_lines(&r, f);
	fclose(f);
	report_rest(&r);
	tdestroy(r.names, keep);
	tdestroy(r.hashes, keep);
	if (rc)
		hw_accounts_fini(a);
	else
		finish(a);
	return rc;
}

void hw_accounts_fini(struct hw_accounts *a)
{
	free(a->at);
	*a = (struct hw_accounts){0};
}

/* Returns the accounts sorted by name; the caller frees the list. NULL: no accounts, or no memory. */
static const struct hw_account **by_names(const struct hw_accounts *a)
{
	const struct hw_account **list = a && a->n ? calloc(a->n, sizeof(*list)) : NULL;
	for (size_t i = 0; list && i < a->n; i++)
		list[i] = &a->at[i];
	if (list)
		qsort(list, a->n, sizeof(*list), by_name);
	return list;
}

struct diff_text {
	char *text;
	size_t len, cap;
	unsigned left_out;
};

static void add_difference(struct diff_text *d, char sign, const char *name)
{
	char word[HW_ACCOUNT_NAME_MAX + 3];
	snprintf(word, sizeof(word), "%s%c%s", d->len ? " " : "", sign, name);
	size_t n = strlen(word);
	if (d->left_out || d->len + n + sizeof(" and 20000 more") > d->cap) {
		d->left_out++;
		return;
	}
	memcpy(d->text + d->len, word, n + 1);
	d->len += n;
}

static bool is_same(const struct hw_account *a, const struct hw_account *b)
{
	return a->role == b->role && a->expires_s == b->expires_s && by_hash(a, b) == 0;
}

void hw_accounts_diff(const struct hw_accounts *from, const struct hw_accounts *to, char *text, size_t cap)
{
	const struct hw_account **was = by_names(from), **is = by_names(to);
	size_t n = was ? from->n : 0, m = is ? to->n : 0;
	struct diff_text d = {text, 0, cap, 0};
	*text = '\0';
	for (size_t i = 0, k = 0; i < n || k < m;) {
		int order = i == n ? 1 : k == m ? -1 : strcmp(was[i]->name, is[k]->name);
		if (order < 0)
			add_difference(&d, '-', was[i]->name);
		else if (order > 0)
			add_difference(&d, '+', is[k]->name);
		else if (!is_same(was[i], is[k]))
			add_difference(&d, '~', is[k]->name);
		i += order <= 0;
		k += order >= 0;
	}
	if (d.left_out)
		snprintf(text + d.len, cap - d.len, " and %u more", d.left_out);
	free(was);
	free(is);
}

bool hw_accounts_expire(const struct hw_accounts *a, int64_t from_s, int64_t to_s)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].expires_s > from_s && a->at[i].expires_s <= to_s)
			return true;
	return false;
}

bool hw_api_token_hash(const char *token, size_t len, unsigned char hash[HW_API_TOKEN_HASH])
{
	unsigned n = 0;
	return EVP_Digest(token, len, hash, &n, EVP_sha256(), NULL) == 1 && n == HW_API_TOKEN_HASH;
}

const struct hw_account *hw_accounts_find(const struct hw_accounts *a, const char *name, size_t name_len,
                                          const char *token, size_t len)
{
	struct hw_account wanted;
	if (a->n == 0 || len > HW_API_TOKEN_MAX || !hw_api_token_hash(token, len, wanted.hash))
		return NULL;
	const struct hw_account *found = bsearch(&wanted, a->at, a->n, sizeof(*a->at), by_hash);
	if (!found || !name)
		return found;
	return strlen(found->name) == name_len && memcmp(found->name, name, name_len) == 0 ? found : NULL;
}
