/* SPDX-License-Identifier: MIT */
/* What the simulated fleet has seen: numbers of messages and transitions, and how late each death was reported. */
#ifndef HW_TEST_FLEET_ACCOUNT_H
#define HW_TEST_FLEET_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "fleet.h"

/* All zero at first. */
struct fleet_account {
	double *delays_ms; /* of each death by timeout */
	size_t n, cap;
	uint64_t beats, transitions, early; /* early: deaths that were reported before the timeout */
	unsigned online, offline;           /* devices that were seen so at least once */
};

/* A death by timeout was reported `late_ms` after the timeout; below 0: before it. */
void fleet_account_death(struct fleet_account *a, double late_ms);
/* Prints the account, and sorts the delays for that. The exit status: 0 if what the options expect was seen. */
int fleet_account_tell(struct fleet_account *a, const struct fleet_options *o);
void fleet_account_fini(struct fleet_account *a);

#endif
