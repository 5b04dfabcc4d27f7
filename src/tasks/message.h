/* SPDX-License-Identifier: MIT */
/*
 * The FD messages of tasks: JSON objects of at most HW_TASK_BYTES_MAX bytes. Pure: bytes come in, structs or bytes go
 * out. `payload`, `value` and `error` are passed on byte for byte: what is read borrows the message's bytes, and what
 * is written copies the given ones. Of several members of one name the first counts; unknown ones are ignored.
 */
#ifndef HW_TASKS_MESSAGE_H
#define HW_TASKS_MESSAGE_H

#include "tasks/task.h"

/* --- to us -------------------------------------------------------------------------------------------------------- */

/* What a client asks for on ROOT/NAME/pending[/SENDER]. */
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

/* All texts are owned by the request, but `raw`s, which borrow the message. */
struct hw_request {
	enum hw_request_action action;
	struct hw_text sender; /* as the payload says; empty: it does not. To believe it or not is the caller's */
	struct hw_text msg_id;
	struct hw_task_submission task; /* DELIVER, all but its name and the sender */
	struct hw_text of;              /* CANCEL, QUERY: the msg_id that it is about */
	bool force;                     /* CANCEL */
	/* FOLLOW */
	struct hw_text group, prefix, from;
	struct hw_text *ids;
	size_t n_ids;
	/* WILL: what to keep; no topic: none any more */
	struct hw_text topic, raw;
	unsigned qos;
	bool retain;
	char *memory; /* holds the texts */
};

/*
 * Reads a request. 0; -EINVAL with `*why` (a static sentence, for the sender) and with as much of r->sender and
 * r->msg_id as there is, so that it can be told; or -ENOMEM. Release with hw_request_fini() in any case.
 */
int hw_request_read(struct hw_request *r, const void *bytes, size_t len, const char **why);
/*
 * The same for a task as the API takes it: an object that has what the payload of a DELIVER has, and msg_id and time
 * beside it; msg_id may lack, and is empty then.
 */
int hw_request_read_task(struct hw_request *r, const void *bytes, size_t len, const char **why);
void hw_request_fini(struct hw_request *r);

/* What POST /v1/call asks for: a message, and the topic on which the answer comes. */
struct hw_call_request {
	struct hw_text topic, payload, reply; /* topic and reply are owned, payload may borrow the message */
	unsigned qos;
	int64_t timeout_ms; /* 10 s unless it says otherwise, 50 s at most */
	char *memory;
};
/* As hw_request_read(). */
int hw_call_request_read(struct hw_call_request *r, const void *bytes, size_t len, const char **why);
void hw_call_request_fini(struct hw_call_request *r);

/* A device's ack, complete or failed. */
struct hw_response {
	struct hw_task_id task;
	struct hw_text value; /* `value` or `error`, borrowed; empty: none */
};
/* 0, or -EINVAL with `*why`. -ENOENT: it is well-formed, and its msg_id is no name of a task. */
int hw_response_read(struct hw_response *r, const void *bytes, size_t len, enum hw_task_answer_kind kind,
                     const char **why);

/* The msg_id alone of a response, whatever it names, into `memory`, which `id` borrows. 0 or -EINVAL. */
#define HW_RESPONSE_ID_MAX (HW_TASK_MSG_ID_MAX * 6 + 2)
int hw_response_msg_id(const void *bytes, size_t len, char memory[HW_RESPONSE_ID_MAX], struct hw_text *id);

/* What others say to one another, a task or an answer to one. All texts are owned. */
struct hw_overheard {
	struct hw_text sender, msg_id, action; /* sender: as the payload says; empty: it does not */
	int64_t exp_ms;                        /* -1: none */
	bool is_ours;                          /* it names a task of ours: it is we who tell a submitter */
	char *memory;
};
/* 0; -EINVAL if there is no msg_id that could be one; or -ENOMEM. Release with hw_overheard_fini() in any case. */
int hw_overheard_read(struct hw_overheard *s, const void *bytes, size_t len);
void hw_overheard_fini(struct hw_overheard *s);

/* Which of the topics below ROOT one is. */
enum hw_task_topic { HW_TOPIC_PENDING, HW_TOPIC_ACK, HW_TOPIC_COMPLETE, HW_TOPIC_FAILED, HW_TOPIC_NONE };

/* Of ROOT/NAME/WORD[/LAST]: the word, its NAME, and LAST, which the broker's ACL binds to who publishes (empty: there
 * is none). Borrowed. */
enum hw_task_topic hw_task_topic_read(const char *root, const char *topic, size_t len, struct hw_text *name,
                                      struct hw_text *last);

/* --- from us ------------------------------------------------------------------------------------------------------ */

/* A buffer that grows; zeroed storage is ready. What is built stands at `at`, with a NUL behind it. */
struct hw_message {
	char *at;
	size_t len, cap;
	bool failed; /* no memory: what was built is not to be sent */
};
void hw_message_fini(struct hw_message *m);

/* To the device, on ROOT/{receiver}/pending. 0 or -ENOMEM, as of all these. */
int hw_message_pending(struct hw_message *m, const char *name, const struct hw_task_id *task,
                       const struct hw_task_claimed *c, int64_t now_ms);

/* To the submitter, on ROOT/{sender}/ack|complete|failed. */
struct hw_notice {
	struct hw_text msg_id, receiver;
	const struct hw_task_id *task; /* NULL: it was not taken */
	enum hw_task_state state;
	bool refused; /* it was not taken: state "refused" */
	int64_t time_ms;
	struct hw_text value; /* of complete, raw */
	struct hw_text error; /* of failed: raw JSON, or empty and */
	const char *why;      /*   a word or sentence in its place */
	bool late;
};
int hw_message_ack(struct hw_message *m, const struct hw_notice *n);
int hw_message_complete(struct hw_message *m, const struct hw_notice *n);
int hw_message_failed(struct hw_message *m, const struct hw_notice *n);

/* The topic ROOT/NAME/WORD. */
int hw_message_topic(struct hw_message *m, const char *root, struct hw_text name, enum hw_task_topic word);

/* Whether a name may stand as a level of a topic: not empty, no '/', and a valid id (heartwheel/topic.h). */
bool hw_task_name_is_valid(struct hw_text name);
/* The same of a msg_id. */
bool hw_task_msg_id_is_valid(struct hw_text t);

#endif
