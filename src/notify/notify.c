/* SPDX-License-Identifier: MIT */
/*
 * The notifier: see notify.h. Invariant: a target that has a message and is not busy has its retry timer set, or is
 * about to be given the next one in this turn.
 */
#include "notify/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notify/carrier.h"
#include "notify/gather.h"

#define BACK_OFF 4

static const unsigned tries_of[] = {[HW_NOTIFIER_EXEC] = 1, [HW_NOTIFIER_WEBHOOK] = 3};

struct target {
	struct hw_notifier *notifier;
	enum hw_notifier_kind kind;
	char *address; /* path or URL; NULL: none */
	struct event *retry;
	struct hw_note *queue[HW_NOTIFIER_QUEUE]; /* the first is being tried */
	unsigned n, tries;                        /* tries: of the first that have failed */
	bool busy;
	bool unarmed; /* `retry` could not be armed: the next hw_notifier_tick() tries again */
};

struct hw_notifier {
	struct event_base *base;
	hw_notifier_trouble *trouble;
	void *arg;
	char *node_id;
	int64_t interval_ms, timeout_ms, retry_ms;
	struct hw_gather gather;
	struct event *seal;
	bool unarmed; /* `seal` could not be armed: the next hw_notifier_tick() does it */
	struct target target[HW_NOTIFIER_KINDS];
	struct hw_program *program; /* made when first needed, as is the other */
	struct hw_webhook *webhook;
	struct hw_notifier_stats stats;
};

const char *hw_notifier_kind_name(enum hw_notifier_kind k)
{
	return k == HW_NOTIFIER_EXEC ? "exec" : "webhook";
}

/* --- targets ------------------------------------------------------------------ */

static void pop(struct target *t, unsigned at)
{
	hw_note_unref(t->queue[at]);
	t->n--;
	memmove(t->queue + at, t->queue + at + 1, (t->n - at) * sizeof(*t->queue));
	t->notifier->stats.waiting[t->kind] = t->n;
	if (at == 0)
		t->tries = 0;
}

static int start(struct target *t)
{
	struct hw_notifier *n = t->notifier;
	const struct hw_note *note = t->queue[0];
	return t->kind == HW_NOTIFIER_EXEC
	               ? hw_program_start(n->program, t->address, note->text, note->len, n->timeout_ms)
	               : hw_webhook_start(n->webhook, t->address, note->text, note->len, n->timeout_ms);
}

/* The first message did not arrive: once more, or never. */
static void failed(struct target *t, const char *why)
{
	struct hw_notifier *n = t->notifier;
	if (++t->tries < tries_of[t->kind] && t->address) {
		int64_t wait_ms = n->retry_ms;
		for (unsigned k = 1; k < t->tries; k++)
			wait_ms *= BACK_OFF;
		struct timeval tv = {wait_ms / 1000, wait_ms % 1000 * 1000};
		n->stats.retried[t->kind]++;
		t->unarmed = evtimer_add(t->retry, &tv) != 0;
		return;
	}
	char text[512];
	snprintf(text, sizeof(text), "a message was given up after %u %s: %s", t->tries,
	         t->tries == 1 ? "try" : "tries", why);
	n->stats.failed[t->kind]++;
	pop(t, 0);
	n->trouble(n->arg, t->kind, text);
}

/* Gives it the next message if it is free. */
static void go_on(struct target *t)
{
	while (t->n > 0 && !t->busy && !t->unarmed && !evtimer_pending(t->retry, NULL)) {
		int rc = start(t);
		t->busy = rc == 0;
		if (rc)
			failed(t, strerror(-rc));
	}
}

static void on_done(void *arg, const char *why)
{
	struct target *t = arg;
	t->busy = false;
	if (why) {
		failed(t, why);
	} else {
		t->notifier->stats.sent[t->kind]++;
		pop(t, 0);
	}
	go_on(t);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	go_on(arg);
}

static void put(struct target *t, struct hw_note *note)
{
	if (t->n == HW_NOTIFIER_QUEUE) {
		t->notifier->stats.dropped++;
		pop(t, 1); /* the first is on its way, or being tried */
		t->notifier->trouble(t->notifier->arg, t->kind, "the queue is full: the oldest message was dropped");
	}
	note->refs++;
	t->queue[t->n++] = note;
	t->notifier->stats.waiting[t->kind] = t->n;
	go_on(t);
}

/* --- gathering ---------------------------------------------------------------- */

static bool wanted(const struct hw_notifier *n)
{
	return n->target[HW_NOTIFIER_EXEC].address || n->target[HW_NOTIFIER_WEBHOOK].address;
}

