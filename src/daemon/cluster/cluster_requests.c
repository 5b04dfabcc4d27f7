/* SPDX-License-Identifier: MIT */
#include "cluster_requests.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster_priv.h"
#include "daemon/loop/turn.h"
#include "heartwheel/json_tree.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/registry.h"

static const char *const words[] = {
	[HW_FORGOTTEN] = "forgotten", [HW_FORGOTTEN_UNKNOWN] = "unknown", [HW_FORGOTTEN_UNOWNED] = "unowned"};
#define N_WORDS (sizeof(words) / sizeof(*words))

#define MESSAGE_MAX (6 * (HW_ID_MAX + HW_NODE_ID_MAX) + 256) /* with both ids escaped */
#define RUN_TEXT    17                                       /* bytes of a run id as text, with the NUL */

/* Writes a run id as text. JSON numbers are doubles, and would lose digits. */
static void run_text(const struct hw_app *a, char text[RUN_TEXT])
{
	snprintf(text, RUN_TEXT, "%016" PRIx64, a->life.run_id);
}

static const char *text_of(const cJSON *j, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
	return text ? text : "";
}

/* Begins a request or an answer. `run`: the run id of the node that asks. */
static void begin(const struct hw_app *a, const char *kind, const char *run, double ticket, struct hw_json *j,
                  char *text)
{
	hw_json_begin_text(j, text, MESSAGE_MAX);
	hw_json_open(j, '{');
	hw_json_text(j, kind, "forget");
	hw_json_text(j, "from", a->start->node_id);
	hw_json_text(j, "run", run);
	hw_json_number(j, "ticket", ticket);
}

/* Returns 0, or -errno if the message is not published. */
static int end_and_send(struct hw_app *a, const char *node, struct hw_json *j)
{
	hw_json_close(j, '}');
	int len = hw_json_end_text(j);
	return len < 0 ? -E2BIG : hw_app_cluster_send(a, node, j->buf, (size_t)len);
}

/* --- sending requests */

static int ask_to_forget(struct hw_app *a, const char *owner, uint64_t ticket, const char *id, size_t len)
{
	char run[RUN_TEXT], text[MESSAGE_MAX];
	struct hw_json j;
	run_text(a, run);
	begin(a, "ask", run, (double)ticket, &j, text);
	hw_json_bytes(&j, "id", id, len);
	return end_and_send(a, owner, &j);
}

enum hw_forgotten hw_app_forget(struct hw_app *a, uint64_t ticket, const char *id, size_t len)
{
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	uint32_t index = hw_registry_find(r, id, len);
	if (hw_monitor_forget(a->monitor, hw_app_now(), id, len)) {
		hw_app_turn(a);
		return HW_FORGOTTEN;
	}
	if (!a->cluster || index == HW_NIL)
		return HW_FORGOTTEN_UNKNOWN;
	const char *owner = hw_app_cluster_owner(a, hw_registry_at(r, index));
	if (!owner || strcmp(owner, a->start->node_id) == 0) /* the device moves to another node */
		return HW_FORGOTTEN_UNOWNED;
	return ask_to_forget(a, owner, ticket, id, len) == 0 ? HW_FORGOTTEN_ASKED : HW_FORGOTTEN_SILENT;
}

/* --- requests and answers from other nodes */

static enum hw_forgotten forget_here(struct hw_app *a, const char *id, size_t len)
{
	const struct hw_registry *r = hw_monitor_registry(a->monitor);
	if (hw_monitor_forget(a->monitor, hw_app_now(), id, len))
		return HW_FORGOTTEN;
	uint32_t index = hw_registry_find(r, id, len);
	return index == HW_NIL || hw_monitor_is_authoritative(a->monitor, hw_registry_at(r, index))
	               ? HW_FORGOTTEN_UNKNOWN
	               : HW_FORGOTTEN_UNOWNED;
}

static void take_request(struct hw_app *a, const cJSON *message)
{
	const char *from = text_of(message, "from"), *id = text_of(message, "id"), *run = text_of(message, "run");
	const cJSON *ticket = cJSON_GetObjectItemCaseSensitive(message, "ticket");
	if (strlen(run) != RUN_TEXT - 1 || !hw_id_valid(id, strlen(id)) || !cJSON_IsNumber(ticket))
		return;
	enum hw_forgotten what = forget_here(a, id, strlen(id));
	char text[MESSAGE_MAX];
	struct hw_json j;
	begin(a, "answer", run, ticket->valuedouble, &j, text);
	hw_json_text(&j, "what", words[what]);
	end_and_send(a, from, &j);
	hw_app_schedule_turn(a);
}

static void take_answer(struct hw_app *a, const cJSON *message)
{
	const cJSON *ticket = cJSON_GetObjectItemCaseSensitive(message, "ticket");
	char run[RUN_TEXT];
	run_text(a, run);
	if (strcmp(text_of(message, "run"), run) != 0 || !cJSON_IsNumber(ticket) ||
	    !(ticket->valuedouble >= 0 && ticket->valuedouble < 9e15))
		return;
	for (size_t i = 0; i < N_WORDS; i++)
		if (strcmp(text_of(message, "what"), words[i]) == 0)
			hw_control_forgotten(a->control, (uint64_t)ticket->valuedouble, (enum hw_forgotten)i);
}

void hw_app_cluster_asked(struct hw_app *a, const char *text, size_t len)
{
	cJSON *message = hw_json_tree(text, len);
	bool asks = strcmp(text_of(message, "ask"), "forget") == 0,
	     answers = strcmp(text_of(message, "answer"), "forget") == 0;
	if ((asks || answers) && !hw_app_cluster_is_from_member(a, text_of(message, "from")))
		;
	else if (asks)
		take_request(a, message);
	else if (answers)
		take_answer(a, message);
	else
		hw_log(a->log, HW_LOG_DEBUG,
		       "nodes: a request of an unknown kind was ignored; check that all nodes run the same version: "
		       "%.*s",
		       (int)(len < 100 ? len : 100), text);
	cJSON_Delete(message);
}
