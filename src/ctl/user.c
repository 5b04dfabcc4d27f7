/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl user: the file of users that [http] users names. It is changed by a copy that takes its place, under a
 * lock of its directory: whoever reads it meanwhile reads a whole one, and two changes at a time are both made.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/file.h"
#include "ctl/ctl.h"
#include "http/accounts.h"

#define DEFAULT_FILE HW_SYSCONFDIR "/users"
#define TOKEN_BYTES  32

static const char help[] = "usage: heartwheelctl user add NAME --role read|operate [--expires D] [--file FILE]\n"
			   "       heartwheelctl user list [--json] [--file FILE]\n"
			   "       heartwheelctl user remove NAME [--file FILE]\n"
			   "\n"
			   "Who may come in over [http] listen. Adding a user prints a token, once: only its\n"
			   "SHA-256 is kept. What is changed is in force after 'heartwheelctl reload'.\n"
			   "\n"
			   "options:\n"
			   "  --role R     read: whatever only reads; operate: everything\n"
			   "  --expires D  when the token ends: after 90d, 12h, ...; default: never\n"
			   "  --file FILE  the file that [http] users names\n"
			   "               (default " DEFAULT_FILE ")\n"
			   "  --json       a JSON object for each, one a line\n"
			   "  -h, --help   this text\n";

struct request {
	const char *verb, *name; /* name: NULL where the verb takes none */
	const char *file, *role, *expires;
	bool json;
};

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...)
{
	va_list args;
	fputs("heartwheelctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return HW_EXIT_FAILED;
}

static int usage(const char *what)
{
	fprintf(stderr, "heartwheelctl: user: %s\nTry 'heartwheelctl user --help'.\n", what);
	return HW_EXIT_USAGE;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* The directory of the file, locked until it is closed; or -errno. */
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

/* As the file that is replaced; a new one can be read by the daemon's group, where there is one. */
static int dress(int fd, const char *file)
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

/* Writes what `from` (NULL: nothing) says of others than `without`, and `line` unless that is NULL. */
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

/* Puts a changed copy in the file's place. 0 or -errno. */
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
		rc = dress(fd, file);
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

static void on_wrong(void *arg, unsigned line, const char *what)
{
	fail("%s:%u: %s", (const char *)arg, line, what);
}

/* A file that is not there has no users. 0, or an exit status with what is wrong said. */
static int load(const struct request *r, struct hw_accounts *a, bool must_be)
{
	int rc = hw_accounts_load(a, r->file, on_wrong, (void *)(uintptr_t)r->file);
	if (rc == 0 || (rc == -ENOENT && !must_be))
		return 0;
	if (rc != -EINVAL)
		fail("cannot read %s: %s", r->file, hw_file_error(-rc));
	return HW_EXIT_FAILED;
}

static const struct hw_account *find(const struct hw_accounts *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->at[i].name, name) == 0)
			return &a->at[i];
	return NULL;
}

/* --- the verbs ---------------------------------------------------------------------------------------------------- */

