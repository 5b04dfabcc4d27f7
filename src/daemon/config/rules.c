/* SPDX-License-Identifier: MIT */
/* See rules.h. If a rule is broken, the line of the key that must be changed is reported. A refused value is not
 * used to check other keys. */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/shared.h"
#include "conf/value.h"
#include "heartwheel/group.h"
#include "heartwheel/topic.h"
#include "http/origin.h"
#include "http/proxies.h"
#include "names.h"
#include "preset.h"
#include "settings.h"

/* What the text of a group is a template of. */
enum template {
	TEMPLATE_HEARTBEAT,
	TEMPLATE_STATUS,  /* a topic to publish on: without wildcards */
	TEMPLATE_BATCH,   /* heartbeats whose payload names the devices: the filter has no {id} */
	TEMPLATE_GOODBYE, /* followed by the word or member of a goodbye */
	TEMPLATE_FIXED,   /* heartbeats of a group with a single device: no names in braces */
	TEMPLATE_IGNORE,
	TEMPLATE_ID,
	TEMPLATE_FIELD /* not a topic: the name of a reported field, and its path */
};

/* Checks whether the core can compile a template. Returns 0, -ENOMEM, or -EINVAL with a static text in `*why`. */
static int compile(const char *text, enum template kind, const char **why)
{
	static const enum hw_topic_kind kinds[] = {
		[TEMPLATE_HEARTBEAT] = HW_TOPIC_HEARTBEAT, [TEMPLATE_STATUS] = HW_TOPIC_STATUS,
		[TEMPLATE_BATCH] = HW_TOPIC_BATCH,         [TEMPLATE_FIXED] = HW_TOPIC_ANY,
		[TEMPLATE_IGNORE] = HW_TOPIC_ANY,          [TEMPLATE_ID] = HW_TOPIC_FORM};
	if (kind == TEMPLATE_FIELD) {
		struct hw_field f;
		int wrong = hw_field_compile(&f, text, why);
		hw_field_fini(&f);
		return wrong;
	}
	struct hw_goodbye g = {0};
	int rc = kind == TEMPLATE_GOODBYE ? hw_goodbye_compile(&g, text, why)
	                                  : hw_topic_compile(&g.topic, text, kinds[kind], why);
	hw_goodbye_fini(&g);
	return rc;
}

static struct hw_conf_origin *origin(const struct hw_conf_draft *d, struct hw_conf_origins *origins, const char *key)
{
	return hw_conf_draft_origin(d, origins, "group", key);
}

/*
 * Adds the default heartbeats to the group named default, if the file gives it none. Any other group needs at least one
 * in the file.
 */
static void add_default_heartbeats(struct hw_conf_draft *d, struct hw_settings_group *g,
                                   struct hw_conf_origins *origins)
{
	static const char *const heartbeats[] = {"nodes/{id}/heartbeat", "nodes/{id}/status"};
	int at = hw_conf_option_find(d->table, "group", "heartbeat");
	char why[512];
	for (size_t k = 0; k < sizeof(heartbeats) / sizeof(heartbeats[0]); k++)
		hw_conf_draft_set(d, g, origins, at, heartbeats[k], 0, why, sizeof(why));
}

bool hw_settings_no_whiles(const struct hw_settings_group *g)
{
	return g->n_whiles == 1 && strcmp(g->whiles[0], "none") == 0;
}

bool hw_settings_is_url(const char *text)
{
	return strchr(text, ':');
}

int64_t hw_settings_probe_after_ms(const struct hw_settings_group *g)
{
	int64_t after_ms = g->timeout_ms / 3 * 2, most_ms = g->timeout_ms - HW_PROBE_WINDOW_MS;
	if (g->probe_after_ms > 0)
		return g->probe_after_ms;
	return after_ms < most_ms ? after_ms : most_ms;
}

static bool has_group(const struct hw_settings *c, const char *name)
{
	for (size_t i = 0; i < c->n_groups; i++)
		if (strcmp(c->groups[i].name, name) == 0)
			return true;
	return false;
}

