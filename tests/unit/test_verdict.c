/* SPDX-License-Identifier: MIT */
/*
 * The verdict, against the evidence rule as it is written down: every state with every evidence there can be. The twin
 * is a list of sentences of which the first that fits counts; it knows nothing of how verdict.c is laid out.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "core/verdict.h"

enum { NO = 1, YES = 2, ANY = 3 };

#define PROVISIONAL (1u << HW_STATE_PROVISIONAL)
#define ONLINE      (1u << HW_STATE_ONLINE)
#define OFFLINE     (1u << HW_STATE_OFFLINE)
#define FORGOTTEN   (1u << HW_STATE_FORGOTTEN)
#define EVERY       (PROVISIONAL | ONLINE | OFFLINE | FORGOTTEN)

#define EVIDENCES 8192

/* What is not said to be NO or YES is ANY (0 as well). */
struct sentence {
	enum hw_verdict_event event;
	unsigned states;
	int goodbye, loading, heard, blind, delay, touched, outrun, by_key, key_lives, beats, deaf, unheard, late;
	int overdue, suspect, excused, too_few, orphaned;
	enum hw_act act;
	enum hw_reason reason;
};

static const struct sentence rule[] = {
	/* a sign of life */
	{HW_EVENT_LIFE, PROVISIONAL, .loading = YES, .act = HW_ACT_NONE},
	{HW_EVENT_LIFE, OFFLINE, .too_few = YES, .act = HW_ACT_COUNT},
	{HW_EVENT_LIFE, PROVISIONAL | OFFLINE | FORGOTTEN, .act = HW_ACT_ONLINE, .reason = HW_REASON_HEARTBEAT},
	{HW_EVENT_LIFE, ONLINE, .goodbye = YES, .by_key = NO, .act = HW_ACT_VOID},
	{HW_EVENT_LIFE, ONLINE, .act = HW_ACT_NONE},
	/* a goodbye */
	{HW_EVENT_GOODBYE, PROVISIONAL, .loading = YES, .act = HW_ACT_NONE},
	{HW_EVENT_GOODBYE, PROVISIONAL, .goodbye = YES, .heard = NO, .act = HW_ACT_OFFLINE, .reason = HW_REASON_WILL},
	{HW_EVENT_GOODBYE, PROVISIONAL, .act = HW_ACT_ONLINE, .reason = HW_REASON_HEARTBEAT},
	{HW_EVENT_GOODBYE, ONLINE, .blind = YES, .act = HW_ACT_VOID},
	{HW_EVENT_GOODBYE, ONLINE, .goodbye = YES, .act = HW_ACT_NONE},
	{HW_EVENT_GOODBYE, ONLINE, .delay = YES, .act = HW_ACT_HOLD},
	{HW_EVENT_GOODBYE, ONLINE, .act = HW_ACT_SUSPECT},
	{HW_EVENT_GOODBYE, OFFLINE, .act = HW_ACT_PUBLISH_STATUS},
	{HW_EVENT_GOODBYE, FORGOTTEN, .act = HW_ACT_OFFLINE, .reason = HW_REASON_WILL},
	/* its time has come */
	{HW_EVENT_DUE, OFFLINE, .act = HW_ACT_FORGOTTEN, .reason = HW_REASON_FORGET_AFTER},
	{HW_EVENT_DUE, ONLINE, .orphaned = YES, .act = HW_ACT_OFFLINE, .reason = HW_REASON_PARENT},
	{HW_EVENT_DUE, ONLINE, .goodbye = NO, .by_key = YES, .act = HW_ACT_ASK_KEY},
	{HW_EVENT_DUE, ONLINE, .deaf = YES, .act = HW_ACT_REST},
	{HW_EVENT_DUE, ONLINE, .goodbye = YES, .act = HW_ACT_SUSPECT},
	{HW_EVENT_DUE, ONLINE, .late = YES, .act = HW_ACT_SUSPECT},
	{HW_EVENT_DUE, ONLINE, .act = HW_ACT_REARM},
	/* its barriers are back */
	{HW_EVENT_PROVEN, ONLINE, .deaf = YES, .act = HW_ACT_REST},
	{HW_EVENT_PROVEN, ONLINE, .goodbye = YES, .touched = NO, .key_lives = NO, .unheard = YES, .act = HW_ACT_WAIT},
	{HW_EVENT_PROVEN, ONLINE, .goodbye = YES, .touched = NO, .key_lives = NO, .act = HW_ACT_OFFLINE,
         .reason = HW_REASON_WILL},
	{HW_EVENT_PROVEN, ONLINE, .goodbye = YES, .act = HW_ACT_VOID},
	{HW_EVENT_PROVEN, ONLINE, .late = NO, .act = HW_ACT_REARM},
	{HW_EVENT_PROVEN, ONLINE, .outrun = YES, .act = HW_ACT_SUSPECT},
	{HW_EVENT_PROVEN, ONLINE, .key_lives = YES, .act = HW_ACT_KEY_LIVES},
	{HW_EVENT_PROVEN, ONLINE, .unheard = YES, .act = HW_ACT_WAIT},
	{HW_EVENT_PROVEN, ONLINE, .by_key = YES, .act = HW_ACT_OFFLINE, .reason = HW_REASON_KEYSPACE},
	{HW_EVENT_PROVEN, ONLINE, .act = HW_ACT_OFFLINE, .reason = HW_REASON_TIMEOUT},
	/* its key is gone */
	{HW_EVENT_KEY_GONE, ONLINE, .by_key = NO, .act = HW_ACT_REFRESH},
	{HW_EVENT_KEY_GONE, ONLINE, .beats = YES, .overdue = NO, .act = HW_ACT_REFRESH},
	{HW_EVENT_KEY_GONE, ONLINE, .suspect = YES, .act = HW_ACT_NONE},
	{HW_EVENT_KEY_GONE, ONLINE, .excused = YES, .act = HW_ACT_EXCUSE},
	{HW_EVENT_KEY_GONE, ONLINE, .beats = YES, .act = HW_ACT_SUSPECT},
	{HW_EVENT_KEY_GONE, ONLINE, .act = HW_ACT_OFFLINE, .reason = HW_REASON_KEYSPACE},
	/* the store has been read */
	{HW_EVENT_STORED, OFFLINE, .heard = YES, .too_few = NO, .act = HW_ACT_ONLINE, .reason = HW_REASON_HEARTBEAT},
	{HW_EVENT_STORED, ONLINE | OFFLINE, .act = HW_ACT_NONE},
	{HW_EVENT_SETTLED, PROVISIONAL, .goodbye = YES, .heard = NO, .act = HW_ACT_OFFLINE, .reason = HW_REASON_WILL},
	{HW_EVENT_SETTLED, PROVISIONAL, .act = HW_ACT_ONLINE, .reason = HW_REASON_HEARTBEAT},
	{HW_EVENT_SETTLED, ONLINE | OFFLINE | FORGOTTEN, .act = HW_ACT_NONE},
	/* its parents are offline */
	{HW_EVENT_ORPHANED, ONLINE, .act = HW_ACT_OFFLINE, .reason = HW_REASON_PARENT},
	{HW_EVENT_ORPHANED, EVERY, .act = HW_ACT_NONE},
	/* an operator's word */
	{HW_EVENT_FORGET, ONLINE | OFFLINE, .act = HW_ACT_FORGOTTEN, .reason = HW_REASON_OPERATOR},
	{HW_EVENT_FORGET, EVERY, .act = HW_ACT_NONE},
};

