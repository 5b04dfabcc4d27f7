/* SPDX-License-Identifier: MIT */
/* See sim_metrics.h. */
#include "sim_metrics.h"

#include <inttypes.h>
#include <stdlib.h>

void sim_metrics_fini(struct sim_metrics *m)
{
	free(m->detection.s);
	free(m->delay.s);
	free(m->mistake.s);
}

void sim_samples_add(struct sim_samples *x, double s)
{
	if (x->n == x->cap) {
		x->cap = x->cap ? 2 * x->cap : 64;
		x->s = realloc(x->s, x->cap * sizeof(*x->s));
		if (!x->s) {
			fprintf(stderr, "simulate: out of memory\n");
			exit(2);
		}
	}
	x->s[x->n++] = s;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double sim_samples_quantile(struct sim_samples *x, double q)
{
	if (x->n == 0)
		return 0;
	qsort(x->s, x->n, sizeof(*x->s), compare);
	return x->s[(size_t)(q * (double)(x->n - 1) + 0.5)];
}

double sim_samples_mean(const struct sim_samples *x)
{
	double sum = 0;
	for (size_t i = 0; i < x->n; i++)
		sum += x->s[i];
	return x->n ? sum / (double)x->n : 0;
}

static void line(FILE *out, const char *name, struct sim_samples *x)
{
	fprintf(out, "  %-28s n %zu  mean %.3f  p50 %.3f  p99 %.3f  max %.3f s\n", name, x->n, sim_samples_mean(x),
	        sim_samples_quantile(x, 0.5), sim_samples_quantile(x, 0.99), sim_samples_quantile(x, 1));
}

void sim_metrics_print(struct sim_metrics *m, FILE *out)
{
	fprintf(out, "failure detector, over %.0f device hours, %" PRIu64 " heartbeats, %" PRIu64 " deaths:\n",
	        m->alive_s / 3600, m->beats, m->deaths);
	line(out, "detection time", &m->detection);
	line(out, "delay past the deadline", &m->delay);
	fprintf(out, "  %-28s %.6f an hour and device (%" PRIu64 ")\n", "mistake rate",
	        m->alive_s > 0 ? (double)m->mistakes / (m->alive_s / 3600) : 0, m->mistakes);
	line(out, "mistake duration", &m->mistake);
	fprintf(out, "  %-28s %.6f\n", "query accuracy probability", m->alive_s > 0 ? m->right_s / m->alive_s : 1);
}