void hw_notifier_flush(struct hw_notifier *n)
{
	evtimer_del(n->seal);
	if (!n->gather.any)
		return;
	struct hw_note *note = hw_gather_seal(&n->gather, n->node_id);
	if (!note) {
		n->stats.dropped++;
		return;
	}
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++)
		if (n->target[k].address)
			put(&n->target[k], note);
	hw_note_unref(note);
}

static void on_seal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	hw_notifier_flush(arg);
}

static void seal_later(struct hw_notifier *n)
{
	struct timeval tv = {n->interval_ms / 1000, n->interval_ms % 1000 * 1000};
	if (!evtimer_pending(n->seal, NULL))
		n->unarmed = evtimer_add(n->seal, &tv) != 0;
}

void hw_notifier_tick(struct hw_notifier *n)
{
	if (n->unarmed)
		seal_later(n);
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		if (n->target[k].unarmed)
			event_active(n->target[k].retry, EV_TIMEOUT, 0);
		n->target[k].unarmed = false;
	}
}

void hw_notifier_transition(struct hw_notifier *n, struct hw_now now, const struct hw_transition *t)
{
	if (!wanted(n))
		return;
	hw_gather_transition(&n->gather, now, t);
	seal_later(n);
}

void hw_notifier_blind(struct hw_notifier *n, struct hw_now now, const struct hw_out *out)
{
	if (!wanted(n))
		return;
	hw_gather_blind(&n->gather, now, out);
	seal_later(n);
}

/* --- making, changing and ending ---------------------------------------------- */

struct hw_notifier *hw_notifier_new(struct event_base *base, const struct hw_monitor *m, hw_notifier_trouble *trouble,
                                    void *arg)
{
	struct hw_notifier *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->base = base;
	n->trouble = trouble;
	n->arg = arg;
	bool whole = hw_gather_init(&n->gather, m) == 0 && (n->seal = evtimer_new(base, on_seal, n)) != NULL;
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		struct target *t = &n->target[k];
		*t = (struct target){.notifier = n, .kind = (enum hw_notifier_kind)k};
		t->retry = evtimer_new(base, on_retry, t);
		whole &= t->retry != NULL;
	}
	if (whole)
		return n;
	hw_notifier_free(n);
	return NULL;
}

void hw_notifier_free(struct hw_notifier *n)
{
	if (!n)
		return;
	hw_program_free(n->program);
	hw_webhook_free(n->webhook);
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		while (n->target[k].n > 0)
			pop(&n->target[k], n->target[k].n - 1);
		if (n->target[k].retry)
			event_free(n->target[k].retry);
		free(n->target[k].address);
	}
	if (n->seal)
		event_free(n->seal);
	hw_gather_fini(&n->gather);
	free(n->node_id);
	free(n);
}

/* A target that is gone: what it carries at this moment may arrive, what waits never will. */
static void empty(struct target *t)
{
	evtimer_del(t->retry);
	while (t->n > t->busy) {
		t->notifier->stats.dropped++;
		pop(t, t->n - 1);
	}
}

static int make_carriers(struct hw_notifier *n, const struct hw_notifier_conf *conf)
{
	if (conf->exec[0] && !n->program)
		n->program = hw_program_new(n->base, on_done, &n->target[HW_NOTIFIER_EXEC]);
	if (conf->webhook[0] && !n->webhook)
		n->webhook = hw_webhook_new(n->base, on_done, &n->target[HW_NOTIFIER_WEBHOOK]);
	return (conf->exec[0] && !n->program) || (conf->webhook[0] && !n->webhook) ? -ENOMEM : 0;
}

int hw_notifier_configure(struct hw_notifier *n, const struct hw_notifier_conf *conf)
{
	const char *const address[] = {[HW_NOTIFIER_EXEC] = conf->exec, [HW_NOTIFIER_WEBHOOK] = conf->webhook};
	char *copy[HW_NOTIFIER_KINDS], *node_id = strdup(conf->node_id);
	bool whole = node_id && make_carriers(n, conf) == 0;
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		copy[k] = address[k][0] ? strdup(address[k]) : NULL;
		whole &= copy[k] || !address[k][0];
	}
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		struct target *t = &n->target[k];
		free(whole ? t->address : copy[k]);
		if (whole)
			t->address = copy[k];
		if (whole && !copy[k])
			empty(t);
	}
	free(whole ? n->node_id : node_id);
	if (!whole)
		return -ENOMEM;
	n->node_id = node_id;
	n->interval_ms = conf->interval_ms;
	n->timeout_ms = conf->timeout_ms;
	n->retry_ms = conf->retry_ms;
	if (!wanted(n))
		hw_notifier_flush(n); /* to nobody */
	return 0;
}

bool hw_notifier_idle(const struct hw_notifier *n)
{
	return !n->gather.any && n->target[HW_NOTIFIER_EXEC].n == 0 && n->target[HW_NOTIFIER_WEBHOOK].n == 0;
}

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n)
{
	return &n->stats;
}
