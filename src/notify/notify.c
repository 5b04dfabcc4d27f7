/* SPDX-License-Identifier: MIT */
/*
 * The notifier: see notify.h. Invariant: a target that has a message and is not sending has its retry timer set, or
 * sends its next message in this turn.
 */
#include "notify/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "notify/carrier.h"
#include "notify/note.h"
#include "notify/notification.h"

#define BACK_OFF 4

static const unsigned tries_of[] = {[HW_NOTIFIER_EXEC] = 1, [HW_NOTIFIER_WEBHOOK] = 3};

/* The text values of the configuration. */
enum { NODE_ID, TITLE, TEXT, MAIL_FROM, MAIL_TO, EXEC, WEBHOOK, WORDS };

struct target {
	struct hw_notifier *notifier;
	enum hw_notifier_kind kind;
	const char *address; /* path or URL, one of the words; NULL: none */
	enum hw_notify_template as;
	struct event *retry;
	struct hw_note *queue[HW_NOTIFIER_QUEUE]; /* the first is being delivered */
	unsigned n, tries;                        /* tries: failed tries of the first */
	bool busy;
	bool unarmed; /* event_add of `retry` failed: hw_notifier_tick() repeats it */
};

struct hw_notifier {
	struct event_base *base;
	hw_notifier_trouble *trouble;
	void *arg;
	char *word[WORDS]; /* owned */
	int64_t interval_ms, timeout_ms, retry_ms, blind_after_ms;
	const struct hw_notifier_source *source;
	void *of; /* owned */
	struct event *seal;
	bool unarmed; /* event_add of `seal` failed: hw_notifier_tick() repeats it */
	struct target target[HW_NOTIFIER_KINDS];
	struct hw_exec *program; /* created at the first use, like webhook */
	struct hw_webhook *webhook;
	struct hw_notifier_stats stats;
	uint64_t last; /* number of the last message; its entry is past[last % HW_NOTIFIER_PAST] */
	struct hw_notifier_entry past[HW_NOTIFIER_PAST];
};

const char *hw_notifier_kind_name(enum hw_notifier_kind k)
{
	return k == HW_NOTIFIER_EXEC ? "exec" : "webhook";
}

/* --- the past ----------------------------------------------------------------- */

const char *hw_notifier_result_name(enum hw_notifier_result r)
{
	static const char *const names[] = {"waiting", "sent", "failed", "dropped"};
	return names[r];
}

