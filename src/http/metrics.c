/* SPDX-License-Identifier: MIT */
/*
 * The Prometheus text format. The caller writes the samples of a family directly after hw_metric_family(). Cost: one
 * evbuffer_add_printf() for each line. If there is no memory, lines are missing, until Prometheus scrapes again.
 */
#include "http/metrics.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/payload.h"

#define PREFIX "heartwheel_"

/* Escapes backslash and line feed for a HELP text. With `quote`, also escapes the quote, as in the value of a label. */
static void add_escaped(struct evbuffer *b, const char *text, bool quote)
{
	const char *special = quote ? "\\\n\"" : "\\\n";
	while (*text) {
		size_t plain = strcspn(text, special);
		evbuffer_add(b, text, plain);
		text += plain;
		if (!*text)
			break;
		evbuffer_add(b, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\", 2);
		text++;
	}
}

static void add_value(struct evbuffer *b, double v)
{
	char text[32];
	if (isnan(v))
		evbuffer_add_printf(b, " NaN\n");
	else if (isinf(v))
		evbuffer_add_printf(b, v > 0 ? " +Inf\n" : " -Inf\n");
	else {
		int n = hw_number_text(v, text, sizeof(text));
		evbuffer_add_printf(b, " %.*s\n", n, text);
	}
}

static void add_labels(struct evbuffer *b, const char *const *labels)
{
	for (size_t i = 0; labels[i]; i += 2) {
		evbuffer_add_printf(b, "%c%s=\"", i == 0 ? '{' : ',', labels[i]);
		add_escaped(b, labels[i + 1], true);
		evbuffer_add(b, "\"", 1);
	}
	if (labels[0])
		evbuffer_add(b, "}", 1);
}

void hw_metric_family(struct evbuffer *b, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(b, "# HELP " PREFIX "%s ", name);
	add_escaped(b, help, false);
	evbuffer_add_printf(b, "\n# TYPE " PREFIX "%s %s\n", name, type);
}

void hw_metric_labelled(struct evbuffer *b, const char *name, const char *key, const char *label, double value)
{
	hw_metric_sample(b, name, (const char *const[]){key, label, NULL}, value);
}

void hw_metric_one(struct evbuffer *b, const char *name, const char *type, const char *help, double value)
{
	hw_metric_family(b, name, type, help);
	hw_metric_sample(b, name, NULL, value);
}

void hw_metric_whole(struct evbuffer *b, const char *name, const char *type, const char *help, double value)
{
	evbuffer_add_printf(b, "# HELP %s ", name);
	add_escaped(b, help, false);
	evbuffer_add_printf(b, "\n# TYPE %s %s\n%s", name, type, name);
	add_value(b, value);
}

void hw_metric_sample(struct evbuffer *b, const char *name, const char *const *labels, double value)
{
	evbuffer_add_printf(b, PREFIX "%s", name);
	if (labels)
		add_labels(b, labels);
	add_value(b, value);
}

void hw_histogram_add(struct hw_histogram *h, double seconds)
{
	size_t i = 0;
	while (i < h->n && seconds > h->bounds[i])
		i++;
	h->count[i]++;
	h->sum += seconds;
}

void hw_metric_histogram(struct evbuffer *b, const char *name, const char *help, const struct hw_histogram *h)
{
	uint64_t below = 0;
	hw_metric_family(b, name, "histogram", help);
	for (size_t i = 0; i < h->n; i++) {
		char bound[32];
		int n = hw_number_text(h->bounds[i], bound, sizeof(bound));
		below += h->count[i];
		evbuffer_add_printf(b, PREFIX "%s_bucket{le=\"%.*s\"} %" PRIu64 "\n", name, n, bound, below);
	}
	below += h->count[h->n];
	evbuffer_add_printf(b, PREFIX "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, below);
	evbuffer_add_printf(b, PREFIX "%s_sum", name);
	add_value(b, h->sum);
	evbuffer_add_printf(b, PREFIX "%s_count %" PRIu64 "\n", name, below);
}
