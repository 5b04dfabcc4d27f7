/* SPDX-License-Identifier: MIT */
/* The last messages of a receiver, with the result of each. Internal to src/alert/send. */
#ifndef HW_ALERT_SEND_PAST_H
#define HW_ALERT_SEND_PAST_H

#include "alert/send/send.h"

struct hw_past_entry {
	uint64_t number; /* from 1 in this run */
	bool test;
	enum hw_send_result result;
	unsigned tries;
	int code;                  /* of the last try; -1: none */
	int64_t at_ms, ended_ms;   /* wall clock; ended_ms 0: not yet */
	char key[96], about[256];  /* about: the summary */
	char words[HW_SEND_WORDS]; /* of the last try */
};

struct hw_past {
	struct hw_past_entry *at; /* HW_SEND_PAST of them; owned */
	uint64_t last;
};

/* Returns 0 or -ENOMEM. */
int hw_past_init(struct hw_past *p);
void hw_past_fini(struct hw_past *p);
/* Returns the number of the new entry. */
uint64_t hw_past_add(struct hw_past *p, const char *key, const char *about, bool test, int64_t now_ms);
/* Returns an entry; NULL: it was overwritten, or never existed. */
struct hw_past_entry *hw_past_find(const struct hw_past *p, uint64_t number);
/* Writes the entries, the newest first, as the elements of an array that is open. */
void hw_past_show(const struct hw_past *p, struct hw_json *j);

#endif