static void check_keyspace(struct hw_conf_draft *d, const struct hw_settings *c)
{
	char why[192];
	snprintf(why, sizeof(why), "there is no [group %s] in this file", c->keyspace_group);
	hw_conf_draft_require(d, !c->keyspace_enabled || has_group(c, c->keyspace_group), "keyspace", "group",
	                      "enabled", why);
	hw_conf_draft_require(d,
	                      !c->keyspace_enabled || c->store == HW_STORE_REDIS ||
	                              hw_conf_draft_origin(d, &d->origins, "store", "type")->bad,
	                      "keyspace", "enabled", "configure",
	                      "needs [store] type = redis: only Redis has keys that expire");
}

static void check_cluster(struct hw_conf_draft *d, const struct hw_settings *c)
{
	hw_conf_draft_require(d,
	                      c->cluster_mode == HW_CLUSTER_OFF || c->store == HW_STORE_REDIS ||
	                              hw_conf_draft_origin(d, &d->origins, "store", "type")->bad,
	                      "cluster", "mode", "name",
	                      "needs [store] type = redis: several nodes agree through Redis");
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static void check_names(struct hw_conf_draft *d, const char *names)
{
	size_t len = 0;
	const char *wrong = hw_origin_wrong_name(names, &len);
	char why[160];
	snprintf(why, sizeof(why), "'%.*s' is not a host name: write names without a scheme and without a port",
	         (int)len, wrong ? wrong : "");
	hw_conf_draft_require(d, !wrong, "http", "names", "names", why);
}

/* Refuses API tokens without TLS if the address is not loopback, because other machines on the network could read the
 * tokens. */
static void check_http(struct hw_conf_draft *d, const struct hw_settings *c)
{
	hw_conf_draft_require(d, !*c->http_tls_cert || *c->http_tls_key, "http", "tls_cert", "tls_key",
	                      "needs tls_key as well");
	hw_conf_draft_require(d, !*c->http_tls_key || *c->http_tls_cert, "http", "tls_key", "tls_cert",
	                      "needs tls_cert as well");
	hw_conf_draft_require(d,
	                      !*c->http_users || !*c->http_listen || *c->http_tls_cert ||
	                              hw_conf_draft_origin(d, &d->origins, "http", "tls_cert")->bad ||
	                              is_loopback(c->http_listen),
	                      "http", "users", "listen",
	                      "needs tls_cert and tls_key, because listen is not a loopback address and API tokens "
	                      "must not cross the network unencrypted");
	check_names(d, c->http_names);
	struct hw_proxies proxies;
	const char *why = hw_proxies_parse(&proxies, c->http_trusted_proxies);
	hw_conf_draft_require(d, !why, "http", "trusted_proxies", "trusted_proxies", why);
}

static void check_timeouts(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const struct hw_conf_origin *timeout = origin(d, origins, "timeout");
	const struct hw_conf_origin *most = origin(d, origins, "timeout_max");
	char is[32], least[32];
	if (timeout->bad || most->bad || g->timeout_max_ms >= g->timeout_ms)
		return;
	if (!most->line) {
		g->timeout_max_ms = g->timeout_ms;
		return;
	}
	hw_conf_wrong(&d->errors, most->line, "key", "timeout_max",
	              "%s is less than this group's timeout: give %s or more, or remove it",
	              hw_conf_duration_format(g->timeout_max_ms, is, sizeof(is)),
	              hw_conf_duration_format(g->timeout_ms, least, sizeof(least)));
}

static void check_first_within(struct hw_conf_draft *d, const struct hw_settings_group *g,
                               struct hw_conf_origins *origins)
{
	const struct hw_conf_origin *o = origin(d, origins, "first_within");
	if (!o->bad && o->line && g->first_within_ms > 0 && g->first_within_ms < 1000)
		hw_conf_wrong(&d->errors, o->line, "key", "first_within",
		              "must be 1s to 30d, or 0: no device of this group becomes unseen");
}

#define MISTAKES_A_DAY 24
#define MISTAKE_MS_MAX (3650 * HW_CONF_DAY)

/* Parses the text of `mistakes`. Returns false if it is not N/DURATION, or out of range. */
static bool parse_mistakes(const char *text, unsigned *n, int64_t *per_ms)
{
	char *end;
	if (*text < '1' || *text > '9')
		return false;
	unsigned long count = strtoul(text, &end, 10);
	if (*end != '/' || count > 1000000 || hw_conf_duration_parse(end + 1, per_ms) != 0 || *per_ms <= 0 ||
	    *per_ms > 1000000 * HW_CONF_DAY)
		return false;
	*n = (unsigned)count;
	return (int64_t)count * HW_CONF_DAY <= MISTAKES_A_DAY * *per_ms && *per_ms <= (int64_t)count * MISTAKE_MS_MAX;
}

/* Checks the keys about learning. If the file has no timeout_min, its default is reduced to the group's timeout. In a
 * group with `while`, the default is the group's timeout: a shorter timeout might pass before the topic shows that the
 * bridge is cut. */
static void check_learning(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const struct hw_conf_origin *least = origin(d, origins, "timeout_min"),
				    *mistakes = origin(d, origins, "mistakes");
	bool whiles = g->n_whiles > 0 && !hw_settings_no_whiles(g);
	char is[32], most[32];
	if (!mistakes->bad && !parse_mistakes(g->mistakes, &g->n_mistakes, &g->mistakes_per_ms))
		hw_conf_wrong(&d->errors, mistakes->line, "key", "mistakes",
		              "'%s' is not a number of mistakes in a time: give NUMBER/DURATION, from 1/3650d to 24/1d "
		              "(as in 1/30d)",
		              g->mistakes);
	if (least->bad || origin(d, origins, "timeout")->bad || origin(d, origins, "timeout_max")->bad)
		return;
	if (!least->line && g->learn != HW_LEARN_NO && (whiles || g->timeout_min_ms > g->timeout_ms))
		g->timeout_min_ms = g->timeout_ms;
	if (least->line && g->timeout_min_ms > g->timeout_max_ms)
		hw_conf_wrong(&d->errors, least->line, "key", "timeout_min",
		              "%s is more than this group's timeout_max: give %s or less, or a longer timeout_max",
		              hw_conf_duration_format(g->timeout_min_ms, is, sizeof(is)),
		              hw_conf_duration_format(g->timeout_max_ms, most, sizeof(most)));
}

/* Checks a template by itself, and then compares its names with the names in the id. Returns whether the template is
 * valid. */
static bool check_template(struct hw_conf_draft *d, unsigned line, const char *key, const char *text,
                           enum template kind, const char *id, enum hw_names_of names)
{
	const char *wrong = NULL;
	char why[160];
	int rc = compile(text, kind, &wrong);
	if (rc == -ENOMEM) {
		d->errors.no_memory = true;
	} else if (rc) {
		hw_conf_wrong(&d->errors, line, "key", key, "%s", wrong ? wrong : "not a topic template");
	} else if (id && hw_names_wrong(text, id, names, why, sizeof(why))) {
		hw_conf_wrong(&d->errors, line, "key", key, "%s", why);
		rc = -EINVAL;
	}
	return rc == 0;
}

/* Checks the values of a list that have a line number. Defaults have none. Values of line `but` are left out. */
static void check_list(struct hw_conf_draft *d, struct hw_conf_origins *origins, const char *key, char *const *list,
                       size_t n, enum template kind, const char *id, unsigned but)
{
	const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", key)];
	enum hw_names_of names = kind == TEMPLATE_IGNORE    ? HW_NAMES_IGNORE
	                         : kind == TEMPLATE_GOODBYE ? HW_NAMES_GOODBYE
	                                                    : HW_NAMES_FILTER;
	for (size_t i = 0; lines && i < n; i++)
		if (!but || lines[i] != but)
			check_template(d, lines[i], key, list[i], kind, id, names);
}

/* Returns filter i of all lists of the group, so that the names of each filter can be compared with the names of each
 * other filter. */
static const char *filter_at(const struct hw_settings_group *g, size_t i)
{
	return i < g->n_heartbeat ? g->heartbeat[i] : g->goodbye[i - g->n_heartbeat];
}

/* Whether any filter of the group has this name. */
static bool in_filters(const struct hw_settings_group *g, struct hw_value name)
{
	for (size_t i = 0; i < g->n_heartbeat + g->n_goodbye; i++) {
		enum hw_names_of of = i < g->n_heartbeat ? HW_NAMES_FILTER : HW_NAMES_GOODBYE;
		const char *text = filter_at(g, i);
		if (hw_names_has(text, hw_names_filter_end(text, of), name.text, name.len))
			return true;
	}
	return false;
}

/* Checks the names of a pattern, and adds them to the names that each filter must have. */
static const char *check_pattern_names(const struct hw_settings_group *g, const struct hw_pattern *p,
                                       struct hw_value *unknown, char **names)
{
	for (unsigned k = 0; k < p->n_names; k++) {
		struct hw_value name = hw_pattern_name(p, k);
		bool is_id = name.len == 2 && memcmp(name.text, "id", 2) == 0;
		*unknown = name;
		if (g->batch && !is_id)
			return "a message of a batch is from several devices, so its topic belongs to no single one: "
			       "use {id} and text";
		if (g->batch)
			continue;
		if (!in_filters(g, name))
			return "no filter of this group has it: put it in place of a + in each filter";
		char *more;
		if (asprintf(&more, "%s/{%.*s}", *names, (int)name.len, name.text) < 0)
			return NULL;
		free(*names);
		*names = more;
	}
	return NULL;
}

/* Checks a pattern of the key on a line, and adds its names to the names that each filter must have. */
static void check_pattern(struct hw_conf_draft *d, const struct hw_settings_group *g, unsigned line, const char *key,
                          const struct hw_pattern *p, char **names)
{
	struct hw_value unknown;
	const char *why = check_pattern_names(g, p, &unknown, names);
	if (why)
		hw_conf_wrong(&d->errors, line, "key", key, "{%.*s}: %s", (int)unknown.len, unknown.text, why);
}

static void check_labels(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins,
                         char **names)
{
	const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", "label")];
	for (size_t i = 0; *names && lines && i < g->n_labels; i++) {
		struct hw_group_label l;
		const char *why;
		size_t len = strcspn(g->labels[i], " \t");
		if (i >= HW_GROUP_LABELS_MAX) {
			hw_conf_wrong(&d->errors, lines[i], "key", "label", "a group has at most %d: remove this one",
			              HW_GROUP_LABELS_MAX);
			break;
		}
		int rc = hw_group_label_compile(&l, g->labels[i], &why);
		if (rc == -EINVAL)
			hw_conf_wrong(&d->errors, lines[i], "key", "label", "'%.100s' %s", g->labels[i], why);
		d->errors.no_memory |= rc == -ENOMEM;
		if (rc != 0)
			continue;
		check_pattern(d, g, lines[i], "label", &l.value, names);
		hw_group_label_fini(&l);
		for (size_t k = 0; k < i; k++)
			if (strcspn(g->labels[k], " \t") == len && strncmp(g->labels[k], g->labels[i], len) == 0)
				hw_conf_wrong(&d->errors, lines[i], "key", "label",
				              "line %u of this group has this label too: remove one of them", lines[k]);
	}
}

/* Returns the id, followed by the names of the parents and labels as levels; each filter must have all these names. On
 * the heap; NULL without memory. */
static char *check_patterns(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", "parent")];
	char *names = strdup(g->id);
	for (size_t i = 0; names && lines && i < g->n_parents; i++) {
		struct hw_pattern p;
		const char *why;
		if (i >= HW_PARENTS_MAX) {
			hw_conf_wrong(&d->errors, lines[i], "key", "parent", "a group has at most %d: remove this one",
			              HW_PARENTS_MAX);
			break;
		}
		int rc = hw_pattern_compile(&p, g->parents[i], &why);
		if (rc == -EINVAL)
			hw_conf_wrong(&d->errors, lines[i], "key", "parent", "%s", why);
		d->errors.no_memory |= rc == -ENOMEM;
		if (rc != 0)
			continue;
		check_pattern(d, g, lines[i], "parent", &p, &names);
		hw_pattern_fini(&p);
	}
	check_labels(d, g, origins, &names);
	d->errors.no_memory |= !names;
	return names;
}

/* Checks the filters of a preset against the names in the group's id. Returns the line of the preset if they do not
 * match; 0: they do. The error is reported only once, because the preset's filters are not in the file. */
static unsigned check_preset(struct hw_conf_draft *d, const struct hw_settings_group *g,
                             struct hw_conf_origins *origins, const char *id)
{
	const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", "heartbeat")];
	unsigned line = g->preset == HW_PRESET_NONE ? 0 : origin(d, origins, "preset")->line;
	char why[160];
	for (size_t i = 0; line && id && lines && i < g->n_heartbeat; i++) {
		if (lines[i] != line || !hw_names_wrong(g->heartbeat[i], id, HW_NAMES_FILTER, why, sizeof(why)))
			continue;
		hw_conf_wrong(&d->errors, line, "key", "preset",
		              "the preset's filters lack the names in this group's id: remove id, or replace preset "
		              "with filters that have these names");
		return line;
	}
	return 0;
}

/* Refuses two different {name...} in a group, because an id that contains both could not be split again. */
static void check_several(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const char *first = NULL, *name, *text, *end;
	size_t first_len = 0, len;
	bool several;
	for (size_t i = 0; i < g->n_heartbeat + g->n_goodbye; i++) {
		const char *key = i < g->n_heartbeat ? "heartbeat" : "goodbye";
		const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", key)];
		text = filter_at(g, i);
		end = hw_names_filter_end(text, i < g->n_heartbeat ? HW_NAMES_FILTER : HW_NAMES_GOODBYE);
		while (lines && hw_names_next(&text, end, &name, &len, &several)) {
			if (!several)
				continue;
			if (first && (len != first_len || memcmp(first, name, len) != 0))
				hw_conf_wrong(&d->errors, lines[i < g->n_heartbeat ? i : i - g->n_heartbeat], "key",
				              key, "a group may have one name with ...}, and {%.*s...} is above",
				              (int)first_len, first);
			first = first ? first : name;
			first_len = first == name ? len : first_len;
		}
	}
}

static void check_filters(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	/* A refused id is not used to check other keys. */
	char *names = check_patterns(d, g, origins);
	const char *id = g->batch || origin(d, origins, "id")->bad ? NULL : names;
	unsigned unfit = check_preset(d, g, origins, id);
	if (!origin(d, origins, "batch")->bad)
		check_list(d, origins, "heartbeat", g->heartbeat, g->n_heartbeat,
		           g->batch              ? TEMPLATE_BATCH
		           : hw_names_any(g->id) ? TEMPLATE_HEARTBEAT
		                                 : TEMPLATE_FIXED,
		           id, unfit);
	check_list(d, origins, "goodbye", g->goodbye, g->n_goodbye, TEMPLATE_GOODBYE, id, unfit);
	check_list(d, origins, "ignore", g->ignore, g->n_ignore, TEMPLATE_IGNORE, id, unfit);
	free(names);
	check_list(d, origins, "field", g->field, g->n_field, TEMPLATE_FIELD, NULL, unfit);
	check_several(d, g, origins);
	if (g->batch && g->n_goodbye > 0)
		hw_conf_wrong(
			&d->errors, origin(d, origins, "goodbye")->line, "key", "goodbye",
			"the goodbyes of a batch are in its elements (\"online\": false): remove batch, or goodbye");
	if (g->batch && origin(d, origins, "id")->line)
		hw_conf_wrong(&d->errors, origin(d, origins, "id")->line, "key", "id",
		              "the device ids of a batch are in its elements: remove batch, or id");
}

/* Adds the default status topic if the file sets none. It contains the group's id in place of {id}. */
static void add_default_status(struct hw_conf_draft *d, struct hw_settings_group *g)
{
	char *status;
	if (asprintf(&status, "nodes/%s/status", g->id) < 0) {
		d->errors.no_memory = true;
		return;
	}
	free(g->status);
	g->status = status;
}

static void check_id(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	struct hw_conf_origin *id = origin(d, origins, "id");
	struct hw_conf_origin *status = origin(d, origins, "status");
	if (id->line && !id->bad)
		id->bad = !check_template(d, id->line, "id", g->id, TEMPLATE_ID, NULL, 0);
	if (!status->line && id->line && !id->bad)
		add_default_status(d, g);
	if (status->line && !status->bad && *g->status)
		status->bad = !check_template(d, status->line, "status", g->status,
		                              hw_names_any(g->id) ? TEMPLATE_STATUS : TEMPLATE_ID,
		                              id->bad ? NULL : g->id, HW_NAMES_STATUS);
}

/* Checks the rules about `payload`. A Homie device publishes its own /$state. If the monitor also published there,
 * device and monitor would overwrite each other's messages for ever. */
static void check_payload(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	static const char state[] = "/$state";
	size_t len = strlen(g->status), n = sizeof(state) - 1;
	if (g->batch && g->preset != HW_PRESET_NONE)
		hw_conf_wrong(&d->errors, origin(d, origins, "batch")->line, "key", "batch",
		              "no preset has batches: remove batch, or preset");
	if (g->payload != HW_FORMAT_HOMIE)
		return;
	if (g->n_field > 0)
		hw_conf_wrong(&d->errors, origin(d, origins, "field")->line, "key", "field",
		              "payload = homie reads nothing but the state: remove one of the two lines");
	if (g->batch)
		hw_conf_wrong(&d->errors, origin(d, origins, "batch")->line, "key", "batch",
		              "a batch is JSON: remove batch, or payload = homie");
	if (len >= n && strcmp(g->status + len - n, state) == 0 && !origin(d, origins, "status")->bad)
		hw_conf_wrong(
			&d->errors, origin(d, origins, "status")->line, "key", "status",
			"$state is the device's own topic: set another one, such as heartwheel-homie/{id}/status");
}

static bool is_action(const char *text)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(text);
	return len <= HW_CONF_NAME_MAX && strspn(text, chars) == len;
}

