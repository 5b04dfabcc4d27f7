/* SPDX-License-Identifier: MIT */
/* See cluster_forms.h. Cost: each entry that is read is parsed, and its groups are compared by name with the groups of
 * this node. */
#include "cluster_forms.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/loop/clock.h"
#include "daemon/visibility/unjudged.h"
#include "heartwheel/json_writer.h"
#include "nodes/claims.h"
#include "nodes/place.h"

#define TIMEOUT_DIGITS "%15" SCNd64
#define PROVES         " proves:"

static struct hw_cluster_forms *forms_of(const struct hw_app *a)
{
	return &a->cluster->forms;
}

/* --- this node's entry ----------------------------------------------------------- */

static void write_groups(const struct hw_app *a, struct hw_json *j)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	char text[96], proves[32];
	hw_json_open(j, '{');
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group *one = g->all[g->order[k]];
		snprintf(proves, sizeof(proves), PROVES "%08" PRIx32, hw_group_proves(one));
		/* A group that is blind on this node may not be blind on other nodes. So the entry marks the group
		 * as blind. */
		snprintf(text, sizeof(text), "%08" PRIx32 " %" PRId64 " %" PRId64 "%s%s", (uint32_t)one->form_hash,
		         one->timeout_ms, one->timeout_max_ms, hw_group_proves(one) ? proves : "",
		         hw_monitor_group_is_deaf(a->monitor, g->order[k]) ||
		                         hw_monitor_group_upstream(a->monitor, g->order[k])
		                 ? " blind"
		                 : "");
		hw_json_named_text(j, one->name, text);
	}
	hw_json_close(j, '}');
}

/* Keeps this node's groups as text, which its entry contains and which is compared with the texts of other nodes. */
static void note_own(struct hw_app *a)
{
	struct hw_cluster_forms *f = forms_of(a);
	struct hw_json j;
	hw_json_begin_alloc(&j);
	write_groups(a, &j);
	char *text = hw_json_end_alloc(&j, NULL);
	if (!text || (f->own && strcmp(f->own, text) == 0)) {
		free(text);
		return;
	}
	free(f->own);
	f->own = text;
	f->changed = true;
}

static void write_set(struct hw_json *j, const char *name, const struct hw_partitions *set)
{
	char text[HW_PARTITIONS_TEXT];
	if (!hw_partitions_any(set))
		return;
	hw_partitions_text(set, text);
	hw_json_named_text(j, name, text);
}

/* Writes the partitions in which this node cannot judge devices, as soon as it knows them. Until then, other nodes
 * assume that this node can judge no device. */
static void write_unjudged(const struct hw_app *a, struct hw_json *j)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	if (a->cluster->standby.is || !hw_app_unjudged_counted(a))
		return;
	hw_json_open_member(j, "unjudged_in", '{');
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_group_judging is = hw_monitor_judging(a->monitor, g->order[k]);
		write_set(j, g->all[g->order[k]]->name, &is.online);
	}
	hw_json_close(j, '}');
}

/* Writes the partitions with parents that this node proves. If this node does not know these partitions now, writes
 * nothing, and other nodes keep the last value. */
static void write_proven(const struct hw_app *a, struct hw_json *j)
{
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	if (hw_app_stands_by(a) || !hw_monitor_proven_known(a->monitor))
		return;
	hw_json_open_member(j, "proven_in", '{');
	for (size_t k = 0; k < g->n_order; k++) {
		const struct hw_partitions in = hw_monitor_proven_in(a->monitor, g->order[k]);
		write_set(j, g->all[g->order[k]]->name, &in);
	}
	hw_json_close(j, '}');
}

/* Devices that the owner of the fleet needs room for. */
static int64_t n_known(const struct hw_app *a)
{
	return hw_app_stands_by(a) ? 0
	                           : (int64_t)hw_registry_count(hw_monitor_registry(a->monitor)) +
	                                     hw_monitor_left_out_stored(a->monitor);
}

static void decide(struct hw_app *a);
static void apply_forms(struct hw_app *a);

void hw_app_cluster_forms_update(struct hw_app *a)
{
	decide(a);
	note_own(a);
	apply_forms(a);
}

void hw_app_cluster_forms_write(struct hw_app *a, bool groups, bool unjudged, struct hw_json *j)
{
	const struct hw_cluster_forms *f = forms_of(a);
	const struct hw_partitions unstored = hw_monitor_unstored_in(a->monitor);
	if (groups && f->own)
		hw_json_raw(j, "groups", f->own, strlen(f->own));
	write_set(j, "unable", &f->unable);
	if (*f->better)
		hw_json_text(j, "better", f->better);
	if (hw_app_standby_was_deaf(a))
		hw_json_bool(j, "was_deaf", true);
	write_set(j, "untold", &unstored);
	hw_json_int(j, "max_devices", a->conf->max_devices);
	hw_json_int(j, "known", n_known(a));
	if (unjudged)
		write_unjudged(a, j);
	if (groups)
		write_proven(a, j);
	hw_app_unjudged_write(a, j);
}

