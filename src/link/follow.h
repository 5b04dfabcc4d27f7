/* SPDX-License-Identifier: MIT */
/*
 * Finds the master by asking Sentinels. They are asked one after the other, each for at most HW_FOLLOW_ASK_MS, until
 * one names a master. The connection to this Sentinel stays subscribed to +switch-master. Every HW_FOLLOW_AGAIN_MS the
 * next Sentinel is asked, and its connection then serves the subscription. So a Sentinel that is cut off or hangs is
 * used only for a limited time.
 *
 * Cost: one connection, and a second one while a Sentinel is asked.
 */
#ifndef HW_LINK_FOLLOW_H
#define HW_LINK_FOLLOW_H

#include "conf/hosts.h"

#define HW_FOLLOW_ASK_MS   500
#define HW_FOLLOW_RETRY_MS 500
#define HW_FOLLOW_AGAIN_MS 10000

struct event_base;
struct hw_follow;

/* No callback is called from within a function below. */
struct hw_follow_ops {
	/* Called when a Sentinel names a master: in answer to hw_follow_ask(), or because the master is another one
	 * now. `by`: that Sentinel. */
	void (*on_master)(void *arg, const struct hw_host *master, const struct hw_host *by);
	/* Called if no Sentinel names a master, as the answer to hw_follow_ask(). `why`: the fault of the last
	 * Sentinel that was asked. */
	void (*on_none)(void *arg, const char *why);
	/* Called when a Sentinel does not answer as it should. `why` contains the fault and the remedy. Called again
	 * for this Sentinel only after a good answer, or if the fault changes. */
	void (*on_trouble)(void *arg, const char *why);
};

/* Creates a follower of Sentinels. `sentinels`: a list for hw_hosts_parse(). `master`: the name of the master there.
 * `master` and `ops` are borrowed. No Sentinel is asked before hw_follow_ask(). Returns NULL if there is no memory. */
struct hw_follow *hw_follow_new(struct event_base *base, const char *sentinels, const char *master,
                                const struct hw_follow_ops *ops, void *arg);
/* Must not be called from a callback. */
void hw_follow_free(struct hw_follow *f);

/* Asks for a master. on_master() or on_none() follows once. If on_master() is called earlier for another reason,
 * that call counts as the answer. Begins with the Sentinel that stands in the list after the one that was asked
 * last. */
void hw_follow_ask(struct hw_follow *f);
/* Called each second: runs a timer for which there was no memory before. */
void hw_follow_tick(struct hw_follow *f);

#endif