static bool fits(int wanted, bool is)
{
	return wanted == 0 || wanted & (is ? YES : NO);
}

static const struct sentence *sentence_of(const struct hw_device *d, const struct hw_evidence *e)
{
	for (size_t k = 0; k < sizeof(rule) / sizeof(rule[0]); k++) {
		const struct sentence *s = &rule[k];
		if (s->event == e->event && s->states & 1u << hw_device_state(d) &&
		    fits(s->goodbye, d->flags & HW_FLAG_GOODBYE) && fits(s->loading, e->loading) &&
		    fits(s->heard, e->heard) && fits(s->blind, e->blind) && fits(s->delay, e->delay) &&
		    fits(s->touched, e->touched) && fits(s->outrun, e->outrun) && fits(s->by_key, e->by_key) &&
		    fits(s->key_lives, e->key_lives) && fits(s->beats, e->beats) && fits(s->deaf, e->deaf) &&
		    fits(s->unheard, e->unheard) && fits(s->late, e->late_ns >= 0) && fits(s->overdue, e->overdue) &&
		    fits(s->suspect, e->suspect) && fits(s->excused, e->excused) && fits(s->too_few, e->too_few) &&
		    fits(s->orphaned, e->orphaned))
			return s;
	}
	return NULL;
}

/* Three bits mean something else where a key is gone than anywhere else: all of them at once would take too long. */
static struct hw_evidence evidence(enum hw_verdict_event event, unsigned bits, int64_t late_ns)
{
	unsigned of_key = event == HW_EVENT_KEY_GONE ? bits : 0, of_others = bits & ~of_key;
	return (struct hw_evidence){.event = event,
	                            .loading = of_others & 1,
	                            .heard = of_others & 2,
	                            .blind = of_others & 4,
	                            .overdue = of_key & 1,
	                            .suspect = of_key & 2,
	                            .excused = of_key & 4,
	                            .delay = bits & 8,
	                            .touched = bits & 16,
	                            .outrun = bits & 32,
	                            .by_key = bits & 64,
	                            .key_lives = bits & 128,
	                            .beats = bits & 256,
	                            .deaf = bits & 512,
	                            .unheard = bits & 1024,
	                            .too_few = bits & 2048,
	                            .orphaned = bits & 4096,
	                            .late_ns = late_ns};
}