/* --- entries of other nodes ------------------------------------------------------ */

static void free_groups(struct hw_node_group *all, size_t n)
{
	for (size_t k = 0; k < n; k++)
		free(all[k].name);
	free(all);
}

static void forget_groups(struct hw_cluster_forms *f, size_t i)
{
	free_groups(f->of[i].all, f->of[i].n);
	f->of[i].all = NULL;
	f->of[i].n = 0;
}

static struct hw_node_group *find_group(struct hw_node_group *all, size_t n, const char *name, size_t len)
{
	for (size_t k = 0; k < n; k++)
		if (strlen(all[k].name) == len && memcmp(all[k].name, name, len) == 0)
			return &all[k];
	return NULL;
}

static bool read_form(const cJSON *item, struct hw_node_group *out)
{
	const char *text = cJSON_GetStringValue(item);
	uint32_t form;
	if (!text || !item->string ||
	    sscanf(text, "%8" SCNx32 " " TIMEOUT_DIGITS " " TIMEOUT_DIGITS, &form, &out->timeout_ms,
	           &out->timeout_max_ms) != 3 ||
	    out->timeout_ms < 0 || out->timeout_ms > HW_TIMEOUT_MAX_MS || out->timeout_max_ms < 0 ||
	    out->timeout_max_ms > HW_TIMEOUT_MAX_MS)
		return false;
	const char *proves = strstr(text, PROVES);
	if (proves && sscanf(proves, PROVES "%8" SCNx32, &out->proves) != 1)
		return false;
	out->form = form;
	out->name = strdup(item->string);
	return out->name != NULL;
}

static void read_groups(struct hw_cluster_forms *f, size_t i, const cJSON *groups)
{
	struct hw_node_group *was = f->of[i].all;
	size_t n_was = f->of[i].n;
	const cJSON *item;
	f->of[i].all = calloc((size_t)cJSON_GetArraySize(groups) + 1, sizeof(*f->of[i].all));
	f->of[i].n = 0;
	cJSON_ArrayForEach(item, groups)
	{
		struct hw_node_group *to = f->of[i].all ? &f->of[i].all[f->of[i].n] : NULL;
		if (!to || f->of[i].n == HW_GROUPS_MAX || !read_form(item, to))
			continue;
		f->of[i].n++;
		const struct hw_node_group *old = find_group(was, n_was, to->name, strlen(to->name));
		if (old)
			to->proven = old->proven;
	}
	free_groups(was, n_was);
}

static const struct hw_partitions all_partitions = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

static void read_set(const cJSON *item, const struct hw_partitions *otherwise, struct hw_partitions *set)
{
	const char *text = cJSON_GetStringValue(item);
	if (!text || hw_partitions_parse(text, strlen(text), set) < 0)
		*set = *otherwise;
}

static int64_t read_count(const cJSON *item)
{
	return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble <= UINT32_MAX
	               ? (int64_t)item->valuedouble
	               : 0;
}

/* Reads the partitions in which a node cannot judge devices. A node that still loads, or that has an older version,
 * does not publish these partitions, and counts as unable to judge any device. */
static void read_unjudged(struct hw_cluster_forms *f, size_t i, const cJSON *by_group)
{
	static const struct hw_partitions none;
	for (size_t k = 0; k < f->of[i].n; k++) {
		struct hw_node_group *group = &f->of[i].all[k];
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(by_group, group->name);
		read_set(item, !by_group || item ? &all_partitions : &none, &group->unjudged);
	}
}

/* Reads the partitions with parents that a node proves. A node that still loads does not publish them, and the last
 * value stays in force. */
static void read_proven(struct hw_cluster_forms *f, size_t i, const cJSON *by_group)
{
	static const struct hw_partitions none;
	bool proves = false;
	for (size_t k = 0; k < f->of[i].n; k++)
		proves |= f->of[i].all[k].proves != 0;
	for (size_t k = 0; k < f->of[i].n && (by_group || !proves); k++) {
		struct hw_node_group *group = &f->of[i].all[k];
		const struct hw_partitions was = group->proven;
		read_set(cJSON_GetObjectItemCaseSensitive(by_group, group->name), &none, &group->proven);
		f->changed |= memcmp(&was, &group->proven, sizeof(was)) != 0;
	}
}

