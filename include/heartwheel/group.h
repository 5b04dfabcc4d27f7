/* SPDX-License-Identifier: MIT */
/*
 * Groups: the devices of a group share topics, a timeout and a status topic. Devices name their group by its index, so
 * the table only grows. A reload that drops a group retires it: the group keeps its devices and takes no new ones. A
 * reload with the group again revives it. A group that only the store or another node names is retired from the start.
 */
#ifndef HEARTWHEEL_GROUP_H
#define HEARTWHEEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/pattern.h"
#include "heartwheel/payload.h"
#include "heartwheel/topic.h"

#define HW_GROUPS_MAX       4096 /* a record has 12 bits for the index */
#define HW_PROBES_MAX       3
#define HW_ONLINE_AFTER_MAX 20
#define HW_PARENTS_MAX      4
#define HW_GROUP_LABELS_MAX 16

/* What happens to an online device when no known parent is online any more. */
enum hw_parent_death {
	HW_PARENT_NOTE, /* the device keeps its state */
	HW_PARENT_TAKE  /* the device goes offline too */
};

/* Whether the timeouts of a group's devices are learned from the gaps between their heartbeats. */
enum hw_learn {
	HW_LEARN_NO,
	HW_LEARN_SHOW, /* they are learned, but not in force */
	HW_LEARN_YES
};

/* How the payloads of a group's heartbeats are read. */
enum hw_format {
	HW_FORMAT_JSON,  /* hw_payload_decode() */
	HW_FORMAT_HOMIE, /* a message is read by hw_payload_homie() if its last topic level is $state; otherwise it
	                  * is a plain heartbeat */
	HW_FORMAT_PLAIN  /* only the group's fields and goodbyes are read */
};

/* A goodbye: a certain payload on the topics of a template. With `member`, the payload is a JSON object whose member
 * at that path has the value `text` (hw_payload_member_is()). Without `member`, the payload is `text`. `text` NULL:
 * any payload that is not empty. */
struct hw_goodbye {
	struct hw_topic topic;
	char *member, *text; /* owned */
	bool beats;          /* its filter is also a heartbeat filter of the group */
};

/* Compiles "FILTER", "FILTER WORD" or "FILTER MEMBER=VALUE", separated by spaces. Returns the same as
 * hw_topic_compile(). */
int hw_goodbye_compile(struct hw_goodbye *g, const char *text, const char **why);
void hw_goodbye_fini(struct hw_goodbye *g);

/*
 * An upstream condition: the group's devices can be received only while the topic has the value `value`. Without
 * `member`, `value` is the whole payload or the member `state` of a JSON object. With `member`, it is the value of that
 * member.
 */
struct hw_while {
	char *topic, *member, *value; /* owned */
};

/* Compiles "TOPIC VALUE" or "TOPIC MEMBER=VALUE", separated by spaces. Returns 0, -ENOMEM, or -EINVAL with the
 * reason in *why. */
int hw_while_compile(struct hw_while *w, const char *text, const char **why);
void hw_while_fini(struct hw_while *w);

/* A label that a group gives to its devices. */
struct hw_group_label {
	char *name; /* owned */
	struct hw_pattern value;
};

/* Compiles "NAME VALUE". Returns 0, -EINVAL with *why, or -ENOMEM. */
int hw_group_label_compile(struct hw_group_label *l, const char *text, const char **why);
void hw_group_label_fini(struct hw_group_label *l);

/* A group in the configuration. hw_groups_set() borrows all strings and copies them. */
struct hw_group_spec {
	const char *name;
	const char *const *heartbeat; /* templates with {id}; without it in a group of batches */
	size_t n_heartbeat;
	const char *const *goodbye; /* in the syntax of hw_goodbye_compile() */
	size_t n_goodbye;
	const char *const *ignore; /* filters, in which captures are wildcards */
	size_t n_ignore;
	const char *const *whiles; /* in the syntax of hw_while_compile() */
	size_t n_whiles;
	const char *const *field; /* in the syntax of hw_field_compile() */
	size_t n_field;
	const char *const *parents; /* at most HW_PARENTS_MAX, in the syntax of hw_pattern_compile(): ids of devices
	                               that this group's devices depend on */
	size_t n_parents;
	const char *const *labels; /* at most HW_GROUP_LABELS_MAX, "NAME VALUE"; VALUE in the syntax of
	                              hw_pattern_compile() */
	size_t n_labels;
	enum hw_parent_death parent_death;
	bool child_proves;     /* heartbeats of this group's devices count for their parents' deadlines */
	const char *status;    /* template without wildcards, with the captures of the id; NULL or "": none */
	const char *id;        /* template of the id, without wildcards; NULL or "": {id} */
	const char *id_prefix; /* NULL or "": none */
	int64_t timeout_ms;
	int64_t timeout_max_ms;
	int64_t first_within_ms; /* an expected device that has sent no heartbeat for this long is unseen; 0: never */
	enum hw_learn learn;
	int64_t timeout_min_ms; /* a learned timeout is between this and timeout_max_ms */
	unsigned mistakes;      /* how often a device that works may be called offline in mistakes_per_ms */
	int64_t mistakes_per_ms;
	unsigned learn_gaps; /* a learned timeout is at least so many median gaps */
	int64_t goodbye_delay_ms;
	int64_t max_age_ms;        /* 0: off */
	unsigned max_offline_rate; /* per second; 0: off */
	unsigned online_after;     /* how many heartbeats make an offline device online: 1 to HW_ONLINE_AFTER_MAX; 0
	                            * means 1 */
	enum hw_format format;
	bool retained;          /* messages with the retain flag count as heartbeats (MQTT 5) */
	bool batch;             /* a message is a JSON array of heartbeats */
	bool canary;            /* the monitor may publish canaries on the group's filters */
	const char *probe;      /* which request is sent to a silent device; the caller interprets it; NULL or "":
	                         * none */
	int64_t probe_after_ms; /* silence before the first probe of a device with the timeout timeout_ms; for
	                         * another timeout, in proportion */
	unsigned probes;        /* per silence: 1 .. HW_PROBES_MAX */
};