static void compare(const struct hw_device *d, const struct hw_evidence *e)
{
	const struct sentence *s = sentence_of(d, e);
	if (!s)
		return; /* nobody says that of such a device */
	struct hw_verdict v = hw_verdict(d, e);
	bool has_reason = v.act == HW_ACT_ONLINE || v.act == HW_ACT_OFFLINE || v.act == HW_ACT_FORGOTTEN;
	/* A ck_assert() that holds costs a system call, and there are hundreds of thousands. */
	if (v.act != s->act)
		ck_abort_msg("sentence %d: act %d, not %d", (int)(s - rule), v.act, s->act);
	if (has_reason && v.reason != s->reason)
		ck_abort_msg("sentence %d: reason %d, not %d", (int)(s - rule), v.reason, s->reason);
	bool by_deadline = v.act == HW_ACT_OFFLINE &&
	                   (v.reason == HW_REASON_TIMEOUT || (e->event == HW_EVENT_KEY_GONE && e->late_ns >= 0));
	if (v.delay_ns != (by_deadline ? e->late_ns : -1))
		ck_abort_msg("sentence %d: delay %lld", (int)(s - rule), (long long)v.delay_ns);
}

START_TEST(test_the_rule_sentence_by_sentence)
{
	static const int64_t late[] = {INT64_MIN / 4, -1, 0, 1, INT64_MAX / 4};
	for (int state = 0; state < 4; state++)
		for (int goodbye = 0; goodbye < 2; goodbye++)
			for (int event = 0; event <= (int)HW_EVENT_FORGET; event++)
				for (unsigned bits = 0; bits < EVIDENCES; bits++)
					for (size_t k = 0; k < sizeof(late) / sizeof(late[0]); k++) {
						struct hw_device d = {.flags = goodbye ? HW_FLAG_GOODBYE : 0};
						struct hw_evidence e =
							evidence((enum hw_verdict_event)event, bits, late[k]);
						hw_device_set_state(&d, (enum hw_state)state, HW_REASON_HEARTBEAT);
						compare(&d, &e);
					}
}
END_TEST

/* What a device is taken offline by: nothing but its barriers, its key, its parents, or, where it was not online, a
 * goodbye. */
START_TEST(test_nothing_else_takes_a_device_offline)
{
	for (int event = 0; event <= (int)HW_EVENT_FORGET; event++)
		for (unsigned bits = 0; bits < EVIDENCES; bits++) {
			struct hw_device d = {.flags = HW_FLAG_GOODBYE};
			struct hw_evidence e = evidence((enum hw_verdict_event)event, bits, 5);
			hw_device_set_state(&d, HW_STATE_ONLINE, HW_REASON_HEARTBEAT);
			if (hw_verdict(&d, &e).act == HW_ACT_OFFLINE)
				ck_assert(event == HW_EVENT_PROVEN || event == HW_EVENT_KEY_GONE ||
				          event == HW_EVENT_ORPHANED || e.orphaned);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("verdict");
	TCase *t = tcase_create("rule");
	tcase_add_test(t, test_the_rule_sentence_by_sentence);
	tcase_add_test(t, test_nothing_else_takes_a_device_offline);
	suite_add_tcase(s, t);
	return suite_run(s);
}