static bool differs(const struct hw_app *a, size_t i)
{
	const struct hw_cluster_forms *f = forms_of(a);
	return f->own && f->of[i].text && strcmp(f->own, f->of[i].text) != 0 &&
	       hw_members_find(hw_nodes_members(a->cluster->nodes), f->of[i].node);
}

static bool any_differs(const struct hw_app *a)
{
	bool any = false;
	for (size_t i = 0; i < forms_of(a)->n; i++)
		any |= differs(a, i);
	return any;
}

/* Passes to the core the groups on other nodes, and whether a member has other groups, if this has changed. */
static void apply_forms(struct hw_app *a)
{
	struct hw_cluster_forms *f = forms_of(a);
	bool differ = any_differs(a);
	size_t n = 0, all = 0;
	if (!f->changed && differ == f->differ)
		return;
	for (size_t i = 0; i < f->n; i++)
		all += f->of[i].n;
	struct hw_peer_group *peers = calloc(all + 1, sizeof(*peers));
	if (!peers)
		return; /* tried again with the next entry */
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->of[i].n; k++) {
			const struct hw_node_group *group = &f->of[i].all[k];
			peers[n++] = (struct hw_peer_group){group->name, group->timeout_ms, group->timeout_max_ms,
			                                    group->form, group->proves,     group->proven};
		}
	f->differ = differ;
	f->changed = false;
	hw_monitor_peer_groups(a->monitor, peers, n, differ);
	if (hw_monitor_peer_proofs(a->monitor, hw_app_now(), peers, n))
		hw_app_cluster_reread(a, false);
	free(peers);
}

static size_t find(const struct hw_cluster_forms *f, const char *node, size_t len)
{
	size_t i = 0;
	while (i < f->n && (strlen(f->of[i].node) != len || memcmp(f->of[i].node, node, len) != 0))
		i++;
	return i;
}

static size_t find_or_add(struct hw_cluster_forms *f, const char *node)
{
	size_t i = find(f, node, strlen(node));
	if (i < f->n)
		return i;
	if (i == HW_CLUSTER_FORMS_MAX) {
		i = f->next++ % HW_CLUSTER_FORMS_MAX;
		forget_groups(f, i);
		free(f->of[i].text);
		f->of[i].text = NULL;
	} else {
		f->n++;
	}
	snprintf(f->of[i].node, sizeof(f->of[i].node), "%s", node);
	return i;
}

void hw_app_cluster_forms_saw(struct hw_app *a, const char *node, const char *json)
{
	struct hw_cluster_forms *f = forms_of(a);
	f->decided = false;
	if (strcmp(node, a->start->node_id) == 0 || strlen(node) > HW_NODE_ID_MAX)
		return;
	cJSON *entry = cJSON_Parse(json), *groups = cJSON_GetObjectItemCaseSensitive(entry, "groups");
	char *text = cJSON_IsObject(groups) ? cJSON_PrintUnformatted(groups) : NULL;
	size_t i = text ? find_or_add(f, node) : f->n;
	if (text && (!f->of[i].text || strcmp(f->of[i].text, text) != 0)) {
		free(f->of[i].text);
		f->of[i].text = text;
		text = NULL;
		read_groups(f, i, groups);
		f->changed = true;
	}
	static const struct hw_partitions none;
	if (i < f->n) {
		read_set(cJSON_GetObjectItemCaseSensitive(entry, "untold"), &none, &f->of[i].unstored);
		read_unjudged(f, i, cJSON_GetObjectItemCaseSensitive(entry, "unjudged_in"));
		read_proven(f, i, cJSON_GetObjectItemCaseSensitive(entry, "proven_in"));
	}
	if (i < f->n) {
		f->of[i].was_deaf = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "was_deaf"));
		f->of[i].max_devices = read_count(cJSON_GetObjectItemCaseSensitive(entry, "max_devices"));
		f->of[i].devices = read_count(cJSON_GetObjectItemCaseSensitive(entry, "known"));
	}
	const char *better = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "better"));
	if (i < f->n)
		snprintf(f->of[i].better, sizeof(f->of[i].better), "%s", better ? better : "");
	free(text);
	cJSON_Delete(entry);
	apply_forms(a);
}

/* The node's entry was not read yet, or was removed. */
static bool is_stranger(const struct hw_app *a, const char *node, size_t len)
{
	char name[HW_NODE_ID_MAX + 1];
	if (len > HW_NODE_ID_MAX)
		return false;
	memcpy(name, node, len);
	name[len] = '\0';
	return strcmp(name, a->start->node_id) != 0 && !hw_members_find(hw_nodes_members(a->cluster->nodes), name);
}