struct hw_group {
	char *name;
	struct hw_topic *heartbeat;
	size_t n_heartbeat;
	struct hw_goodbye *goodbye;
	size_t n_goodbye;
	struct hw_topic *ignore;
	size_t n_ignore;
	struct hw_while *whiles;
	size_t n_whiles;
	/* Labels, and patterns of the parents' ids. Their names are numbered in this order: the captures of `form`; the
	 * other names in labels (`captured`); the other names in parents. */
	struct hw_group_label *labels;
	unsigned n_labels, n_captured;
	struct hw_value captured[HW_CAPTURES_MAX];
	uint64_t labels_hash;
	bool relabelled; /* the last reload has changed its labels */
	struct hw_pattern *parents;
	unsigned n_parents;
	uint64_t parents_hash; /* of the patterns; never 0 */
	uint64_t topics_hash;  /* of all that the index of parents takes from a topic */
	enum hw_parent_death parent_death;
	bool child_proves;      /* also if parent_death is take */
	bool sorts;             /* has goodbye or ignore filters, which are matched first */
	struct hw_topic status; /* status.filter == NULL: none */
	struct hw_topic form;   /* template of the id; its captures are the values of all other templates */
	bool assembled;         /* the id is not a part of the topic, because `form` is more than a single capture */
	bool as_it_stands;      /* the id is the captured text unchanged, and the last level of a topic has no
	                         * special meaning */
	char *id_prefix;        /* never NULL */
	size_t id_prefix_len;
	int64_t timeout_ms, timeout_max_ms, max_age_ms;
	int64_t first_within_ms;
	enum hw_learn learn;
	int64_t timeout_min_ms, mistakes_per_ms;
	unsigned mistakes, learn_gaps;
	int64_t goodbye_delay_ms; /* at least 2 s if bridged */
	unsigned max_offline_rate, online_after;
	enum hw_format format;
	struct hw_field *field;
	struct hw_reading reading; /* how its JSON payloads are read */
	bool batch, canary, retained;
	bool bridged;    /* one of its `whiles` is the state of a bridge: a topic below $SYS/ */
	unsigned probes; /* 0: none */
	int64_t probe_after_ms;
	char *probe;   /* never NULL */
	unsigned rank; /* position in the configuration file; the matching group with the lowest rank takes a device */
	/* Hash of everything that decides which messages are heartbeats of the group. Two nodes with the same hash
	 * receive the same devices. 0: unknown, because no configuration of this run had the group. */
	uint64_t form_hash;
	bool retired;
	bool unheard; /* the group is retired, and no other group has all of its heartbeat filters */
};

/* Returns a hash of the settings by which the group's devices prove their parents. Nodes compare it. 0: the
 * devices prove no parent. */
static inline uint32_t hw_group_proves(const struct hw_group *g)
{
	return g->child_proves ? (uint32_t)g->parents_hash : 0;
}

struct hw_match_index;

struct hw_groups {
	struct hw_group **all; /* owned, by index; a group never moves */
	size_t n;
	uint16_t *order; /* indices of the groups that are not retired, in the order of the file */
	size_t n_order;
	struct hw_match_index *index; /* owned; NULL: few filters */
};

/* Returns the shortest timeout that a device of the group may have, except one that the device or the inventory asks
 * for. */
static inline int64_t hw_group_shortest_ms(const struct hw_group *g)
{
	bool learned = g->learn == HW_LEARN_YES && g->timeout_min_ms < g->timeout_ms;
	return learned ? g->timeout_min_ms : g->timeout_ms;
}

void hw_groups_init(struct hw_groups *g);
void hw_groups_fini(struct hw_groups *g);

/*
 * Makes `specs`, in their order, the groups of the table. Returns 0, or an error that leaves the table unchanged:
 * -EINVAL (a template does not compile, or a name occurs twice), -ENOSPC (more than HW_GROUPS_MAX groups, retired ones
 * included) or -ENOMEM. A struct hw_group keeps its address. Pointers to its members, such as its name and templates,
 * are valid until the next call.
 */
int hw_groups_set(struct hw_groups *g, const struct hw_group_spec *specs, size_t n);

