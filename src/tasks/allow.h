/* SPDX-License-Identifier: MIT */
/* Who may submit what: the values of [tasks] allow, publish and answers. Pure. */
#ifndef HW_TASKS_ALLOW_H
#define HW_TASKS_ALLOW_H

#include "tasks/task.h"

struct hw_tasks_settings;

/* What is wrong with a value of `allow`, "SENDER ACTION RECEIVER" of which each may have * for any text; or NULL. */
const char *hw_allow_wrong(const char *text);
/* What is wrong with a value of `publish` or `answers`, a filter of topics; or NULL. */
const char *hw_allow_filter_wrong(const char *text);

/* Whether one of the rules allows it. */
bool hw_allow_task(char *const *rules, size_t n, struct hw_text sender, struct hw_text action, struct hw_text receiver);
/* Whether a valid filter has the topic. (mosquitto_topic_matches_sub2() of 2.0 reads on behind a topic that no NUL
 * ends.) */
bool hw_filter_has(const char *filter, struct hw_text topic);
/* Whether `wide` has every topic that `narrow` has. */
bool hw_filter_covers(const char *wide, const char *narrow);
/* Whether a topic is our own, ROOT/NAME or heartwheel and what is below: nobody else speaks there through us, in whose
 * name the broker's ACL takes it. */
bool hw_topic_is_ours(const char *root, const char *name, struct hw_text topic);
/* Whether [tasks] publish allows a sender to have this published. */
bool hw_allow_publish(const struct hw_tasks_settings *c, struct hw_text sender, struct hw_text topic);
/* Whether one of the filters has the topic; {sender} in a filter stands for the sender (empty: for nobody). A topic
 * that begins with $ is the broker's own, and in no filter. */
bool hw_allow_topic(char *const *filters, size_t n, struct hw_text sender, struct hw_text topic);

#endif
