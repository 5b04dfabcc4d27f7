/* SPDX-License-Identifier: MIT */
/* Declarations that discover_find.c, discover_preset.c, discover_groups.c, discover_lines.c and discover_order.c
 * share to find the groups. */
#ifndef HW_CTL_DISCOVER_PRIV_H
#define HW_CTL_DISCOVER_PRIV_H

#include "conf/table.h"
#include "ctl/discover_find.h"
#include "ctl/discover_templates.h"
#include "heartwheel/topic.h"

/* A place of ids: where the id is in the topics of all templates with one prefix. */
struct hw_find_place {
	uint32_t topic; /* one of its topics */
	uint32_t low;   /* wildcards up to `last` */
	uint32_t id;    /* the levels of the id, a subset of `low` */
	uint8_t last;   /* the last level of the id */
	uint32_t group; /* index in `groups` + 1; 0: none */
	uint32_t joins; /* the place that this one has joined; itself: none */
	uint64_t tails; /* a hash of what follows the id */
};

enum hw_line_kind { HW_LINE_HEARTBEAT, HW_LINE_GOODBYE, HW_LINE_IGNORE };

/* A line of a group of its own convention: a filter. */
struct hw_find_line {
	enum hw_line_kind kind;
	uint32_t topic, wild, id; /* the fixed levels are those of the topic */
	uint32_t n;               /* topics */
	uint32_t words;           /* of a goodbye; with `member`: of that member */
	const char *member;
};

struct hw_find_group {
	int preset; /* enum hw_preset */
	uint32_t devices, flagged, goodbyes, twice, topics;
	uint32_t example;
	bool own_timeout, deep; /* deep: the id is the first level */
	struct hw_find_line *lines;
	size_t n_lines;
	uint32_t sites; /* levels before the id that become labels: the same in all heartbeats and goodbyes */
	/* The names of the levels of an id with several levels, and of the sites. Bit k of `labels`: names[k] is
	 * the name of a site. */
	char names[HW_CAPTURES_MAX][HW_CAPTURE_NAME + 1];
	unsigned n_names, labels;
	uint32_t paths[HW_FOUND_FIELDS][HW_TOPICS_PATHS + 1]; /* how many topics have a field at a path */
	bool shares_ids;                                      /* with an earlier group */
	struct hw_found_list out;                             /* "key = value" of its filters */
	struct hw_topic *match;                               /* the same filters, compiled */
	size_t n_match;
	uint32_t foreign; /* how many topics the group's filters match although these topics do not belong to its
	                   * devices */
};

struct hw_find_device {
	uint64_t id; /* hash of its id */
	uint32_t group, last_ms, beats;
	bool flagged, goodbye, placed;
};

enum hw_topic_state {
	HW_TOPIC_FREE,
	HW_TOPIC_PLACED,  /* in `group`, as a heartbeat */
	HW_TOPIC_BESIDE,  /* of a group's convention, but no heartbeat */
	HW_TOPIC_COMMAND, /* a message to devices */
	HW_TOPIC_EXCLUDED /* never one of a device */
};

struct hw_finding {
	const struct hw_topics *topics;
	uint64_t seed;
	size_t n; /* topics */
	struct hw_levels levels;
	struct hw_templates templates;
	uint8_t *state;   /* of each topic: enum hw_topic_state */
	uint16_t *group;  /* of each topic: index + 1; 0: none */
	uint32_t *device; /* of each topic: index + 1; 0: none */
	struct hw_keymap device_of;
	struct hw_find_device *devices;
	size_t n_devices;
	struct hw_find_group *groups; /* HW_FOUND_MAX of them */
	size_t n_groups;
	struct hw_find_place *places;
	size_t n_places;
	uint32_t *place_of; /* of each template: index; UINT32_MAX: none */
};

/* Return the hash of an id: of a text, or of the id that these levels of a topic make. */
uint64_t hw_finding_id(const struct hw_finding *f, const char *id, size_t len);
uint64_t hw_finding_id_of(const struct hw_finding *f, size_t topic, uint32_t levels);
/* Whether these levels of a topic make a valid id. */
bool hw_finding_id_valid(const struct hw_finding *f, size_t topic, uint32_t levels);
/* Assigns a topic to a group and to the device `id` of that group. Returns 0 or -ENOMEM. */
int hw_finding_place(struct hw_finding *f, size_t topic, unsigned group, uint64_t id);
/* The device with this id in the group, or NULL. */
struct hw_find_device *hw_finding_device(struct hw_finding *f, unsigned group, uint64_t id);

/* Each returns 0 or -ENOMEM. */
int hw_find_presets(struct hw_finding *f); /* discover_preset.c */
int hw_find_groups(struct hw_finding *f);  /* discover_groups.c */
int hw_find_lines(struct hw_finding *f);   /* discover_lines.c */
/* Compiles the filters, and determines the order of the groups in the file, and the lines `ignore`
 * (discover_order.c). `order` has room for HW_FOUND_MAX. *n: how many groups have filters. */
int hw_find_order(struct hw_finding *f, uint16_t *order, size_t *n);

/* Returns the filter of a line, with {id} and the group's names. NULL: one of its levels is not allowed in
 * monitor.conf. */
char *hw_line_filter(const struct hw_finding *f, const struct hw_find_group *g, const struct hw_find_line *l);
/* Adds a formatted text. Returns 0 or -ENOMEM. */
int hw_found_add(struct hw_found_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