static void check_probes(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const struct hw_conf_origin *probe = origin(d, origins, "probe"), *after = origin(d, origins, "probe_after");
	int64_t most_ms = g->timeout_ms - HW_PROBE_WINDOW_MS;
	char most[32];
	if (probe->bad || !*g->probe)
		return;
	bool is_url = hw_settings_is_url(g->probe);
	if (is_url && (!hw_conf_is_url(g->probe) || !strstr(g->probe, "{id}")))
		hw_conf_wrong(&d->errors, probe->line, "key", "probe",
		              "a URL must be http:// or https:// and have {id} in it");
	else if (!is_url && !is_action(g->probe))
		hw_conf_wrong(&d->errors, probe->line, "key", "probe",
		              "must be an action, of at most 64 letters, digits, '.', '_' and '-', or an http:// or "
		              "https:// URL with {id}");
	if (origin(d, origins, "timeout")->bad || after->bad)
		return;
	if (most_ms <= 0)
		hw_conf_wrong(
			&d->errors, probe->line, "key", "probe",
			"this group's timeout is too short for a probe: remove this line, or set a timeout over 1s");
	else if (g->probe_after_ms > most_ms)
		hw_conf_wrong(&d->errors, after->line, "key", "probe_after",
		              "must be at least 1s less than this group's timeout: give %s or less",
		              hw_conf_duration_format(most_ms, most, sizeof(most)));
}

