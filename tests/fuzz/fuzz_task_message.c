/* SPDX-License-Identifier: MIT */
/*
 * FD messages of tasks: any bytes. What is read lies within the message or the request's own memory, holds what its
 * bounds say, and what goes out of it is JSON again. The same of what stands in a topic.
 */
#include <string.h>

#include "fuzz.h"
#include "heartwheel/json.h"
#include "tasks/mqtt/message.h"

static struct hw_message message;

static void check_spans(const struct hw_request *q, const char *text, size_t len)
{
	struct hw_text body = q->task.body;
	if (q->action != HW_REQUEST_DELIVER)
		return;
	MUST(q->task.topic.len == 0 || q->task.receiver.len == 0);
	MUST(q->task.topic.len > 0 || hw_task_name_is_valid(q->task.receiver));
	MUST(q->task.topic.len > 0 || q->task.action.len > 0);
	MUST(q->task.at_ms < 0 || q->task.after_ms < 0);
	MUST(q->task.time_ms >= 0);
	if (q->task.topic.len == 0 && body.len != 4)
		MUST(body.at > text && body.at + body.len < text + len);
}

/* Byte for byte, and valid. */
static void check_pending(const struct hw_request *q)
{
	const struct hw_task_id task = {{1}};
	struct hw_task_claimed c = {.sender = q->sender,
	                            .receiver = q->task.receiver,
	                            .action = q->task.action,
	                            .body = q->task.body,
	                            .exp_ms = 1790000000000};
	if (q->action != HW_REQUEST_DELIVER || q->task.topic.len)
		return;
	MUST(hw_message_pending(&message, "heartwheel", &task, &c, 1780000000000) == 0);
	MUST(hw_json_object_valid(message.at, message.len));
	MUST(memmem(message.at, message.len, c.body.at, c.body.len));
}

static void check_response(const void *data, size_t size, enum hw_task_answer_kind kind)
{
	struct hw_response p;
	const char *why = NULL;
	int rc = hw_response_read(&p, data, size, kind, &why);
	MUST(rc == 0 || p.value.len <= size);
	MUST((rc == 0) <= !why);
	if (p.value.len)
		MUST(p.value.at > (const char *)data && p.value.at + p.value.len < (const char *)data + size);
}

static void check_overheard(const void *data, size_t size)
{
	struct hw_overheard o;
	int rc = hw_overheard_read(&o, data, size);
	MUST((rc == 0) == (o.msg_id.len > 0));
	MUST(o.msg_id.len <= HW_TASK_MSG_ID_MAX && o.sender.len <= size && o.action.len <= 255 && o.exp_ms >= -1);
	hw_overheard_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hw_request q;
	struct hw_text name, last;
	const char *why = NULL;
	/* On the heap, so that a byte beyond it is noticed. */
	char *text = malloc(size + !size);
	MUST(text);
	if (size)
		memcpy(text, data, size);
	int rc = hw_request_read(&q, text, size, &why);
	MUST(rc == 0 || why);
	MUST(q.msg_id.len <= HW_TASK_MSG_ID_MAX);
	MUST(q.sender.len == 0 || hw_task_name_is_valid(q.sender));
	if (rc == 0) {
		check_spans(&q, text, size);
		check_pending(&q);
	}
	hw_request_fini(&q);
	check_overheard(text, size);
	for (enum hw_task_answer_kind k = HW_ANSWER_ACK; k <= HW_ANSWER_FAILED; k++)
		check_response(text, size, k);
	if (hw_task_topic_read("nodes", text, size, &name, &last) != HW_TOPIC_NONE)
		MUST(name.len > 0 && name.len + last.len < size && (last.len == 0 || hw_task_name_is_valid(last)));
	free(text);
	hw_message_fini(&message);
	return 0;
}
