/* SPDX-License-Identifier: MIT */
/*
 * How good the failure detector was, in the words of Chen, Toueg, Aguilera, "On the quality of service of failure
 * detectors", IEEE ToC 51(5), 2002: detection time (from a death until the device is called offline), mistake rate (how
 * often a working device is called offline), mistake duration, query accuracy (the share of a device's life in which it
 * is called online).
 */
#ifndef SIM_METRICS_H
#define SIM_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sim_samples {
	double *s; /* owned: seconds */
	size_t n, cap;
};

struct sim_metrics {
	struct sim_samples detection; /* of deaths that were found, from the death on */
	struct sim_samples delay;     /* ... from the deadline on, as the core reports it */
	struct sim_samples mistake;   /* how long each lasted */
	uint64_t mistakes, deaths, transitions;
	double alive_s, right_s; /* seconds of life after the first heartbeat; alive_s: all; right_s: those in which
	                          * the device was online */
	uint64_t beats;
};

void sim_metrics_fini(struct sim_metrics *m);
void sim_samples_add(struct sim_samples *x, double s);
/* The q-th quantile (0 .. 1), 0 if there are none. */
double sim_samples_quantile(struct sim_samples *x, double q);
double sim_samples_mean(const struct sim_samples *x);
void sim_metrics_print(struct sim_metrics *m, FILE *out);

#endif
