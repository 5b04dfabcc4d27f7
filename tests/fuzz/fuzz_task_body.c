/* SPDX-License-Identifier: MIT */
/*
 * What a client sends to POST /v1/tasks and POST /v1/call: any bytes. An array is taken apart as the API does it; each
 * task of it is read within its own bytes, and what is refused has a reason.
 */
#include <string.h>

#include "fuzz.h"
#include "heartwheel/json.h"
#include "tasks/mqtt/message.h"

static void check_within(struct hw_text t, const char *text, size_t len)
{
	if (t.len)
		MUST(t.at >= text && t.at + t.len <= text + len);
}

static void check_text(struct hw_text t)
{
	MUST(t.len == 0 || memchr(t.at, '\0', t.len) == NULL);
}

static void read_task(const char *text, size_t len)
{
	struct hw_request q;
	const char *why = NULL;
	int rc = hw_request_read_task(&q, text, len, &why);
	MUST(rc == 0 || why);
	MUST(q.msg_id.len <= HW_TASK_MSG_ID_MAX);
	if (rc == 0) {
		const struct hw_task_submission *t = &q.task;
		MUST((t->topic.len == 0) != (t->receiver.len == 0));
		MUST(t->topic.len || (hw_task_name_is_valid(t->receiver) && t->action.len));
		MUST(t->at_ms < 0 || t->after_ms < 0);
		MUST(t->time_ms >= 0 && t->qos <= 2);
		check_text(t->topic);
		if (!t->topic.len && t->body.len != 4) /* null is no byte of the message */
			check_within(t->body, text, len);
	}
	hw_request_fini(&q);
}

static void read_call(const char *text, size_t len)
{
	struct hw_call_request q;
	const char *why = NULL;
	int rc = hw_call_request_read(&q, text, len, &why);
	MUST(rc == 0 || why);
	if (rc == 0) {
		MUST(q.topic.len && q.reply.len && q.qos <= 2);
		MUST(q.timeout_ms >= 0 && q.timeout_ms <= 50000);
		check_text(q.topic);
		check_text(q.reply);
	}
	hw_call_request_fini(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hw_json_member m;
	size_t at = 0;
	/* On the heap, so that a byte beyond it is noticed. */
	char *text = malloc(size + !size);
	MUST(text);
	if (size)
		memcpy(text, data, size);
	read_task(text, size);
	read_call(text, size);
	if (hw_json_array_valid(text, size))
		while (hw_json_array_next(text, size, &at, &m)) {
			check_within((struct hw_text){m.value, m.value_len}, text, size);
			read_task(m.value, m.value_len);
		}
	free(text);
	return 0;
}