static void to_hex(const unsigned char *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* A token, and the line that knows its hash alone. */
static bool make(const struct request *r, int64_t expires_s, char token[2 * TOKEN_BYTES + 1], char *line, size_t cap)
{
	unsigned char random[TOKEN_BYTES], hash[HW_TOKEN_HASH];
	char digits[2 * HW_TOKEN_HASH + 1], end[32] = "";
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	to_hex(random, sizeof(random), token);
	if (!hw_token_hash(token, 2 * sizeof(random), hash))
		return false;
	to_hex(hash, sizeof(hash), digits);
	if (expires_s)
		snprintf(end, sizeof(end), ":%" PRId64, expires_s);
	snprintf(line, cap, "%s:%s:%s%s", r->name, r->role, digits, end);
	return true;
}

static int add(const struct request *r)
{
	char token[2 * TOKEN_BYTES + 1], line[HW_ACCOUNT_NAME_MAX + 2 * HW_TOKEN_HASH + 64];
	enum hw_role role;
	int64_t ms = 0;
	struct hw_accounts a = {0};
	if (!hw_account_name_is_right(r->name))
		return usage("a name is 1 to 64 of letters, digits, '.', '_' and '-'");
	if (!r->role || !hw_role_parse(r->role, &role))
		return usage("--role is 'read' or 'operate'");
	if (r->expires && (hw_conf_duration_parse(r->expires, &ms) < 0 || ms < 1000))
		return usage("--expires is a duration such as 90d, from 1s on");
	int rc = load(r, &a, false);
	if (!rc && find(&a, r->name))
		rc = fail("there is a user '%s' in %s: remove it first", r->name, r->file);
	hw_accounts_fini(&a);
	if (rc)
		return rc;
	if (!make(r, ms ? (hw_wall_ms() + ms) / 1000 : 0, token, line, sizeof(line)))
		return fail("cannot make a token: %s", strerror(errno));
	rc = rewrite(r->file, NULL, line);
	if (rc)
		return fail("cannot write %s: %s", r->file, strerror(-rc));
	fprintf(stderr, "The token of %s, which nobody can show again; in force after 'heartwheelctl reload':\n",
	        r->name);
	puts(token);
	return HW_EXIT_DONE;
}

static int drop(const struct request *r)
{
	struct hw_accounts a = {0};
	int rc = load(r, &a, true);
	if (!rc && !find(&a, r->name))
		rc = fail("there is no user '%s' in %s", r->name, r->file);
	hw_accounts_fini(&a);
	if (rc)
		return rc;
	rc = rewrite(r->file, r->name, NULL);
	return rc ? fail("cannot write %s: %s", r->file, strerror(-rc)) : HW_EXIT_DONE;
}

static int by_name(const void *a, const void *b)
{
	const struct hw_account *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void print(const struct request *r, const struct hw_account *a)
{
	char when[HW_SPAN_MAX];
	bool over = a->expires_s && a->expires_s * 1000 <= hw_wall_ms();
	if (r->json && a->expires_s)
		printf("{\"name\":\"%s\",\"role\":\"%s\",\"expires\":%" PRId64 "}\n", a->name, hw_role_name(a->role),
		       a->expires_s);
	else if (r->json)
		printf("{\"name\":\"%s\",\"role\":\"%s\",\"expires\":null}\n", a->name, hw_role_name(a->role));
	else if (a->expires_s)
		printf("%-20s %-8s %s %s\n", a->name, hw_role_name(a->role), over ? "expired" : "until",
		       hw_text_clock(a->expires_s * 1000, when));
	else
		printf("%-20s %s\n", a->name, hw_role_name(a->role));
}

static int list(const struct request *r)
{
	struct hw_accounts a = {0};
	int rc = load(r, &a, true);
	if (rc)
		return rc;
	if (a.n > 1)
		qsort(a.at, a.n, sizeof(*a.at), by_name);
	for (size_t i = 0; i < a.n; i++)
		print(r, &a.at[i]);
	if (a.n == 0 && !r->json)
		puts("no users");
	hw_accounts_fini(&a);
	return HW_EXIT_DONE;
}

static int run(const struct request *r)
{
	static const struct {
		const char *name;
		int (*run)(const struct request *r);
		bool changes;
	} verbs[] = {{"add", add, true}, {"list", list, false}, {"remove", drop, true}};
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (strcmp(r->verb, verbs[i].name) != 0)
			continue;
		if (!r->name != !verbs[i].changes)
			return usage(r->name ? "too many arguments" : "which user?");
		int lock = verbs[i].changes ? lock_directory(r->file) : 0;
		if (lock < 0)
			return fail("cannot lock the directory of %s: %s", r->file, strerror(-lock));
		int rc = verbs[i].run(r);
		if (verbs[i].changes)
			close(lock);
		return rc;
	}
	return usage("the command is 'add', 'list' or 'remove'");
}

int hw_user_main(const struct hw_whom *whom, int argc, char **argv)
{
	(void)whom;
	static const struct option options[] = {
		{"role", required_argument, NULL, 'r'}, {"expires", required_argument, NULL, 'e'},
		{"file", required_argument, NULL, 'f'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
	struct request r = {.file = DEFAULT_FILE};
	int o;
	optind = 0;
	while ((o = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (o == 'r')
			r.role = optarg;
		else if (o == 'e')
			r.expires = optarg;
		else if (o == 'f')
			r.file = optarg;
		else if (o == 'j')
			r.json = true;
		else if (o == 'h')
			return fputs(help, stdout) < 0 ? HW_EXIT_FAILED : HW_EXIT_DONE;
		else
			return usage(o == ':' ? "an option needs a value" : "unknown option");
	}
	if (optind == argc)
		return usage("which command: add, list or remove?");
	r.verb = argv[optind];
	r.name = optind + 1 < argc ? argv[optind + 1] : NULL;
	if (argc > optind + 2)
		return usage("too many arguments");
	if (strcmp(r.verb, "add") != 0 && (r.role || r.expires))
		return usage("--role and --expires are of 'user add'");
	return run(&r);
}
