/* SPDX-License-Identifier: MIT */
/* Whether a text of the file can be what a group wants of it: a filter, a topic, a field. */
#ifndef HW_TEMPLATE_H
#define HW_TEMPLATE_H

enum hw_template {
	HW_TEMPLATE_HEARTBEAT,
	HW_TEMPLATE_STATUS,  /* is published on: without wildcards */
	HW_TEMPLATE_BATCH,   /* of heartbeats that name their devices in the payload: without {id} */
	HW_TEMPLATE_GOODBYE, /* with what is said there behind it */
	HW_TEMPLATE_FIXED,   /* of heartbeats of the only device of a group: without names in braces */
	HW_TEMPLATE_IGNORE,
	HW_TEMPLATE_ID,
	HW_TEMPLATE_FIELD /* no topic: a reported field's name and its path */
};

/* 0, -ENOMEM, or -EINVAL with `*why` a static sentence. */
int hw_template_check(const char *text, enum hw_template kind, const char **why);

#endif
