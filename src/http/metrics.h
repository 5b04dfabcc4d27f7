/* SPDX-License-Identifier: MIT */
/* Writes the Prometheus text format (version 0.0.4) into an evbuffer. Names are given without the prefix
 * `heartwheel_`. */
#ifndef HW_METRICS_H
#define HW_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct evbuffer;

/* Writes # HELP and # TYPE for the samples that follow. `type`: "counter", "gauge" or "histogram". */
void hw_metric_family(struct evbuffer *b, const char *name, const char *type, const char *help);
/* Writes a sample. `labels`: NULL, or pairs "key", "value", ... and a final NULL; values are escaped. */
void hw_metric_sample(struct evbuffer *b, const char *name, const char *const *labels, double value);
/* Writes a sample with a single label. */
void hw_metric_labelled(struct evbuffer *b, const char *name, const char *key, const char *label, double value);
/* Writes a family of one sample without labels. */
void hw_metric_one(struct evbuffer *b, const char *name, const char *type, const char *help, double value);

/* Like hw_metric_sample(), but `name` is the complete name: no prefix is added. */
void hw_metric_whole(struct evbuffer *b, const char *name, const char *type, const char *help, double value);

/* A histogram with fixed upper bounds in seconds. */
#define HW_HISTOGRAM_MAX 12
struct hw_histogram {
	const double *bounds;
	size_t n;
	uint64_t count[HW_HISTOGRAM_MAX + 1];
	double sum;
};
void hw_histogram_add(struct hw_histogram *h, double seconds);
/* Writes the family and its samples _bucket, _sum, _count. */
void hw_metric_histogram(struct evbuffer *b, const char *name, const char *help, const struct hw_histogram *h);

#endif