uint64_t hw_app_cluster_form(const struct hw_app *a, const char *node, size_t node_len, const char *group,
                             size_t group_len)
{
	struct hw_cluster_forms *f = forms_of(a);
	size_t i = find(f, node, node_len);
	f->unknown_writer |= i == f->n && is_stranger(a, node, node_len);
	const struct hw_node_group *form = i < f->n ? find_group(f->of[i].all, f->of[i].n, group, group_len) : NULL;
	return form ? form->form : 0;
}

/* --- devices that this node cannot judge ------------------------------------------ */

/* Whether this node stands by, and could judge the whole fleet, because it has the owner's groups. */
static bool has_groups_of(const struct hw_app *a, const char *owner)
{
	const struct hw_cluster_forms *f = forms_of(a);
	const struct hw_groups *g = hw_monitor_groups(a->monitor);
	size_t i = find(f, owner, strlen(owner));
	for (size_t k = 0; i < f->n && k < f->of[i].n; k++) {
		int at = hw_groups_find(g, f->of[i].all[k].name);
		if (at < 0 || g->all[at]->retired || g->all[at]->form_hash != f->of[i].all[k].form)
			return false;
	}
	return true;
}

/* Returns the name of a group and the forms of its devices, as of the last count. */
static struct hw_group_use use_of(const struct hw_app *a, size_t g)
{
	const struct hw_group *group = hw_monitor_groups(a->monitor)->all[g];
	const struct hw_group_judging is = hw_monitor_judging(a->monitor, g);
	struct hw_group_use use = {.name = group->name, .form = group->form_hash, .judged = is.judged, .late = is.late};
	for (int k = 0; k < 2; k++) {
		use.unjudged[k].form = is.unjudged[k].form;
		use.unjudged[k].in = is.unjudged[k].in;
	}
	return use;
}

/* Whether a group has been deaf on this node for long. */
static bool is_deaf(const struct hw_app *a)
{
	size_t g = 0, n = hw_monitor_groups(a->monitor)->n;
	while (g < n && !hw_monitor_judging(a->monitor, g).deaf)
		g++;
	return g < n;
}

/* NULL if every device is judged and has a record. */
static struct hw_group_use *uses(const struct hw_app *a, size_t *n)
{
	const struct hw_partitions any = hw_monitor_unjudged_in(a->monitor);
	size_t n_groups = hw_monitor_groups(a->monitor)->n;
	bool is = hw_partitions_any(&any) || is_deaf(a) || hw_monitor_left_out(a->monitor) > 0;
	struct hw_group_use *all = is ? calloc(n_groups, sizeof(*all)) : NULL;
	for (*n = 0; all && *n < n_groups; ++*n)
		all[*n] = use_of(a, *n);
	return all;
}

static void add_all(struct hw_partitions *set, const struct hw_partitions *more)
{
	for (unsigned k = 0; k < HW_PARTITIONS / 64; k++)
		set->bits[k] |= more->bits[k];
}

static const struct hw_member *member(const struct hw_app *a, size_t i)
{
	return hw_members_find(hw_nodes_members(a->cluster->nodes), forms_of(a)->of[i].node);
}

/* Whether another member has room for a device more. */
static bool has_room_elsewhere(const struct hw_app *a)
{
	const struct hw_cluster_forms *f = forms_of(a);
	size_t i = 0;
	while (i < f->n && !(member(a, i) && f->of[i].max_devices > f->of[i].devices))
		i++;
	return i < f->n;
}

/* Mirror: returns the partitions that another member should own. That member judges devices there that this node
 * cannot judge, receives devices there that no owner reports, or has room for devices that this node has left out.
 * If no member has room, left-out devices do not count. Otherwise a client that publishes unknown ids could make
 * each node unable to own any partition. */
static struct hw_partitions unable_of_mirror(const struct hw_app *a, const struct hw_group_use *use, size_t n)
{
	const struct hw_cluster_forms *f = forms_of(a);
	struct hw_partitions set = {{0}}, ours = hw_monitor_unstored_in(a->monitor);
	for (size_t i = 0; i < f->n; i++) {
		struct hw_partitions more = hw_judging_more(use, n, f->of[i].all, f->of[i].n);
		for (unsigned k = 0; k < HW_PARTITIONS / 64 && differs(a, i); k++)
			more.bits[k] |= f->of[i].unstored.bits[k] & ~ours.bits[k];
		if (member(a, i))
			add_all(&set, &more);
	}
	const struct hw_partitions left_out = hw_monitor_left_out_in(a->monitor);
	if (has_room_elsewhere(a))
		add_all(&set, &left_out);
	return set;
}

