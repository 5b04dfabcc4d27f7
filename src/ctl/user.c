/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl user: changes the file of [http] users. A change writes a copy that replaces the file. The directory is
 * locked meanwhile. So a reader always sees a complete file, and if two changes are made at the same time, neither is
 * lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/file.h"
#include "ctl/ctl.h"
#include "heartwheel/json_writer.h"
#include "http/accounts.h"

#define DEFAULT_FILE HW_SYSCONFDIR "/users"
#define TOKEN_BYTES  32

/* --- the file --------------------------------------------------------------------------------------------------- */

/* Locks the directory of the file until the returned descriptor is closed. Returns the descriptor or -errno. */
static int lock_directory(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *dir = slash ? strndup(file, slash == file ? 1 : (size_t)(slash - file)) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int rc = fd < 0 || flock(fd, LOCK_EX) < 0 ? -errno : fd;
	if (rc < 0 && fd >= 0)
		close(fd);
	free(dir);
	return rc;
}

/* Gives the new file the owner and mode of the file that it replaces. If there was no file, the daemon's group gets
 * the right to read the new one, if that group exists. */
static int copy_owner(int fd, const char *file)
{
	struct stat st;
	if (stat(file, &st) == 0)
		return fchmod(fd, st.st_mode & 07777) < 0 || (fchown(fd, st.st_uid, st.st_gid) < 0 && geteuid() == 0)
		               ? -errno
		               : 0;
	const struct group *group = getgrnam("heartwheel");
	bool given = group && fchown(fd, (uid_t)-1, group->gr_gid) == 0;
	return fchmod(fd, given ? 0640 : 0644) < 0 ? -errno : 0;
}

/* Copies the lines of `from` (NULL: none), but leaves out the line of the user `without`. Adds `line` unless it is
 * NULL. */
static int write_lines(FILE *to, FILE *from, const char *without, const char *line)
{
	char *text = NULL;
	size_t cap = 0, len = without ? strlen(without) : 0;
	ssize_t n;
	while (from && (n = getline(&text, &cap, from)) > 0) {
		if (without && strncmp(text, without, len) == 0 && text[len] == ':')
			continue;
		fputs(text, to);
		if (text[n - 1] != '\n')
			fputc('\n', to);
	}
	free(text);
	if (line)
		fprintf(to, "%s\n", line);
	return ferror(to) || fflush(to) != 0 || fsync(fileno(to)) < 0 ? -EIO : 0;
}

/* Replaces the file with a changed copy. Returns 0 or -errno. */
static int rewrite(const char *file, const char *without, const char *line)
{
	char *path;
	if (asprintf(&path, "%s.XXXXXX", file) < 0)
		return -ENOMEM;
	FILE *from = fopen(file, "re");
	int rc = from || errno == ENOENT ? 0 : -errno;
	int fd = rc ? -1 : mkostemp(path, O_CLOEXEC);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!rc && !to)
		rc = -errno;
	if (!rc)
		rc = copy_owner(fd, file);
	if (!rc)
		rc = write_lines(to, from, without, line);
	if (to && fclose(to) != 0 && !rc)
		rc = -errno;
	if (!rc && rename(path, file) < 0)
		rc = -errno;
	if (rc && fd >= 0)
		unlink(path);
	if (from)
		fclose(from);
	free(path);
	return rc;
}

/* The file, to be changed or read. */
struct users {
	const struct hw_ctl *ctl;
	const char *file;
	int lock; /* the descriptor of lock_directory(); -1: none */
	struct hw_accounts accounts;
};

static void on_wrong(void *arg, unsigned line, const char *what)
{
	const struct users *u = arg;
	if (line)
		hw_failed(u->ctl, "%s:%u: %s", u->file, line, what);
	else
		hw_failed(u->ctl, "%s: %s", u->file, what);
}

/* Loads the users. Without `must_be`, a missing file counts as empty. Returns 0, or prints the error and returns an
 * exit status. close_users() must be called in any case. */
static int open_users(struct users *u, const struct hw_ctl *ctl, const struct hw_args *args, bool locked, bool must_be)
{
	*u = (struct users){.ctl = ctl, .file = args->file ? args->file : DEFAULT_FILE, .lock = -1};
	if (locked && (u->lock = lock_directory(u->file)) < 0)
		return hw_failed(ctl, "cannot lock the directory of %s: %s", u->file, strerror(-u->lock));
	int rc = hw_accounts_load(&u->accounts, u->file, on_wrong, u);
	if (rc == 0 || (rc == -ENOENT && !must_be))
		return 0;
	if (rc != -EINVAL)
		hw_failed(ctl, "cannot read %s: %s", u->file, hw_file_error(-rc));
	return HW_EXIT_FAILED;
}

/* Returns rc. */
static int close_users(struct users *u, int rc)
{
	hw_accounts_fini(&u->accounts);
	if (u->lock >= 0)
		close(u->lock);
	return rc;
}

