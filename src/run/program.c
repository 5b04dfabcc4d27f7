/* SPDX-License-Identifier: MIT */
/* See program.h. */
#include "run/program.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/file.h"
#include "http/server.h"
#include "http/socket.h"
#include "run/loop.h"

/* --- the configuration ------------------------------------------------------------------------------------------ */

bool hw_program_find_user(const char *path, const void *conf, const char *section, const char *name,
                          struct hw_user *user)
{
	if (hw_user_find(user, name) == 0)
		return true;
	hw_conf_report_wrong(
		conf, path, section, "user",
		"there is no user '%s'; create it (useradd --system %s), or leave the value empty to run as root", name,
		name);
	return false;
}

bool hw_program_find_group(const char *path, const void *conf, const char *section, const char *name)
{
	gid_t group;
	if (!*name || hw_socket_group(name, &group) == 0)
		return true;
	hw_conf_report_wrong(conf, path, section, "socket_group", "there is no group '%s'", name);
	return false;
}

bool hw_program_can_read(const char *path, const void *conf, const struct hw_program_file *files, size_t n)
{
	bool right = true;
	for (size_t k = 0; k < n; k++) {
		int rc = *files[k].path ? hw_file_check(files[k].path) : 0;
		if (rc == 0)
			continue;
		hw_conf_report_wrong(conf, path, files[k].section, files[k].key, "cannot read %s: %s", files[k].path,
		                     hw_file_error(-rc));
		right = false;
	}
	return right;
}

/* Prints all errors of the file. Returns the exit status. */
static int refuse(const struct hw_program *p, const char *path, struct hw_conf_errors *errors)
{
	if (errors->no_memory) {
		fprintf(stderr, "%s: cannot read %s: out of memory\n", p->help.name, path);
		return EXIT_FAILURE;
	}
	for (size_t k = 0; k < errors->n; k++)
		fprintf(stderr, "%s\n", errors->lines[k]);
	if (errors->rest && p->judge_rest)
		p->judge_rest(path, errors->rest);
	hw_conf_errors_fini(errors);
	return HW_EXIT_USAGE;
}

static int make_absolute(char **path)
{
	char *dir, *whole;
	if (**path == '/')
		return 0;
	dir = getcwd(NULL, 0);
	if (!dir)
		return -errno;
	int n = asprintf(&whole, "%s/%s", dir, *path);
	free(dir);
	if (n < 0)
		return -ENOMEM;
	free(*path);
	*path = whole;
	return 0;
}

/* Reads the configuration and finds the user, or exits after printing the errors. */
static void *load(const struct hw_program *p, const struct hw_options *o, struct hw_user *user)
{
	struct hw_conf_errors errors = {0};
	void *c = hw_conf_load(p->table, o->conf, &errors);
	if (!c)
		exit(refuse(p, o->conf, &errors));
	hw_conf_errors_fini(&errors);
	bool right = hw_program_find_user(o->conf, c, p->section, p->conf(c).user, user);
	if (!p->is_right(o->conf, c) || !right) {
		hw_conf_free(c);
		exit(HW_EXIT_USAGE);
	}
	int rc = p->reloads ? make_absolute(&((struct hw_conf_head *)c)->path) : 0;
	if (rc) {
		fprintf(stderr, "%s: cannot resolve the path %s: %s\n", p->help.name, o->conf, strerror(-rc));
		hw_conf_free(c);
		exit(EXIT_FAILURE);
	}
	return c;
}

/* --- for serve() ------------------------------------------------------------------------------------------------ */

int hw_program_read_secret(struct hw_daemon *d, const char *key, const char *path, char **out)
{
	*out = *path ? hw_conf_read_secret(path) : strdup("");
	if (*out)
		return 0;
	int error = errno;
	hw_log(&d->log, HW_LOG_ERROR, "cannot read %s %s: %s", key, path, hw_file_error(error));
	return error ? -error : -EIO;
}

int hw_program_listen(struct hw_daemon *d, struct hw_http *http, const char *socket, const char *group)
{
	hw_make_parent(socket, &d->user);
	int rc = hw_http_listen(http, socket, group);
	if (!rc)
		return hw_daemon_give_socket(d, socket, group);
	hw_log(&d->log, HW_LOG_ERROR, "cannot open the socket %s: %s; see [%s] socket and socket_group", socket,
	       hw_socket_error(-rc), d->section);
	return rc;
}

/* --- main ------------------------------------------------------------------------------------------------------- */

/* Prints the result of -t after the file was read without errors. With -v also the whole configuration, including
 * presets and defaults. */
static void report_test(const struct hw_program *p, const void *conf, const struct hw_options *o)
{
	if (p->warn)
		p->warn(o->conf, conf);
	if (o->verbose) {
		hw_conf_print(conf, stdout);
		hw_conf_print_foreign(conf, stdout);
	}
	printf("%s: ok\n", o->conf);
}

static const char *program_name; /* libevent's callback has no argument */

/* Prints libevent's errors only. Its warnings are not needed, because its functions also return failures. */
static void on_libevent(int severity, const char *text)
{
	if (severity >= EVENT_LOG_ERR)
		fprintf(stderr, "%s: libevent: %s\n", program_name, text);
}

int hw_program_main(const struct hw_program *p, int argc, char **argv)
{
	struct hw_options o;
	struct hw_daemon d;
	hw_options_parse(argc, argv, &p->help, &o);
	signal(SIGPIPE, SIG_IGN);
	hw_loop_hold_signals();
	program_name = p->help.name;
	event_set_log_callback(on_libevent);
	hw_daemon_init(&d, p->help.name, p->section);
	void *c = load(p, &o, &d.user);
	if (o.test) {
		report_test(p, c, &o);
		hw_conf_free(c);
		return 0;
	}
	struct hw_program_conf common = p->conf(c);
	int rc = hw_daemon_begin(&d, common.pid_file, common.log, o.verbose ? HW_LOG_DEBUG : common.log_level,
	                         o.foreground);
	if (rc) {
		hw_conf_free(c);
		return 1;
	}
	int status = p->serve(c, &d);
	hw_daemon_end(&d);
	return status;
}
