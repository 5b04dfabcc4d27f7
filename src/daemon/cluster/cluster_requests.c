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
#include "heartwheel/registry.h"

static const char *const words[] = {
	[HW_FORGOTTEN] = "forgotten", [HW_FORGOTTEN_UNKNOWN] = "unknown", [HW_FORGOTTEN_UNOWNED] = "unowned"};
#define N_WORDS (sizeof(words) / sizeof(*words))

#define RUN_TEXT 17 /* bytes of a run id as text, with the NUL */

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

/* Sends a JSON object, and frees `j`. Returns 0, or -errno if it is not published. */
static int send_json(struct hw_app *a, const char *node, cJSON *j)
{
	char *text = cJSON_PrintUnformatted(j);
	int rc = text ? hw_app_cluster_send(a, node, text, strlen(text)) : -ENOMEM;
	cJSON_free(text);
	cJSON_Delete(j);
	return rc;
}

/* --- sending requests */

static int ask_to_forget(struct hw_app *a, const char *owner, uint64_t ticket, const char *id, size_t len)
{
	char run[RUN_TEXT], name[HW_ID_MAX + 1];
	cJSON *j = cJSON_CreateObject();
	run_text(a, run);
	snprintf(name, sizeof(name), "%.*s", (int)len, id);
	cJSON_AddStringToObject(j, "ask", "forget");
	cJSON_AddStringToObject(j, "from", a->start->node_id);
	cJSON_AddStringToObject(j, "run", run);
	cJSON_AddNumberToObject(j, "ticket", (double)ticket);
	cJSON_AddStringToObject(j, "id", name);
	return send_json(a, owner, j);
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
	cJSON *j = cJSON_CreateObject();
	cJSON_AddStringToObject(j, "answer", "forget");
	cJSON_AddStringToObject(j, "from", a->start->node_id);
	cJSON_AddStringToObject(j, "run", run);
	cJSON_AddNumberToObject(j, "ticket", ticket->valuedouble);
	cJSON_AddStringToObject(j, "what", words[what]);
	send_json(a, from, j);
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
		hw_log(a->log, HW_LOG_DEBUG, "nodes: a request of an unknown kind was ignored: %.*s",
		       (int)(len < 100 ? len : 100), text);
	cJSON_Delete(message);
}
