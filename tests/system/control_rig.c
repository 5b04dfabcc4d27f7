/* SPDX-License-Identifier: MIT */
#include "control_rig.h"

#include <check.h>
#include <string.h>

struct server s;
struct reply r;

void rig_set_up_blind(void)
{
	server_start(&s, false);
}

void rig_set_up(void)
{
	rig_set_up_blind();
	server_see(&s);
}

void rig_tear_down(void)
{
	reply_fini(&r);
	server_stop(&s);
}

void expect_error(int code)
{
	ck_assert_int_eq(r.code, code);
	ck_assert_msg(strstr(r.head, "Content-Type: application/json\r\n") != NULL, "%s", r.head);
	cJSON *json = cJSON_Parse(r.body);
	ck_assert_ptr_nonnull(cJSON_GetStringValue(cJSON_GetObjectItem(json, "error")));
	cJSON_Delete(json);
	reply_fini(&r);
}

void expect_keys(const cJSON *object, const char *keys)
{
	char got[512] = "";
	const cJSON *item;
	cJSON_ArrayForEach(item, object)
	{
		strcat(got, *got ? " " : "");
		strcat(got, item->string);
	}
	ck_assert_str_eq(got, keys);
}

double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(object, key);
	ck_assert_msg(cJSON_IsNumber(item), "%s", key);
	return item->valuedouble;
}

const char *text(const cJSON *object, const char *key)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
	ck_assert_msg(value != NULL, "%s", key);
	return value;
}