static const struct hw_account *find(const struct hw_accounts *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->at[i].name, name) == 0)
			return &a->at[i];
	return NULL;
}

/* --- the verbs -------------------------------------------------------------------------------------------------- */

static void to_hex(const unsigned char *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* Makes a token, and a line that contains only its hash. */
static bool make(const struct hw_args *args, int64_t expires_s, char token[2 * TOKEN_BYTES + 1], char *line, size_t cap)
{
	unsigned char random[TOKEN_BYTES], hash[HW_API_TOKEN_HASH];
	char digits[2 * HW_API_TOKEN_HASH + 1], end[32] = "";
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	to_hex(random, sizeof(random), token);
	if (!hw_api_token_hash(token, 2 * sizeof(random), hash))
		return false;
	to_hex(hash, sizeof(hash), digits);
	if (expires_s)
		snprintf(end, sizeof(end), ":%" PRId64, expires_s);
	snprintf(line, cap, "%s:%s:%s%s", args->id, args->role, digits, end);
	return true;
}

/* Replaces the file with a copy without one user's line, or with one more line. Returns an exit status. */
static int change(struct users *u, const char *without, const char *line)
{
	int rc = rewrite(u->file, without, line);
	return rc ? hw_failed(u->ctl, "cannot write %s: %s", u->file, strerror(-rc)) : HW_EXIT_DONE;
}

static int add(struct users *u, const struct hw_args *args, int64_t ms)
{
	char token[2 * TOKEN_BYTES + 1], line[HW_ACCOUNT_NAME_MAX + 2 * HW_API_TOKEN_HASH + 64];
	if (find(&u->accounts, args->id))
		return hw_failed(u->ctl, "there is already a user '%s' in %s: remove that user first", args->id,
		                 u->file);
	if (!make(args, ms ? (hw_wall_ms() + ms) / 1000 : 0, token, line, sizeof(line)))
		return hw_failed(u->ctl, "cannot make a token: %s", strerror(errno));
	int rc = change(u, NULL, line);
	if (rc)
		return rc;
	fprintf(stderr, "The API token of %s; it cannot be shown again, and is valid after 'heartwheelctl reload':\n",
	        args->id);
	puts(token);
	return HW_EXIT_DONE;
}

int hw_cmd_user_add(struct hw_ctl *ctl, const struct hw_args *args)
{
	enum hw_user_role role;
	int64_t ms = 0;
	struct users u;
	if (!hw_account_name_is_right(args->id))
		return hw_usage(args->command, "a name must be 1 to 64 letters, digits, '.', '_' and '-'");
	if (!args->role || !hw_user_role_parse(args->role, &role))
		return hw_usage(args->command, "--role must be 'read' or 'operate'");
	if (args->expires && (hw_conf_duration_parse(args->expires, &ms) < 0 || ms < 1000))
		return hw_usage(args->command, "--expires must be a duration of 1s or more, such as 90d");
	int rc = open_users(&u, ctl, args, true, false);
	return close_users(&u, rc ? rc : add(&u, args, ms));
}

int hw_cmd_user_remove(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct users u;
	int rc = open_users(&u, ctl, args, true, true);
	if (!rc)
		rc = find(&u.accounts, args->id) ? change(&u, args->id, NULL)
		                                 : hw_failed(ctl, "there is no user '%s' in %s", args->id, u.file);
	return close_users(&u, rc);
}

static int by_name(const void *a, const void *b)
{
	const struct hw_account *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void print_json(const struct hw_account *a)
{
	char text[512];
	struct hw_json j;
	hw_json_begin_text(&j, text, sizeof(text));
	hw_json_open(&j, '{');
	hw_json_text(&j, "name", a->name);
	hw_json_text(&j, "role", hw_user_role_name(a->role));
	if (a->expires_s)
		hw_json_int(&j, "expires", a->expires_s);
	else
		hw_json_null(&j, "expires");
	hw_json_close(&j, '}');
	hw_json_end_text(&j);
	puts(text);
}

static void print(const struct hw_args *args, const struct hw_account *a)
{
	char when[HW_SPAN_MAX];
	bool over = a->expires_s && a->expires_s * 1000 <= hw_wall_ms();
	if (args->json)
		print_json(a);
	else if (a->expires_s)
		printf("%-20s %-8s %s %s\n", a->name, hw_user_role_name(a->role), over ? "expired" : "until",
		       hw_text_clock(a->expires_s * 1000, when));
	else
		printf("%-20s %s\n", a->name, hw_user_role_name(a->role));
}

int hw_cmd_user_list(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct users u;
	int rc = open_users(&u, ctl, args, false, true);
	if (rc)
		return close_users(&u, rc);
	if (u.accounts.n > 1)
		qsort(u.accounts.at, u.accounts.n, sizeof(*u.accounts.at), by_name);
	for (size_t i = 0; i < u.accounts.n; i++)
		print(args, &u.accounts.at[i]);
	if (u.accounts.n == 0 && !args->json)
		puts("no users");
	return close_users(&u, HW_EXIT_DONE);
}