static int64_t wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Copies `text`. If it does not fit, cuts it after a whole character. */
static void keep_text(char *out, size_t cap, const char *text)
{
	size_t len = strlen(text);
	if (len >= cap) {
		len = cap - 4;
		while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(out, text, len);
	strcpy(out + len, text[len] ? "..." : "");
}

static uint64_t remember(struct hw_notifier *n, enum hw_notifier_kind kind, const char *about, bool test)
{
	struct hw_notifier_entry *e = &n->past[++n->last % HW_NOTIFIER_PAST];
	*e = (struct hw_notifier_entry){
		.number = n->last, .kind = kind, .test = test, .code = HW_CARRIER_NO_CODE, .at_ms = wall_ms()};
	keep_text(e->about, sizeof(e->about), about);
	return n->last;
}

/* NULL: the entry was overwritten. */
static struct hw_notifier_entry *entry_of(struct hw_notifier *n, uint64_t number)
{
	struct hw_notifier_entry *e = &n->past[number % HW_NOTIFIER_PAST];
	return number > 0 && e->number == number ? e : NULL;
}

uint64_t hw_notifier_last(const struct hw_notifier *n)
{
	return n->last;
}

const struct hw_notifier_entry *hw_notifier_entry(const struct hw_notifier *n, uint64_t number)
{
	return entry_of((struct hw_notifier *)(uintptr_t)n, number); /* the caller only reads */
}

/* Records the result of a try, or of a message that is dropped without a try. */
static void note_result(struct hw_notifier *n, uint64_t number, enum hw_notifier_result r, int code, const char *why)
{
	struct hw_notifier_entry *e = entry_of(n, number);
	if (!e)
		return;
	e->result = r;
	e->tries += r != HW_NOTIFIER_DROPPED;
	e->code = code;
	if (r != HW_NOTIFIER_WAITS)
		e->ended_ms = wall_ms();
	keep_text(e->why, sizeof(e->why), why ? why : "");
}

/* --- targets ------------------------------------------------------------------ */

static void pop(struct target *t, unsigned at)
{
	hw_note_free(t->queue[at]);
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
	return t->kind == HW_NOTIFIER_EXEC ? hw_exec_start(n->program, t->address, note, NULL, n->timeout_ms)
	                                   : hw_webhook_start(n->webhook, t->address, note, n->timeout_ms);
}

/* The target's first message did not arrive. Schedules a retry, or gives up. */
static void failed(struct target *t, int code, const char *why)
{
	struct hw_notifier *n = t->notifier;
	const struct hw_note *note = t->queue[0];
	bool again = ++t->tries < tries_of[t->kind] && t->address && !note->once;
	note_result(n, note->number, again ? HW_NOTIFIER_WAITS : HW_NOTIFIER_FAILED, code, why);
	if (again) {
		int64_t wait_ms = n->retry_ms;
		for (unsigned k = 1; k < t->tries; k++)
			wait_ms *= BACK_OFF;
		struct timeval tv = {wait_ms / 1000, wait_ms % 1000 * 1000};
		n->stats.retried[t->kind]++;
		t->unarmed = evtimer_add(t->retry, &tv) != 0;
		return;
	}
	char text[512];
	snprintf(text, sizeof(text), "a message was dropped after %u %s: %s", t->tries, t->tries == 1 ? "try" : "tries",
	         why);
	n->stats.failed[t->kind]++;
	pop(t, 0);
	n->trouble(n->arg, t->kind, text);
}

/* Starts the next message if the target is idle. */
static void go_on(struct target *t)
{
	while (t->n > 0 && !t->busy && !t->unarmed && !evtimer_pending(t->retry, NULL)) {
		int rc = start(t);
		t->busy = rc == 0;
		if (rc)
			failed(t, HW_CARRIER_NO_CODE, strerror(-rc));
	}
}

static void on_done(void *arg, int code, const char *why)
{
	struct target *t = arg;
	t->busy = false;
	if (why) {
		failed(t, code, why);
	} else {
		note_result(t->notifier, t->queue[0]->number, HW_NOTIFIER_SENT, code, NULL);
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

static void drop(struct target *t, unsigned at, const char *why)
{
	t->notifier->stats.dropped++;
	note_result(t->notifier, t->queue[at]->number, HW_NOTIFIER_DROPPED, HW_CARRIER_NO_CODE, why);
	pop(t, at);
}

/* Inserts a message at position `at` and owns it. The queue must have room. */
static void insert(struct target *t, unsigned at, struct hw_note *note)
{
	memmove(t->queue + at + 1, t->queue + at, (t->n - at) * sizeof(*t->queue));
	t->queue[at] = note;
	t->notifier->stats.waiting[t->kind] = ++t->n;
	go_on(t);
}

static void put(struct target *t, struct hw_note *note)
{
	if (t->n == HW_NOTIFIER_QUEUE) {
		drop(t, 1, "the queue was full"); /* the first one is being delivered */
		t->notifier->trouble(t->notifier->arg, t->kind, "the queue is full: the oldest message was dropped");
	}
	insert(t, t->n, note);
}

/* Makes the message for this target, and its entry in the past. NULL without memory. */
static struct hw_note *note_for(struct target *t, const struct hw_notification *m, bool test)
{
	struct hw_notifier *n = t->notifier;
	struct hw_style style = {t->as, n->word[TITLE], n->word[TEXT], n->word[MAIL_FROM], n->word[MAIL_TO], NULL};
	struct hw_note *note = hw_note_new(&style, &m->fields, m->json, wall_ms());
	if (!note)
		return NULL;
	note->once = test;
	note->number = remember(n, t->kind, m->fields.of[HW_NOTIFY_SUMMARY], test);
	return note;
}

/* --- gathering ---------------------------------------------------------------- */

static bool wanted(const struct hw_notifier *n)
{
	return n->target[HW_NOTIFIER_EXEC].address || n->target[HW_NOTIFIER_WEBHOOK].address;
}

void hw_notifier_flush(struct hw_notifier *n)
{
	evtimer_del(n->seal);
	if (!n->source->any(n->of))
		return;
	struct hw_notification m;
	bool made = n->source->seal(n->of, n->word[NODE_ID], &m) == 0;
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		if (!n->target[k].address)
			continue;
		struct hw_note *note = made ? note_for(&n->target[k], &m, false) : NULL;
		if (note)
			put(&n->target[k], note);
		else
			n->stats.dropped++;
	}
	hw_notification_fini(&m);
}

int hw_notifier_test(struct hw_notifier *n, enum hw_notifier_kind kind, uint64_t *number)
{
	struct target *t = &n->target[kind];
	struct hw_notification m;
	if (!t->address || !n->source->test)
		return -ENOENT;
	if (t->n == HW_NOTIFIER_QUEUE)
		return -EBUSY;
	struct hw_note *note = NULL;
	if (n->source->test(n->of, n->word[NODE_ID], wall_ms(), &m) == 0)
		note = note_for(t, &m, true);
	hw_notification_fini(&m);
	if (!note)
		return -ENOMEM;
	*number = note->number;
	insert(t, t->n > 0 ? 1 : 0, note);
	return 0;
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

void *hw_notifier_gathers(struct hw_notifier *n)
{
	return wanted(n) ? n->of : NULL;
}

int64_t hw_notifier_blind_after_ms(const struct hw_notifier *n)
{
	return n->blind_after_ms;
}

void hw_notifier_gathered(struct hw_notifier *n)
{
	seal_later(n);
}

/* --- making, changing and ending ---------------------------------------------- */

struct hw_notifier *hw_notifier_new(struct event_base *base, const struct hw_notifier_source *source, void *of,
                                    hw_notifier_trouble *trouble, void *arg)
{
	struct hw_notifier *n = of ? calloc(1, sizeof(*n)) : NULL;
	if (!n) {
		if (of)
			source->free(of);
		return NULL;
	}
	n->source = source;
	n->of = of;
	n->base = base;
	n->trouble = trouble;
	n->arg = arg;
	bool whole = (n->seal = evtimer_new(base, on_seal, n)) != NULL;
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

static void free_words(char *word[WORDS])
{
	for (int k = 0; k < WORDS; k++)
		free(word[k]);
}

void hw_notifier_free(struct hw_notifier *n)
{
	if (!n)
		return;
	hw_exec_free(n->program);
	hw_webhook_free(n->webhook);
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		while (n->target[k].n > 0)
			pop(&n->target[k], n->target[k].n - 1);
		if (n->target[k].retry)
			event_free(n->target[k].retry);
	}
	if (n->seal)
		event_free(n->seal);
	n->source->free(n->of);
	free_words(n->word);
	free(n);
}

/* Empties the queue of a removed target. The message that is being sent may still arrive; the others are dropped. */
static void empty(struct target *t)
{
	evtimer_del(t->retry);
	while (t->n > t->busy)
		drop(t, t->n - 1, "its target was removed from the configuration");
}

static int make_carriers(struct hw_notifier *n, const struct hw_notifier_conf *conf)
{
	if (conf->exec[0] && !n->program)
		n->program = hw_exec_new(n->base, on_done, &n->target[HW_NOTIFIER_EXEC]);
	if (conf->webhook[0] && !n->webhook)
		n->webhook = hw_webhook_new(n->base, on_done, &n->target[HW_NOTIFIER_WEBHOOK]);
	return (conf->exec[0] && !n->program) || (conf->webhook[0] && !n->webhook) ? -ENOMEM : 0;
}

/* Returns 0, or -ENOMEM with nothing in `word`. */
static int copy_words(char *word[WORDS], const struct hw_notifier_conf *c)
{
	const char *const from[WORDS] = {
		[NODE_ID] = c->node_id, [TITLE] = c->title, [TEXT] = c->text,      [MAIL_FROM] = c->mail_from,
		[MAIL_TO] = c->mail_to, [EXEC] = c->exec,   [WEBHOOK] = c->webhook};
	bool whole = true;
	for (int k = 0; k < WORDS; k++)
		whole &= (word[k] = strdup(from[k])) != NULL;
	if (!whole)
		free_words(word);
	return whole ? 0 : -ENOMEM;
}

int hw_notifier_configure(struct hw_notifier *n, const struct hw_notifier_conf *conf)
{
	static const int address[] = {[HW_NOTIFIER_EXEC] = EXEC, [HW_NOTIFIER_WEBHOOK] = WEBHOOK};
	char *word[WORDS];
	if (make_carriers(n, conf) || copy_words(word, conf))
		return -ENOMEM;
	free_words(n->word);
	memcpy(n->word, word, sizeof(word));
	for (int k = 0; k < HW_NOTIFIER_KINDS; k++) {
		struct target *t = &n->target[k];
		t->as = conf->as[k];
		t->address = *word[address[k]] ? word[address[k]] : NULL;
		if (!t->address)
			empty(t);
	}
	n->interval_ms = conf->interval_ms;
	n->blind_after_ms = conf->blind_after_ms;
	n->timeout_ms = conf->timeout_ms;
	n->retry_ms = conf->retry_ms;
	if (!wanted(n))
		hw_notifier_flush(n); /* no target: discards the gathered events */
	return 0;
}

bool hw_notifier_idle(const struct hw_notifier *n)
{
	return !n->source->any(n->of) && n->target[HW_NOTIFIER_EXEC].n == 0 && n->target[HW_NOTIFIER_WEBHOOK].n == 0;
}

const struct hw_notifier_stats *hw_notifier_stats(const struct hw_notifier *n)
{
	return &n->stats;
}
