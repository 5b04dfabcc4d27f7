/* SPDX-License-Identifier: MIT */
/* heartwheelctl discover: listens to a broker, finds groups of devices, and writes sections of monitor.conf. */
#include <errno.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/shared.h"
#include "ctl/ctl.h"
#include "ctl/discover_find.h"
#include "ctl/discover_listen.h"
#include "ctl/discover_write.h"
#include "mqtt/guard.h"

#define LASTS_MS     60000
#define LASTS_MAX_MS (INT64_C(24) * 3600 * 1000)
#define KEEPALIVE_S  30
#define PORT         1883
#define PORT_TLS     8883

_Static_assert(HW_FILTERS_MAX <= HW_LISTEN_FILTERS, "each --filter has room in struct hw_listen");

/* --- the broker --------------------------------------------------------------------------------------------------- */

struct place {
	struct hw_conf_head head;
	struct hw_conf_mqtt mqtt;
};

static const struct hw_conf_option rows[] = {HW_CONF_MQTT_ROWS(struct place, mqtt)};
static const struct hw_conf_table table = {
	.options = rows, .n_options = sizeof(rows) / sizeof(rows[0]), .size = sizeof(struct place)};

struct broker {
	struct place *file; /* NULL: not from the file */
	char *host;         /* of --broker */
	char *password;
};

/* Splits HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. Returns false if it is malformed. */
static bool split_broker(const char *text, char **host, int *port)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
	bool has_port = colon && (bracket ? colon == bracket + 1 : strchr(text, ':') == colon);
	const char *end = has_port ? colon : text + strlen(text);
	char *after;
	if (*text == '[') {
		if (!bracket || bracket + 1 != end)
			return false;
		text++;
		end = bracket;
	}
	*host = strndup(text, (size_t)(end - text));
	if (has_port) {
		long n = strtol(colon + 1, &after, 10);
		if (after == colon + 1 || *after || n < 1 || n > 65535)
			return false;
		*port = (int)n;
	}
	return *host && **host;
}

/* Reads [mqtt] of the file. Returns the exit status on an error; -1: the command continues. */
static int read_file(struct hw_ctl *ctl, struct broker *b, struct hw_mqtt_conf *conf)
{
	struct hw_conf_errors errors = {0};
	b->file = hw_conf_load(&table, ctl->config, &errors);
	bool missing = !b->file && access(ctl->config, F_OK) != 0 && errno == ENOENT;
	if (!b->file && !missing)
		hw_failed(ctl, "%s", errors.n > 0 ? errors.lines[0] : "out of memory");
	hw_conf_errors_fini(&errors);
	if (!b->file && !missing)
		return hw_failed(ctl, "give the broker with --broker HOST[:PORT]");
	if (!b->file)
		return -1;
	const struct hw_conf_mqtt *m = &b->file->mqtt;
	*conf = (struct hw_mqtt_conf){.host = m->host,
	                              .port = (int)m->port,
	                              .protocol = m->protocol,
	                              .username = m->username,
	                              .tls_ca = m->tls_ca,
	                              .tls_cert = m->tls_cert,
	                              .tls_key = m->tls_key};
	return -1;
}

static int read_password(struct hw_ctl *ctl, struct broker *b, const char *path)
{
	if (!path || !*path)
		return -1;
	b->password = hw_conf_read_secret(path);
	return b->password ? -1 : hw_failed(ctl, "cannot read the password in %s: %s", path, strerror(errno));
}

/* Sets the connection from the options and the file. Returns the exit status on an error; -1: the command continues. */
static int choose_broker(struct hw_ctl *ctl, const struct hw_args *args, struct broker *b, struct hw_mqtt_conf *conf)
{
	*conf = (struct hw_mqtt_conf){.host = "127.0.0.1",
	                              .port = args->tls_ca ? PORT_TLS : PORT,
	                              .protocol = 5,
	                              .username = "",
	                              .tls_ca = "",
	                              .tls_cert = "",
	                              .tls_key = ""};
	int rc = -1;
	if (args->broker && !split_broker(args->broker, &b->host, &conf->port))
		return hw_usage(args->command, "--broker must be HOST or HOST:PORT, with a port from 1 to 65535");
	if (args->broker)
		conf->host = b->host;
	else if ((rc = read_file(ctl, b, conf)) >= 0)
		return rc;
	conf->tls_ca = args->tls_ca ? args->tls_ca : conf->tls_ca;
	conf->username = args->user ? args->user : conf->username;
	/* another user has another password */
	const char *path = args->password_file      ? args->password_file
	                   : b->file && !args->user ? b->file->mqtt.password_file
	                                            : NULL;
	rc = read_password(ctl, b, path);
	conf->password = b->password ? b->password : "";
	conf->keepalive_s = KEEPALIVE_S;
	conf->barrier_topic = "heartwheel/discover";
	conf->share_topic = "";
	return rc;
}

