/* SPDX-License-Identifier: MIT */
/*
 * The messages of tasks: JSON objects of at most HW_TASK_BYTES_MAX bytes. Pure: no I/O, no clock. `payload`, `value`
 * and `error` are passed on unchanged, byte for byte. A reader borrows them from the message; a writer copies them. If
 * a member occurs twice, the first one counts. Unknown members are ignored.
 */
#ifndef HW_TASKS_MESSAGE_H
#define HW_TASKS_MESSAGE_H

#include "tasks/task.h"

/* --- messages to heartwheel-tasks ----------------------------------------------------------------------------------
 */

/* The actions that a client can request on ROOT/NAME/pending[/SENDER]. */
enum hw_request_action {
	HW_REQUEST_DELIVER,
	HW_REQUEST_CANCEL,
	HW_REQUEST_QUERY,
	HW_REQUEST_FOLLOW,
	HW_REQUEST_UNFOLLOW,
	HW_REQUEST_WILL,
	HW_REQUEST_ACTIONS
};

#define HW_FOLLOW_IDS_MAX 1000

/* A request. It owns its texts; only `raw` and task.body may borrow from the message. */
struct hw_request {
	enum hw_request_action action;
	struct hw_text sender; /* the sender that the payload names; empty: none. The caller decides whether this name
	                          counts */
	struct hw_text msg_id;
	struct hw_task_submission task; /* DELIVER: without its name and its sender */
	struct hw_text of;              /* CANCEL, QUERY: msg_id of the task */
	bool force;                     /* CANCEL */
	/* FOLLOW */
	struct hw_text group, prefix, from;
	struct hw_text *ids;
	size_t n_ids;
	/* WILL: the will to store; if the topic is empty, the present will is removed */
	struct hw_text topic, raw;
	unsigned qos;
	bool retain;
	char *memory; /* holds the texts */
};

/*
 * Reads a request. Returns 0, -EINVAL or -ENOMEM. With -EINVAL, *why is a static sentence for the sender. r->sender and
 * r->msg_id are then set if they could be read, so that the sender can be answered. hw_request_fini() must be called in
 * any case.
 */
int hw_request_read(struct hw_request *r, const void *bytes, size_t len, const char **why);
/*
 * Reads a task from the API, like hw_request_read(). The object has the members that the payload of a DELIVER has, and
 * also msg_id and time. A missing msg_id is empty.
 */
int hw_request_read_task(struct hw_request *r, const void *bytes, size_t len, const char **why);
void hw_request_fini(struct hw_request *r);

/* The body of POST /v1/call: a message, and the topic of its answer. */
struct hw_call_request {
	struct hw_text topic, payload, reply; /* topic and reply are owned; payload may borrow from the message */
	unsigned qos;
	int64_t timeout_ms; /* default: 10 s; at most 50 s */
	char *memory;
};
/* Like hw_request_read(). */
int hw_call_request_read(struct hw_call_request *r, const void *bytes, size_t len, const char **why);
void hw_call_request_fini(struct hw_call_request *r);

/* A device's ack, complete or failed. */
struct hw_response {
	struct hw_task_id task;
	struct hw_text value; /* `value` or `error`, borrowed; empty: none */
};
/* Reads a response. Returns 0, or -EINVAL with `*why`. -ENOENT: the response is well-formed, but its msg_id cannot
 * be the name of a task. */
int hw_response_read(struct hw_response *r, const void *bytes, size_t len, enum hw_task_answer_kind kind,
                     const char **why);

/* Reads only the msg_id of a response, of whatever kind. `id` borrows from `memory`. Returns 0 or -EINVAL. */
#define HW_RESPONSE_ID_MAX (HW_TASK_MSG_ID_MAX * 6 + 2)
int hw_response_msg_id(const void *bytes, size_t len, char memory[HW_RESPONSE_ID_MAX], struct hw_text *id);

/* A message about a watched task (watch.h): the task, or an answer to it. It owns its texts. */
struct hw_overheard {
	struct hw_text sender, msg_id, action; /* sender: from the payload; empty: none */
	int64_t exp_ms;                        /* -1: none */
	bool is_ours; /* the msg_id is the name of one of heartwheel-tasks' own tasks, so the message is our own
	               * notice to a submitter */
	char *memory;
};
/* Returns 0, -EINVAL if there is no valid msg_id, or -ENOMEM. hw_overheard_fini() must be called in any case. */
int hw_overheard_read(struct hw_overheard *s, const void *bytes, size_t len);
void hw_overheard_fini(struct hw_overheard *s);

/* The kinds of topics below ROOT. */
enum hw_task_topic { HW_TOPIC_PENDING, HW_TOPIC_ACK, HW_TOPIC_COMPLETE, HW_TOPIC_FAILED, HW_TOPIC_NONE };

/* Parses ROOT/NAME/WORD[/LAST]. *name and *last borrow from the topic. The broker's ACL binds LAST to the publishing
 * client. Without LAST, *last is empty. */
enum hw_task_topic hw_task_topic_read(const char *root, const char *topic, size_t len, struct hw_text *name,
                                      struct hw_text *last);

/* --- messages of heartwheel-tasks ----------------------------------------------------------------------------------
 */

/* A buffer that grows. Zeroed storage is ready for use. The message is at `at`, followed by a NUL. */
struct hw_message {
	char *at;
	size_t len, cap;
	bool failed; /* out of memory: the message must not be sent */
};
void hw_message_fini(struct hw_message *m);

/* Writes a task for a device, on ROOT/{receiver}/pending. Returns 0 or -ENOMEM, as do the functions below. */
int hw_message_pending(struct hw_message *m, const char *name, const struct hw_task_id *task,
                       const struct hw_task_claimed *c, int64_t now_ms);

/* A message to the submitter, on ROOT/{sender}/ack|complete|failed. */
struct hw_notice {
	struct hw_text msg_id, receiver;
	const struct hw_task_id *task; /* NULL: none */
	enum hw_task_state state;
	bool refused; /* the request was refused: state "refused" */
	int64_t time_ms;
	struct hw_text value; /* of complete, raw */
	struct hw_text error; /* of failed: raw JSON; empty: `why` is written instead */
	const char *why;      /* a word or a sentence */
	bool late;
};
int hw_message_ack(struct hw_message *m, const struct hw_notice *n);
int hw_message_complete(struct hw_message *m, const struct hw_notice *n);
int hw_message_failed(struct hw_message *m, const struct hw_notice *n);

/* Writes the topic ROOT/NAME/WORD. */
int hw_message_topic(struct hw_message *m, const char *root, struct hw_text name, enum hw_task_topic word);

/* Whether a name can be one level of a topic: not empty, without '/', and a valid id (heartwheel/topic.h). */
bool hw_task_name_is_valid(struct hw_text name);
/* Whether a msg_id has 1 to HW_TASK_MSG_ID_MAX of the characters A-Z a-z 0-9 . _ - */
bool hw_task_msg_id_is_valid(struct hw_text t);

#endif
