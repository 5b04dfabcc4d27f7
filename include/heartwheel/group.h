/* SPDX-License-Identifier: MIT */
/*
 * Groups: which topics' devices share a timeout and a status topic. The table only grows, because devices name their
 * group by its place in it: a reload that drops a group retires it (it takes no new device, those it has keep it), one
 * that brings it back revives it. A group that only the store or another node names is retired from the start.
 */
#ifndef HEARTWHEEL_GROUP_H
#define HEARTWHEEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heartwheel/payload.h"
#include "heartwheel/topic.h"

#define HW_GROUPS_MAX 4096 /* 12 bits in a record */
#define HW_PROBES_MAX 3

/* How the payloads of a group's heartbeats are read. */
enum hw_format {
	HW_FORMAT_JSON,  /* hw_payload_decode() */
	HW_FORMAT_HOMIE, /* on topics whose last level is $state hw_payload_homie(); any other is a plain heartbeat */
	HW_FORMAT_PLAIN  /* nothing counts but the group's fields and goodbyes */
};

/*
 * What says that a device is gone: a payload on the topics of a template. `says` NULL: any but an empty one; with a
 * `member`: a JSON object in which the member at that path has the value `says` (hw_payload_member_is()); without: the
 * payload is `says`, byte for byte.
 */
struct hw_goodbye {
	struct hw_topic topic;
	char *member, *says; /* owned */
	bool beats;          /* its filter is one of the group's heartbeats too */
};

/* From "FILTER", "FILTER WORD" or "FILTER MEMBER=VALUE", parted by spaces. Returns as hw_topic_compile(). */
int hw_goodbye_compile(struct hw_goodbye *g, const char *text, const char **why);
void hw_goodbye_fini(struct hw_goodbye *g);

/*
 * What must be said on a topic while a group can be heard: `value`, as the whole payload or as the member `state` of a
 * JSON object; or, with a `member`, as the value of that member.
 */
struct hw_while {
	char *topic, *member, *value; /* owned */
};

/* From "TOPIC VALUE" or "TOPIC MEMBER=VALUE", parted by spaces. 0, -EINVAL with *why, or -ENOMEM. */
int hw_while_compile(struct hw_while *w, const char *text, const char **why);
void hw_while_fini(struct hw_while *w);

/* What the configuration says of a group. All strings are borrowed by hw_groups_set(), which copies them. */
struct hw_group_spec {
	const char *name;
	const char *const *heartbeat; /* templates: with {id}, or without in a group of batches */
	size_t n_heartbeat;
	const char *const *goodbye; /* as hw_goodbye_compile() takes them */
	size_t n_goodbye;
	const char *const *ignore; /* filters, whose captures are wildcards */
	size_t n_ignore;
	const char *const *whiles; /* as hw_while_compile() takes them */
	size_t n_whiles;
	const char *const *field; /* as hw_field_compile() takes them */
	size_t n_field;
	const char *status; /* template without wildcards, with the captures of the id; NULL or "": publish nowhere */
	const char *id;     /* template without wildcards: what the id is put together of; NULL or "": {id} */
	const char *id_prefix; /* NULL or "": none */
	int64_t timeout_ms;
	int64_t timeout_max_ms;
	int64_t goodbye_delay_ms;
	int64_t max_age_ms;        /* 0: off */
	unsigned max_offline_rate; /* per second; 0: off */
	enum hw_format format;
	bool retained;     /* heartbeats that are published with the retain flag count (MQTT 5) */
	bool batch;        /* a message is an array of heartbeats */
	bool canary;       /* the monitor may publish on its filters, to prove that they bring something */
	const char *probe; /* what a silent device is asked with: kept for whoever asks it; NULL or "": none is asked */
	int64_t probe_after_ms; /* silence before the first probe, of the group's timeout; less than that */
	unsigned probes;        /* 1 .. HW_PROBES_MAX in a silence */
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
	bool sorts;             /* it has goodbyes or filters to ignore, which are looked at first */
	struct hw_topic status; /* status.filter == NULL: none */
	struct hw_topic form;   /* of the id: its captures are the values of all other templates */
	bool assembled;         /* the form is more than one capture: the id is no part of the topic */
	bool as_it_stands;      /* the id is the topic's, as it stands there, and no topic's last level has a meaning */
	char *id_prefix;        /* never NULL */
	size_t id_prefix_len;
	int64_t timeout_ms, timeout_max_ms, max_age_ms;
	int64_t goodbye_delay_ms; /* if bridged, at least 2 s */
	unsigned max_offline_rate;
	enum hw_format format;
	struct hw_field *field;
	struct hw_reading reading; /* of what is read as JSON */
	bool batch, canary, retained;
	bool bridged;    /* one of its whiles is a topic below $SYS/: the state of a bridge */
	unsigned probes; /* 0: none */
	int64_t probe_after_ms;
	char *probe;   /* never NULL */
	unsigned rank; /* its place in the configuration file: the lowest that matches takes a device */
	/* A hash of all that decides whether a device of the group is heard: two nodes with the same number hear the
	 * same devices. 0: not known, since no configuration of this run had the group. */
	uint64_t form_hash;
	bool retired;
	bool unheard; /* retired, and no other group has all of its heartbeat filters: its devices cannot be heard */
};

struct hw_groups {
	struct hw_group **all; /* owned, by index; groups never move */
	size_t n;
	uint16_t *order; /* indices of those not retired, in the order of the file */
	size_t n_order;
};

