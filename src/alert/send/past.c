/* SPDX-License-Identifier: MIT */
/* See past.h. */
#include "alert/send/past.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/utf8.h"
#include "http/json.h"

const char *hw_send_result_name(enum hw_send_result r)
{
	static const char *const names[] = {"waiting", "sent", "given_up", "dropped"};
	return r < HW_SEND_RESULTS ? names[r] : "?";
}

int hw_past_init(struct hw_past *p)
{
	p->at = calloc(HW_SEND_PAST, sizeof(*p->at));
	return p->at ? 0 : -ENOMEM;
}

void hw_past_fini(struct hw_past *p)
{
	free(p->at);
	*p = (struct hw_past){0};
}

uint64_t hw_past_add(struct hw_past *p, const char *key, const char *about, bool test, int64_t now_ms)
{
	struct hw_past_entry *e = &p->at[++p->last % HW_SEND_PAST];
	*e = (struct hw_past_entry){.number = p->last, .test = test, .code = -1, .at_ms = now_ms};
	snprintf(e->key, sizeof(e->key), "%s", key);
	hw_utf8_show(about, strlen(about), e->about, sizeof(e->about));
	return p->last;
}

struct hw_past_entry *hw_past_find(const struct hw_past *p, uint64_t number)
{
	struct hw_past_entry *e = &p->at[number % HW_SEND_PAST];
	return number > 0 && e->number == number ? e : NULL;
}

static void show_entry(struct hw_json *j, const struct hw_past_entry *e)
{
	hw_json_open(j, '{');
	hw_json_uint(j, "number", e->number);
	hw_json_text(j, "message", e->key);
	hw_json_int(j, "time_ms", e->at_ms);
	hw_json_text(j, "about", e->about);
	hw_json_bool(j, "test", e->test);
	hw_json_text(j, "result", hw_send_result_name(e->result));
	hw_json_uint(j, "tries", e->tries);
	if (e->code >= 0)
		hw_json_int(j, "code", e->code);
	hw_json_text(j, "words", e->words[0] ? e->words : NULL);
	if (e->ended_ms)
		hw_json_int(j, "ended_ms", e->ended_ms);
	hw_json_close(j, '}');
}

void hw_past_show(const struct hw_past *p, struct hw_json *j)
{
	const struct hw_past_entry *e;
	for (uint64_t k = p->last; k > 0 && (e = hw_past_find(p, k)); k--)
		show_entry(j, e);
}