static void release(struct broker *b)
{
	if (b->password)
		explicit_bzero(b->password, strlen(b->password));
	free(b->password);
	free(b->host);
	hw_conf_free(b->file);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

const char *hw_discover_judge(const struct hw_args *args)
{
	int64_t ms;
	for (size_t i = 0; i < args->n_filters; i++)
		if (!*args->filters[i] || mosquitto_sub_topic_check(args->filters[i]) != MOSQ_ERR_SUCCESS)
			return "--filter must be an MQTT topic filter, such as plant/# or +/+/state";
	if (args->write && !*args->write)
		return "--write is empty";
	if (args->force && !args->write)
		return "--force needs --write FILE";
	if (args->lasts && (hw_conf_duration_parse(args->lasts, &ms) || ms < 1000 || ms > LASTS_MAX_MS))
		return "--for must be a duration from 1s to 24h, such as 60s or 10m";
	return NULL;
}

/* Prints the lines. In a pipe they are printed unchanged, so that the output can be used as a file. */
static void print_lines(const struct hw_screen *s, char *text)
{
	char *line;
	while ((line = strsep(&text, "\n")) && (text || *line))
		hw_text_print_name(s, line);
}

/* Prints or saves the sections. Returns an exit status. */
static int deliver(struct hw_ctl *ctl, const struct hw_args *args, const struct hw_found *found,
                   const struct hw_topics *topics, const struct hw_listen *how)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (out)
		hw_discover_write(out, found, topics, how, hw_wall_ms());
	if (!out || fclose(out) != 0) {
		free(text);
		return hw_failed(ctl, "out of memory");
	}
	bool saves = args->write && found->n > 0;
	int rc = saves ? hw_discover_save(args->write, args->force, text, len) : 0;
	if (!saves || rc) /* what took so long to find is not lost with the file */
		print_lines(&ctl->screen, text);
	free(text);
	if (rc == -EEXIST)
		return hw_failed(ctl, "%s exists: give another file, or --force", args->write);
	if (rc)
		return hw_failed(ctl, "cannot write %s: %s", args->write, strerror(-rc));
	if (found->n == 0)
		return hw_failed(ctl, "no group was found on %zu topics", hw_topics_n(topics));
	if (args->write)
		printf("%s: %zu group%s. Check it, and add it to monitor.conf.\n", args->write, found->n,
		       found->n == 1 ? "" : "s");
	return HW_EXIT_DONE;
}

/* Reports the messages that were not read. */
static void report_too_long(struct hw_ctl *ctl, const struct hw_listen *how)
{
	if (how->too_long == 0)
		return;
	(void)hw_failed(ctl,
	                "%llu message%s left out, because the MQTT 5 properties are longer than %d KiB; the last one "
	                "is on topic '%s'",
	                (unsigned long long)how->too_long, how->too_long == 1 ? " was" : "s were",
	                HW_GUARD_PROPERTIES_KIB, how->too_long_topic);
}

static int discover(struct hw_ctl *ctl, const struct hw_args *args, struct hw_listen *how)
{
	uint64_t seed = 0;
	struct hw_found found;
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = (uint64_t)hw_wall_ms();
	struct hw_topics *topics = hw_topics_new(seed);
	if (!topics)
		return hw_failed(ctl, "out of memory");
	if (ctl->screen.terminal || isatty(STDERR_FILENO))
		fprintf(stderr, "Listening at %s:%d for %lld s; Ctrl-C ends it earlier.\n", how->conf.host,
		        how->conf.port, (long long)(how->lasts_ms / 1000));
	int rc = hw_listen_run(how, topics);
	if (how->failed)
		hw_failed(ctl, "%s", how->why);
	report_too_long(ctl, how);
	if (rc == 0 && !how->was_up)
		rc = how->failed ? HW_EXIT_FAILED : hw_failed(ctl, "interrupted");
	else if (rc || hw_discover_find(topics, seed, &found))
		rc = hw_failed(ctl, "out of memory");
	else {
		rc = deliver(ctl, args, &found, topics, how);
		hw_found_fini(&found);
	}
	hw_topics_free(topics);
	return rc;
}

int hw_cmd_discover(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct broker b = {0};
	struct hw_listen how = {.filters = args->filters, .n_filters = args->n_filters, .lasts_ms = LASTS_MS};
	if (args->lasts)
		hw_conf_duration_parse(args->lasts, &how.lasts_ms);
	if (args->write && !args->force && access(args->write, F_OK) == 0)
		return hw_failed(ctl, "%s exists: give another file, or --force", args->write);
	int rc = choose_broker(ctl, args, &b, &how.conf);
	if (rc < 0)
		rc = discover(ctl, args, &how);
	release(&b);
	return rc;
}