void hw_groups_init(struct hw_groups *g);
void hw_groups_fini(struct hw_groups *g);

/*
 * Makes the table say what `specs` say, in their order. Returns 0; or -EINVAL (a template does not compile, two names
 * are the same), -ENOSPC (more than HW_GROUPS_MAX ever seen) or -ENOMEM with the table as it was. A struct hw_group
 * stays where it is, but pointers into it (its name, its templates) are valid only until the next call.
 */
int hw_groups_set(struct hw_groups *g, const struct hw_group_spec *specs, size_t n);

/*
 * The same in two steps: the draft allocates everything, and its installation cannot fail. So a caller can allocate
 * what else depends on the groups between the two. `next` is the table as it will be, with the contents that the groups
 * will have; only groups that stay have other addresses there than after the installation.
 */
struct hw_groups_draft {
	struct hw_groups next;
	struct hw_group **fresh; /* owned */
	size_t n;
};

/* As hw_groups_set(), but the table stays as it is. On 0 the caller owes hw_groups_install() or
 * hw_groups_draft_fini(). */
int hw_groups_draft(const struct hw_groups *g, const struct hw_group_spec *specs, size_t n, struct hw_groups_draft *d);
/* `g` must not have changed since the draft, which is used up. */
void hw_groups_install(struct hw_groups *g, struct hw_groups_draft *d);
void hw_groups_draft_fini(struct hw_groups_draft *d);

/* The index of the group of that name, retired ones included, or -1. */
int hw_groups_find(const struct hw_groups *g, const char *name);

/* The same for a name without a NUL; a name that is not in the table gets a retired group without filters, for devices
 * whose group the configuration does not have. -EINVAL (no group can have that name), -ENOSPC or -ENOMEM. */
int hw_groups_name(struct hw_groups *g, const char *name, size_t len);

enum hw_match {
	HW_MATCH_NONE,
	HW_MATCH_HEARTBEAT,
	HW_MATCH_GOODBYE,  /* on a goodbye's filter: a heartbeat, unless hw_group_says_goodbye() */
	HW_MATCH_STATUS,   /* the group's status topic, on which no group hears heartbeats */
	HW_MATCH_ANSWER,   /* not of a group: the topic on which probes are answered (monitor.h) */
	HW_MATCH_IGNORED,  /* on a filter that the group ignores */
	HW_MATCH_CLEARING, /* an empty payload on the group's status topic: somebody clears a retained status; or on a
	                      goodbye's filter that is no heartbeat's: somebody clears a retained goodbye */
};

/*
 * Every heartbeat and goodbye of a group has the captures of its form, and {id} at most besides; its status exactly
 * these. A capture that is a {name...} in any filter is one in form and status, too.
 */

/*
 * Which group takes a topic: the first in the file of which any filter matches. Of its filters those that it ignores
 * come first, then goodbyes, then heartbeats. An empty payload on the
 * status topic of any group, also a retired one and whether or not heartbeats are expected there, is that group's
 * clearing. `*id` (not NUL-terminated, without the group's id_prefix, possibly empty, as it is for a batch) points into
 * `topic`; of an `assembled` group it says nothing: hw_group_id() puts it together. `*by` is the template that matched.
 */
enum hw_match hw_groups_match(const struct hw_groups *g, const char *topic, size_t len, bool empty_payload,
                              uint16_t *group, const char **id, size_t *id_len, const struct hw_topic **by);

/* Whether it is the status topic of any group, also of a retired one. */
bool hw_groups_is_status(const struct hw_groups *g, const char *topic, size_t len);

/* Which of the group's heartbeat templates has the filter of `by`; n_heartbeat: none. */
size_t hw_group_heartbeat_like(const struct hw_group *g, const struct hw_topic *by);

/* Which of the group's heartbeat templates `by` is, or is the filter of as well (a goodbye's); n_heartbeat: none. */
static inline size_t hw_group_heartbeat_of(const struct hw_group *g, const struct hw_topic *by)
{
	size_t at = ((uintptr_t)by - (uintptr_t)g->heartbeat) / sizeof(*by);
	return at < g->n_heartbeat ? at : hw_group_heartbeat_like(g, by);
}

/*
 * Puts together the id that a topic has in an assembled group, of which `by` is a template that matches it, with the
 * group's id_prefix and without a NUL. Returns its length; 0 if there is none: a part of it is empty, or it is too
 * long.
 */
size_t hw_group_id(const struct hw_group *g, const struct hw_topic *by, const char *topic, size_t len,
                   char id[HW_ID_MAX]);

/* Whether devices of the group have ids like this one. */
bool hw_group_fits(const struct hw_group *g, const char *id, size_t id_len);

/* Whether a message that HW_MATCH_GOODBYE was said of is one. `*no_memory`: it could not be read. */
bool hw_group_says_goodbye(const struct hw_group *g, const char *topic, size_t len, const void *payload,
                           size_t payload_len, bool *no_memory);

/*
 * Writes the topic of a device's retained status, with a NUL; `id` is the device's (with the group's id_prefix, which
 * is taken off; an id without it, from before a reload, is used as it is). Returns its length, 0 if the group publishes
 * none or the id is not of its form, or -ENAMETOOLONG.
 */
int hw_group_status_topic(const struct hw_group *g, const char *id, size_t id_len, char *buf, size_t cap);

#endif