/*
 * Standby: called on the owner. Returns the ready member that should own the fleet instead. This member can judge all
 * that the owner judges, and more; or has room for more devices; or may hear a group that the owner does not hear. If
 * there are several, returns the one with the greatest weight. "": there is none.
 */
static const char *better(const struct hw_app *a, const struct hw_group_use *use, size_t n)
{
	const struct hw_cluster_forms *f = forms_of(a);
	const char *best = "";
	for (size_t i = 0; i < f->n && n > 0; i++) {
		const struct hw_member *m = member(a, i);
		if (!m || !m->ready || !hw_judging_all(use, n, f->of[i].all, f->of[i].n))
			continue;
		const struct hw_partitions more = hw_judging_more(use, n, f->of[i].all, f->of[i].n);
		/* A node that was deaf or has too little room would have to give the fleet back soon, so it is
		 * not chosen. */
		bool roomier = hw_monitor_left_out(a->monitor) > 0 && f->of[i].max_devices > a->conf->max_devices &&
		               !f->of[i].was_deaf;
		bool hears = is_deaf(a) && !f->of[i].was_deaf &&
		             (!f->of[i].max_devices || f->of[i].max_devices >= n_known(a));
		if ((hw_partitions_any(&more) || roomier || hears) &&
		    (!*best || hw_partition_weight(0, m->node) > hw_partition_weight(0, best)))
			best = m->node;
	}
	return best;
}

/* Whether each ready member has read that the node `to` is to own the fleet. If so, only that node will claim the
 * fleet. */
static bool is_agreed(const struct hw_app *a, const char *to)
{
	const struct hw_members *all = hw_nodes_members(a->cluster->nodes);
	for (size_t i = 0; i < all->n; i++) {
		const struct hw_member *m = &all->all[i];
		if (m->ready && strcmp(m->node, a->start->node_id) != 0 &&
		    hw_partitions_any(&m->unable) == (strcmp(m->node, to) == 0))
			return false;
	}
	return true;
}

/* Whether this node may take the fleet. A node that was deaf when it last owned the fleet leaves the fleet to other
 * nodes, so that the fleet does not move back and forth between two nodes. */
static bool may_take_fleet(const struct hw_app *a)
{
	const struct hw_cluster_forms *f = forms_of(a);
	const char *owner = hw_nodes_record(a->cluster->nodes, 0)->token.node;
	size_t i = find(f, owner, strlen(owner));
	if (i < f->n && member(a, i) && *f->of[i].better)
		return strcmp(f->of[i].better, a->start->node_id) == 0;
	bool has_room = i == f->n || !member(a, i) || f->of[i].devices <= a->conf->max_devices;
	return has_room && !hw_app_standby_was_deaf(a) && has_groups_of(a, owner);
}

static void decide(struct hw_app *a)
{
	static const struct hw_partitions none;
	struct hw_cluster_forms *f = forms_of(a);
	size_t n = 0;
	struct hw_group_use *use = uses(a, &n);
	*f->better = '\0';
	if (hw_nodes_is_denied(a->cluster->nodes)) {
		f->unable = all_partitions;
	} else if (!a->cluster->standby.is) {
		f->unable = unable_of_mirror(a, use, n);
	} else if (hw_app_stands_by(a)) {
		f->unable = may_take_fleet(a) ? none : all_partitions;
	} else {
		snprintf(f->better, sizeof(f->better), "%s", better(a, use, n));
		f->unable = *f->better && is_agreed(a, f->better) ? all_partitions : none;
	}
	free(use);
}

bool hw_app_cluster_forms_turn(struct hw_app *a, struct hw_now now)
{
	struct hw_cluster_forms *f = forms_of(a);
	bool stands = hw_app_stands_by(a), known = stands || hw_app_unjudged_known(a, now);
	if (!f->decided || f->stood != stands || f->known != known)
		decide(a);
	/* The store's hashes contain the form of each device. Without its form, this node would judge devices that it
	 * may not receive. */
	if (f->unknown_writer && f->differ) {
		f->unknown_writer = false;
		hw_app_cluster_reread(a, false);
	}
	f->decided = true;
	f->stood = stands;
	f->known = known;
	hw_nodes_unable(a->cluster->nodes, &f->unable);
	return known;
}

void hw_app_cluster_forms_free(struct hw_app *a)
{
	struct hw_cluster_forms *f = forms_of(a);
	for (size_t i = 0; i < f->n; i++) {
		forget_groups(f, i);
		free(f->of[i].text);
	}
	free(f->own);
	f->own = NULL;
	f->n = 0;
}