/*
 * hw_groups_set() in two steps. The draft allocates all memory, so installing it cannot fail. Before the installation,
 * the caller can allocate its own data for the groups. `next` is the future table with its contents. When the draft is
 * installed, only the addresses of groups that stay change.
 */
struct hw_groups_draft {
	struct hw_groups next;
	struct hw_group **fresh; /* owned */
	size_t n;
};

/* Makes the draft, with the results of hw_groups_set(); the table is unchanged. After 0 the caller must call
 * hw_groups_install() or hw_groups_draft_fini(). */
int hw_groups_draft(const struct hw_groups *g, const struct hw_group_spec *specs, size_t n, struct hw_groups_draft *d);
/* Installs the draft, which is then used up. `g` must be unchanged since the draft was made. */
void hw_groups_install(struct hw_groups *g, struct hw_groups_draft *d);
void hw_groups_draft_fini(struct hw_groups_draft *d);

/* Returns the index of the group of that name, including retired groups, or -1. */
int hw_groups_find(const struct hw_groups *g, const char *name);

/* Like hw_groups_find(), for a name without a NUL. If the name is unknown, makes a retired group without filters,
 * for devices whose group is not in the configuration. Errors: -EINVAL (invalid name), -ENOSPC or -ENOMEM. */
int hw_groups_name(struct hw_groups *g, const char *name, size_t len);

enum hw_match {
	HW_MATCH_NONE,
	HW_MATCH_HEARTBEAT,
	HW_MATCH_GOODBYE,  /* on a goodbye filter: a heartbeat, unless hw_group_is_goodbye() is true */
	HW_MATCH_STATUS,   /* the status topic of the group, and no heartbeat topic of any group */
	HW_MATCH_ANSWER,   /* of no group: the topic for answers to probes (monitor.h) */
	HW_MATCH_IGNORED,  /* on one of the group's ignore filters */
	HW_MATCH_CLEARING, /* an empty payload that clears a status, or a goodbye on a filter without heartbeats */
};

/*
 * All heartbeat and goodbye templates of a group have the captures of its form, and may also have {id}. The status
 * template has exactly the captures of the form. If any filter of the group has a {name...}, that name is also a
 * {name...} in form and status.
 */

/*
 * Finds the group of a topic: the first in the file with a matching filter. A group's ignore filters are tried first,
 * then goodbyes, then heartbeats. An empty payload on the status topic of a group, also a retired one, is a clearing
 * for that group, even on a heartbeat topic.
 *
 * `*id` points into `topic`. It has no NUL and no id_prefix, and is empty for a batch. For an `assembled` group `*id`
 * means nothing: use hw_group_id(). `*by` is the template that matched.
 */
enum hw_match hw_groups_match(const struct hw_groups *g, const char *topic, size_t len, bool empty_payload,
                              uint16_t *group, const char **id, size_t *id_len, const struct hw_topic **by);

/* Whether the topic is the status topic of any group, retired groups included. */
bool hw_groups_is_status(const struct hw_groups *g, const char *topic, size_t len);

/* Returns the index of the group's heartbeat template that has the same filter as `by`; n_heartbeat: there is none. */
size_t hw_group_heartbeat_like(const struct hw_group *g, const struct hw_topic *by);

/* Returns the index of the heartbeat template that is `by`, or that shares its filter with the goodbye `by`;
 * n_heartbeat: there is none. */
static inline size_t hw_group_heartbeat_of(const struct hw_group *g, const struct hw_topic *by)
{
	size_t at = ((uintptr_t)by - (uintptr_t)g->heartbeat) / sizeof(*by);
	return at < g->n_heartbeat ? at : hw_group_heartbeat_like(g, by);
}

/* Assembles the id of a topic that matches `by`, a template of an assembled group. The id has the group's id_prefix and
 * no NUL. Returns the length of the id, or 0 if the id has an empty level or is too long. */
size_t hw_group_id(const struct hw_group *g, const struct hw_topic *by, const char *topic, size_t len,
                   char id[HW_ID_MAX]);

/* Finds the captures of the group's id in a device's id. Returns false if the id does not have its form. */
bool hw_group_values(const struct hw_group *g, const char *id, size_t id_len, struct hw_value values[HW_CAPTURES_MAX]);

/* Whether the id has the group's id_prefix and the form of its ids. */
bool hw_group_fits(const struct hw_group *g, const char *id, size_t id_len);

/* Whether a message with HW_MATCH_GOODBYE is a goodbye. If *no_memory is set, an allocation failed, and a result of
 * false may be wrong. */
bool hw_group_is_goodbye(const struct hw_group *g, const char *topic, size_t len, const void *payload,
                         size_t payload_len, bool *no_memory);

/*
 * Writes the topic of a device's retained status, with a NUL. The group's id_prefix is removed from the device's `id`.
 * An id without the prefix, from before a reload, is used unchanged. Returns the length; 0: the group publishes no
 * status, or the id does not have its form; or -ENAMETOOLONG.
 */
int hw_group_status_topic(const struct hw_group *g, const char *id, size_t id_len, char *buf, size_t cap);

#endif
