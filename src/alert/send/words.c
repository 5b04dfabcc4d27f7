/* SPDX-License-Identifier: MIT */
/* See words.h. */
#include "alert/send/words.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heartwheel/print.h"
#include "heartwheel/utf8.h"
#include "http/buffer.h"

const char *hw_words_number(uint64_t n, char buf[32])
{
	char digits[24];
	size_t len = hw_print(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

const char *hw_words_span(int64_t ms, char buf[48])
{
	static const struct {
		int64_t s;
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	int64_t s = ms / 1000;
	size_t i = 0;
	if (ms < 10000 && ms % 1000 != 0) {
		snprintf(buf, 48, "%lld.%lld s", (long long)s, (long long)(ms % 1000 / 100));
		return buf;
	}
	while (i < 3 && s < units[i].s)
		i++;
	int64_t rest = i < 3 ? s % units[i].s / units[i + 1].s : 0;
	size_t n = hw_print(buf, 48, "%lld %s", (long long)(s / units[i].s), units[i].name);
	if (rest > 0)
		snprintf(buf + n, 48 - n, " %lld %s", (long long)rest, units[i + 1].name);
	return buf;
}

char *hw_words_shown(const char *text)
{
	size_t cap = 6 * strlen(text) + 1;
	char *out = malloc(cap);
	if (out)
		hw_utf8_show(text, strlen(text), out, cap);
	return out;
}

char *hw_words_time(int64_t wall_ms)
{
	char text[64];
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;
	if (!localtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm) == 0)
		snprintf(text, sizeof(text), "%lld", (long long)t);
	return strdup(text);
}

/* --- a list ------------------------------------------------------------------- */

int hw_lines_init(struct hw_lines *l)
{
	*l = (struct hw_lines){.text = evbuffer_new()};
	return l->text ? 0 : -ENOMEM;
}

void hw_lines_fini(struct hw_lines *l)
{
	if (l->text)
		evbuffer_free(l->text);
	*l = (struct hw_lines){0};
}

void hw_lines_add(struct hw_lines *l, const char *what)
{
	size_t bytes = evbuffer_get_length(l->text) + strlen(what) + 1;
	if (l->left_out || l->n == HW_LINES_MAX || bytes > HW_LINES_BYTES ||
	    evbuffer_add_printf(l->text, "%s\n", what) < 0)
		l->left_out++;
	else
		l->n++;
}

char *hw_lines_take(struct hw_lines *l)
{
	char count[32];
	if (l->left_out)
		evbuffer_add_printf(l->text, "... and %s more\n", hw_words_number(l->left_out, count));
	size_t len = evbuffer_get_length(l->text);
	char *text = hw_buffer_text(l->text);
	if (text)
		text[len > 0 ? len - 1 : 0] = '\0'; /* without the last line end */
	evbuffer_drain(l->text, evbuffer_get_length(l->text));
	*l = (struct hw_lines){.text = l->text};
	return text;
}