static void check_whiles(struct hw_conf_draft *d, const struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	const unsigned *lines = origins->lines[hw_conf_option_find(d->table, "group", "while")];
	const char *why;
	for (size_t i = 0; lines && !hw_settings_no_whiles(g) && i < g->n_whiles; i++) {
		struct hw_while w;
		int rc = hw_while_compile(&w, g->whiles[i], &why);
		if (rc == -ENOMEM)
			d->errors.no_memory = true;
		else if (rc)
			hw_conf_wrong(&d->errors, lines[i], "key", "while", "%s", why);
		else
			hw_while_fini(&w);
	}
}

static void complete_group(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	char section[80] = "group ";
	if (hw_preset_apply(d, g, origins))
		d->errors.no_memory = true;
	hw_conf_draft_defaults(d, d->table->named, g, origins);
	if (d->errors.no_memory)
		return;
	strncat(section, g->name, sizeof(section) - strlen(section) - 1);
	bool given = origin(d, origins, "heartbeat")->line;
	if (!given && strcmp(g->name, "default") == 0 && !g->batch)
		add_default_heartbeats(d, g, origins);
	else if (!given)
		hw_conf_wrong(&d->errors, origins->section, "section", section,
		              "has no heartbeat: give at least one, such as heartbeat = nodes/{id}/heartbeat");
	/* By their convention, Homie devices publish everything with the retain flag. */
	if (g->payload == HW_FORMAT_HOMIE && !origin(d, origins, "retained")->line)
		g->retained = 1;
	check_timeouts(d, g, origins);
	check_first_within(d, g, origins);
	check_learning(d, g, origins);
	check_id(d, g, origins);
	check_filters(d, g, origins);
	check_payload(d, g, origins);
	check_whiles(d, g, origins);
	check_probes(d, g, origins);
}

void hw_settings_judge(struct hw_conf_draft *d)
{
	struct hw_settings *c = (struct hw_settings *)d->conf;
	hw_conf_judge_mqtt(d, &c->mqtt);
	hw_conf_judge_redis(d, &c->redis);
	for (size_t i = 0; i < c->n_groups; i++)
		complete_group(d, &c->groups[i], d->named[0][i]);
	check_http(d, c);
	check_cluster(d, c);
	check_keyspace(d, c);
}
