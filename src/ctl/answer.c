/* SPDX-License-Identifier: MIT */
/* Checks, parses and forwards answers, for all commands. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "heartwheel/json_writer.h"

int hw_failed(const struct hw_ctl *ctl, const char *format, ...)
{
	char line[2048];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fputs("heartwheelctl: ", stderr);
	hw_text_print(stderr, &ctl->screen, line);
	fputc('\n', stderr);
	return HW_EXIT_FAILED;
}

/* A byte that is not UTF-8 is refused: if the byte were replaced by U+FFFD, the request could name another device. */
char *hw_body_end(struct hw_json *body, const char **why)
{
	hw_json_close(body, '}');
	char *text = hw_json_end_alloc(body, NULL);
	if (text && !body->replaced)
		return text;
	*why = text ? "a text in the request is not UTF-8" : "out of memory";
	free(text);
	return NULL;
}

void hw_warn_if_lapsed(const struct hw_ctl *ctl)
{
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX];
	int64_t as_of_ms = hw_client_as_of_ms(ctl->client);
	if (as_of_ms > 0)
		hw_failed(ctl,
		          "this is as of %s, %s: the node has not reached Redis since, and other nodes may watch its "
		          "devices",
		          hw_text_clock(as_of_ms, clock), hw_text_ago(hw_wall_ms() - as_of_ms, span));
}

/* The other answers say it themselves. */
static bool is_of_devices(const char *path)
{
	return strncmp(path, "/v1/devices", 11) == 0 || strcmp(path, "/v1/groups") == 0;
}

int hw_ask(struct hw_ctl *ctl, const char *method, const char *path, long want, struct hw_answer *a)
{
	if (hw_client_ask(ctl->client, method, path, a) < 0)
		return hw_failed(ctl, "%s", hw_client_why(ctl->client));
	if (a->code == want && (a->json || want != 200 || hw_client_wants_text(ctl->client))) {
		if (a->as_of_ms > 0 && is_of_devices(path) && !ctl->warned) {
			ctl->warned = true;
			hw_warn_if_lapsed(ctl);
		}
		return 0;
	}
	const char *why = hw_member_text(a->json, "error");
	if (*why)
		hw_failed(ctl, "%s", why);
	else
		hw_failed(ctl, "%s answered %ld %s", hw_client_program(ctl->client), a->code,
		          a->code == want ? "with something that is not JSON" : "and did not say why");
	hw_answer_fini(a);
	return HW_EXIT_FAILED;
}

int hw_ask_path(struct hw_ctl *ctl, const char *method, struct hw_path *path, struct hw_answer *a)
{
	int rc = path->text ? hw_ask(ctl, method, path->text, 200, a) : hw_failed(ctl, "out of memory");
	hw_path_fini(path);
	return rc;
}

int hw_ask_and_show(struct hw_ctl *ctl, const char *path, bool json,
                    void (*show)(const struct hw_ctl *ctl, const cJSON *answer))
{
	struct hw_answer a;
	int rc = hw_ask(ctl, "GET", path, 200, &a);
	if (rc)
		return rc;
	if (json)
		rc = hw_print_json(ctl, a.json);
	else
		show(ctl, a.json);
	hw_answer_fini(&a);
	return rc;
}

int hw_need_group(struct hw_ctl *ctl, const char *group)
{
	struct hw_answer a;
	const cJSON *g, *meant = NULL;
	if (!group)
		return 0;
	int rc = hw_ask(ctl, "GET", "/v1/groups", 200, &a);
	if (rc)
		return rc;
	bool found = false;
	cJSON_ArrayForEach(g, cJSON_GetObjectItemCaseSensitive(a.json, "groups"))
	{
		const char *name = hw_member_text(g, "name");
		found |= strcmp(name, group) == 0;
		if (!meant && hw_text_may_mean(group, name))
			meant = g;
	}
	if (!found && meant)
		rc = hw_failed(ctl, "no such group: '%s'; did you mean '%s'?", group, hw_member_text(meant, "name"));
	else if (!found)
		rc = hw_failed(ctl, "no such group: '%s'; 'heartwheelctl groups' lists all groups", group);
	hw_answer_fini(&a);
	return rc;
}

struct hw_path hw_device_path(const char *id)
{
	struct hw_path path = {0};
	hw_path_add(&path, "/v1/devices/");
	hw_path_add_encoded(&path, id);
	return path;
}

const char *hw_member_text(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return text ? text : "";
}

int64_t hw_number_int(const cJSON *item, double factor)
{
	if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble * factor) < 9e15))
		return 0;
	return (int64_t)(item->valuedouble * factor);
}

int64_t hw_member_int(const cJSON *object, const char *key)
{
	return hw_number_int(cJSON_GetObjectItemCaseSensitive(object, key), 1);
}

bool hw_member_has(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return item && !cJSON_IsNull(item);
}

int hw_print_json(const struct hw_ctl *ctl, const cJSON *value)
{
	char *text = cJSON_PrintUnformatted(value);
	if (!text)
		return hw_failed(ctl, "out of memory");
	hw_text_print_json(stdout, NULL, text);
	fputc('\n', stdout);
	cJSON_free(text);
	return HW_EXIT_DONE;
}
