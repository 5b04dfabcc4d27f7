/* SPDX-License-Identifier: MIT */
/* Compares submissions with the values of [tasks] allow, publish and answers. Pure: no I/O, no clock. */
#ifndef HW_TASKS_ALLOW_H
#define HW_TASKS_ALLOW_H

#include "tasks/task.h"

struct hw_tasks_settings;

/* Returns NULL if `text` is a valid value of `allow`, or else what is wrong. The form is "SENDER ACTION RECEIVER"; a *
 * in a word matches any text. */
const char *hw_allow_wrong(const char *text);
/* Returns NULL if `text` is a valid topic filter for `publish` or `answers`, or else what is wrong. */
const char *hw_allow_filter_wrong(const char *text);

/* Whether one of the rules allows the task. */
bool hw_allow_task(char *const *rules, size_t n, struct hw_text sender, struct hw_text action, struct hw_text receiver);
/* Whether a valid filter matches the topic. mosquitto_topic_matches_sub2() of libmosquitto 2.0 reads past the end of a
 * topic that has no NUL. */
bool hw_filter_has(const char *filter, struct hw_text topic);
/* Whether `wide` matches every topic that `narrow` matches. */
bool hw_filter_covers(const char *wide, const char *narrow);
/* Whether the topic is ROOT/NAME or `heartwheel`, or is below one of them. Submitters must not publish there through
 * heartwheel-tasks: the broker's ACL would accept such a message as one of heartwheel-tasks itself. */
bool hw_topic_is_ours(const char *root, const char *name, struct hw_text topic);
/* Whether [tasks] publish allows `sender` to publish on `topic`, and the topic is not one of our own. */
bool hw_allow_publish(const struct hw_tasks_settings *c, struct hw_text sender, struct hw_text topic);
/* Whether one of the filters matches the topic. {sender} in a filter stands for `sender`; without a sender, such a
 * filter matches no topic. A topic that begins with $ belongs to the broker, and matches no filter. */
bool hw_allow_topic(char *const *filters, size_t n, struct hw_text sender, struct hw_text topic);

#endif
