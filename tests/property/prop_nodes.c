/* SPDX-License-Identifier: MIT */
/*
 * Membership and the fence at the broker against naive twins, with random operations. The twins keep all that has
 * happened, and derive each answer from that list alone, by the rules in nodes/members.h and nodes/fence.h.
 *
 * The seed is printed; HW_SEED sets it.
 */
#include <check.h>
#include <stdlib.h>

#include "../random.h"
#include "../suite.h"
#include "nodes/claims.h"
#include "nodes/fence.h"
#include "nodes/members.h"

/* ck_assert() writes to a pipe each time that it holds: too slow for so many. */
#define MUST(truth)                                                                                                    \
	do {                                                                                                           \
		if (!(truth))                                                                                          \
			ck_abort_msg("not true: %s", #truth);                                                          \
	} while (0)

#define ROUNDS 300
#define STEPS  150
#define PEERS  4
#define USED   6 /* partitions in use: so few that they meet */

static int64_t below(int64_t n)
{
	return (int64_t)(random64() % (uint64_t)n);
}

/* --- claims ------------------------------------------------------------------------------------------------------ */

START_TEST(texts_say_what_they_were_made_of)
{
	static char buf[HW_KNOWN_TEXT];
	uint64_t epochs[HW_PARTITIONS], back[HW_PARTITIONS];
	static struct hw_fencing_token tokens[HW_PARTITIONS], known[HW_PARTITIONS];
	for (int round = 0; round < 3000; round++) {
		uint64_t epoch = 0;
		int64_t change = 1 + below(40);
		for (unsigned p = 0; p < HW_PARTITIONS; p++) {
			if (below(change) == 0)
				epoch = below(3) == 0 ? 0 : (uint64_t)below(4) + (below(2) ? 1 : INT64_MAX / 4);
			epochs[p] = epoch;
			tokens[p] = hw_fencing_token_make(epoch, below(change) ? "a" : "b");
		}
		size_t len = hw_claims_text(epochs, buf);
		MUST(len == strlen(buf) && len < HW_CLAIMS_TEXT);
		MUST(hw_claims_parse(buf, len, back) == 0 && memcmp(epochs, back, sizeof(back)) == 0);
		len = hw_known_text(tokens, buf);
		MUST(len == strlen(buf) && len < HW_KNOWN_TEXT);
		MUST(hw_known_parse(buf, len, known) == 0);
		for (unsigned p = 0; p < HW_PARTITIONS; p++)
			MUST(hw_fencing_token_compare(&tokens[p], &known[p]) == 0);
	}
}
END_TEST

START_TEST(no_text_does_harm)
{
	static const char letters[] = "0129-:, a";
	static struct hw_fencing_token known[HW_PARTITIONS];
	uint64_t epochs[HW_PARTITIONS];
	for (int round = 0; round < 100000; round++) {
		size_t len = (size_t)below(24);
		char *text = malloc(len + 1), again[HW_CLAIMS_TEXT];
		for (size_t i = 0; i < len; i++)
			text[i] = letters[below(sizeof(letters) - 1)];
		if (hw_claims_parse(text, len, epochs) == 0) {
			uint64_t back[HW_PARTITIONS];
			hw_claims_text(epochs, again);
			MUST(hw_claims_parse(again, strlen(again), back) == 0);
			MUST(memcmp(epochs, back, sizeof(back)) == 0);
		}
		(void)hw_known_parse(text, len, known);
		free(text);
	}
}
END_TEST

/* --- members ----------------------------------------------------------------------------------------------------- */

static const char *const names[PEERS] = {"a", "b", "c", "d"};

struct answer {
	int64_t at;
	bool reconnected; /* the answer came over another connection than the answer before */
	bool there[PEERS], ready[PEERS];
	uint64_t run[PEERS], count[PEERS];
};

struct history {
	struct answer all[STEPS];
	int n;
	int64_t lease;
};

static bool same(const struct answer *x, const struct answer *y, int i)
{
	return x->there[i] && y->there[i] && x->run[i] == y->run[i] && x->count[i] == y->count[i];
}

/* Goes back from the last answer for as long as nothing changed and this node was not suspended. */
static bool twin_silent(const struct history *h, int i)
{
	int k = h->n - 1;
	while (k > 0 && !h->all[k].reconnected && same(&h->all[k], &h->all[k - 1], i) &&
	       h->all[k].at - h->all[k - 1].at <= 2 * h->lease / 5)
		k--;
	return h->all[h->n - 1].at - h->all[k].at >= h->lease;
}

static bool twin_settled(const struct history *h, int i)
{
	int last = h->n - 1, k = last;
	if (!h->all[last].ready[i])
		return false;
	while (k > 0 && h->all[k - 1].there[i] && h->all[k - 1].ready[i] && h->all[k - 1].run[i] == h->all[k].run[i])
		k--;
	return h->all[last].count[i] >= h->all[k].count[i] + 2;
}

static void draw_answer(struct history *h, struct answer *a)
{
	const struct answer *last = h->n > 0 ? &h->all[h->n - 1] : NULL;
	*a = (struct answer){.at = (last ? last->at : 0) + below(h->lease / 4) + (below(15) ? 0 : h->lease)};
	a->reconnected = below(25) == 0;
	for (int i = 0; i < PEERS; i++) {
		bool was = last && last->there[i];
		a->there[i] = was ? below(25) != 0 : below(3) == 0;
		a->run[i] = was && below(20) ? last->run[i] : random64();
		a->count[i] = was && a->run[i] == last->run[i] ? last->count[i] + (below(4) == 0 ? 1 : 0) : 0;
		a->ready[i] = was && below(10) ? last->ready[i] : below(2) == 0;
	}
}

static void look(struct hw_members *m, const struct answer *a)
{
	struct hw_member_entry e[PEERS];
	size_t n = 0;
	for (int i = 0; i < PEERS; i++)
		if (a->there[i])
			e[n++] = (struct hw_member_entry){
				.node = names[i], .run = a->run[i], .count = a->count[i], .ready = a->ready[i]};
	if (a->reconnected)
		hw_members_forget(m);
	hw_members_update(m, (struct hw_mono){a->at}, e, n);
}

START_TEST(members_are_their_twin)
{
	static struct hw_members m;
	static struct history h;
	unsigned silent = 0, settled = 0;
	for (int round = 0; round < ROUNDS; round++) {
		h = (struct history){.lease = 1000 + below(5000)};
		hw_members_init(&m, h.lease);
		while (h.n < STEPS) {
			draw_answer(&h, &h.all[h.n]);
			look(&m, &h.all[h.n++]);
			for (int i = 0; i < PEERS; i++) {
				const struct hw_member *member = hw_members_find(&m, names[i]);
				MUST((member != NULL) == h.all[h.n - 1].there[i]);
				if (!member)
					continue;
				MUST(hw_member_is_silent(&m, member) == twin_silent(&h, i));
				MUST(hw_member_is_settled(member) == twin_settled(&h, i));
				silent += twin_silent(&h, i);
				settled += twin_settled(&h, i);
			}
		}
	}
	MUST(silent > 1000 && settled > 1000); /* the runs are no empty ones */
}
END_TEST

/* --- the fence --------------------------------------------------------------------------------------------------- */

enum what { SESSION, LOST, READER, UNREAD, CONFIRM, CLAIM, SAY, ACK, SENT, BACK, READ, WHATS };

struct happened {
	enum what what;
	uint64_t number;       /* of a session, presence, barrier; the session of a renewal */
	unsigned p;            /* of CLAIM */
	uint64_t epoch;        /* of CLAIM */
	int peer;              /* of READ */
	uint64_t claims[USED]; /* of SAY, READ */
};

struct log {
	struct happened all[STEPS * 2];
	int n;
	uint64_t session, said, barrier, acked, back;
	bool up, reader;
	uint64_t claims[USED], most; /* most: epochs of ours never come twice */
};

/* The last event of this kind before `end`, or -1. */
static int last_of(const struct log *l, enum what what, int end)
{
	while (--end >= 0 && l->all[end].what != what)
		;
	return end;
}

static bool is_less(uint64_t epoch, int peer, uint64_t ours)
{
	return epoch > 0 && (epoch < ours || (epoch == ours && strcmp(names[peer], "m") < 0));
}

/* The peer's last claim of all that was read in [from, end). */
static uint64_t read_last(const struct log *l, int peer, unsigned p, int from, int end)
{
	while (--end >= from)
		if (l->all[end].what == READ && l->all[end].peer == peer)
			return l->all[end].claims[p];
	return 0;
}

/* Rule 4, when the barrier came back at `back`: a peer claimed p with less at that time, and has not withdrawn the
 * claim since. */
static bool is_blocked(const struct log *l, unsigned p, int reader, int back)
{
	for (int peer = 0; peer < PEERS; peer++) {
		bool blocks = is_less(read_last(l, peer, p, reader, back), peer, l->claims[p]);
		for (int i = back; blocks && i < l->n; i++)
			if (l->all[i].what == READ && l->all[i].peer == peer)
				blocks = is_less(l->all[i].claims[p], peer, l->claims[p]);
		if (blocks)
			return true;
	}
	return false;
}

/* The first moment at which a barrier is back that was sent while both session and reader existed, neither of which
 * was lost since; -1: none. Only what is published after that is published with this knowledge. */
static int recalled_at(const struct log *l)
{
	bool session = false, reader = false;
	uint64_t number = 0; /* of the first barrier since both are there */
	for (int i = 0; i < l->n; i++) {
		const struct happened *h = &l->all[i];
		if (h->what == BACK && number && h->number >= number)
			return i;
		if (h->what == SESSION || h->what == LOST || h->what == READER || h->what == UNREAD)
			number = 0;
		if (h->what == SESSION || h->what == LOST)
			session = h->what == SESSION;
		else if (h->what == READER || h->what == UNREAD)
			reader = h->what == READER;
		else if (h->what == SENT && session && reader && !number)
			number = h->number;
	}
	return -1;
}

/* Rule 1: the first moment after `from` at which a barrier is back that was sent after the acknowledgement of a
 * presence that claims p with our present epoch; proofs are checked one at a time. -1: none. */
static int proven_at(const struct log *l, unsigned p, int from, int reader)
{
	bool acked = false, sent = false;
	uint64_t number = 0;
	int said = -1;
	for (int i = from; i < l->n; i++) {
		const struct happened *h = &l->all[i];
		if (h->what == SAY && said < 0 && h->claims[p] == l->claims[p])
			said = (int)h->number;
		if (h->what == ACK && said >= 0 && (int)h->number >= said)
			acked = true;
		if (h->what == SENT && acked && i > reader && !sent) {
			sent = true;
			number = h->number;
		}
		if (h->what == BACK && sent && h->number >= number)
			return i;
	}
	return -1;
}

/* The code may be late if proofs queue up, but never early: what it passes must be proven for the twin, too. */
static bool twin_may_pass(const struct log *l, unsigned p)
{
	int session = last_of(l, SESSION, l->n), reader = last_of(l, READER, l->n), claim = l->n, back;
	if (!l->up || !l->reader || l->claims[p] == 0)
		return false;
	bool confirmed = false;
	for (int i = session; i < l->n; i++)
		confirmed |= l->all[i].what == CONFIRM && l->all[i].number == l->session;
	while (--claim >= 0 && !(l->all[claim].what == CLAIM && l->all[claim].p == p))
		;
	int from = recalled_at(l);
	if (from < 0)
		return false;
	from = from > session ? from : session;
	back = proven_at(l, p, from > claim ? from : claim, reader);
	return confirmed && back >= 0 && !is_blocked(l, p, reader, back);
}

static void note(struct log *l, struct happened h)
{
	l->all[l->n++] = h;
}

static void do_say(struct hw_fence *f, struct log *l)
{
	struct happened h = {.what = SAY};
	if (!hw_fence_must_publish(f))
		return;
	memcpy(h.claims, l->claims, sizeof(h.claims));
	uint64_t serial = hw_fence_publish(f);
	h.number = ++l->said;
	MUST((serial & UINT32_MAX) == l->said);
	note(l, h);
}

static void do_ack(struct hw_fence *f, struct log *l)
{
	if (!l->up || l->acked == l->said)
		return;
	l->acked++;
	hw_fence_acked(f, f->sessions << 32 | l->acked);
	note(l, (struct happened){.what = ACK, .number = l->acked});
}

static void do_read(struct hw_fence *f, struct log *l)
{
	struct happened h = {.what = READ, .peer = (int)below(PEERS)};
	uint64_t claims[HW_PARTITIONS] = {0};
	if (!l->reader)
		return;
	for (unsigned p = 0; p < USED; p++)
		claims[p] = h.claims[p] = below(2) ? 0 : (uint64_t)below((int64_t)l->most + 3) + 1;
	hw_fence_read(f, names[h.peer], claims);
	note(l, h);
}

static void do_session(struct hw_fence *f, struct log *l, bool up)
{
	if (!up && !l->up)
		return;
	hw_fence_session(f, up);
	l->up = up;
	l->session += up;
	l->said = l->acked = 0;
	note(l, (struct happened){.what = up ? SESSION : LOST, .number = l->session});
}

static void do_claim(struct hw_fence *f, struct log *l)
{
	struct happened h = {.what = CLAIM, .p = (unsigned)below(USED)};
	h.epoch = below(4) ? ++l->most : 0;
	if (l->claims[h.p] == h.epoch)
		return;
	hw_fence_claim(f, h.p, h.epoch);
	l->claims[h.p] = h.epoch;
	note(l, h);
}

static void step(struct hw_fence *f, struct log *l)
{
	int64_t draw = below(100);
	(void)hw_fence_ask_barrier(f, (struct hw_mono){l->n});
	if (draw < 2) {
		do_session(f, l, below(4) != 0);
	} else if (draw < 4) {
		l->reader = below(4) != 0;
		hw_fence_reader(f, l->reader);
		note(l, (struct happened){.what = l->reader ? READER : UNREAD});
	} else if (draw < 10) {
		uint64_t session = l->session - (below(3) == 0 && l->session > 0);
		hw_fence_confirm(f, session);
		if (l->up)
			note(l, (struct happened){.what = CONFIRM, .number = session});
	} else if (draw < 18) {
		do_claim(f, l);
	} else if (draw < 38) {
		do_say(f, l);
	} else if (draw < 56) {
		do_ack(f, l);
	} else if (draw < 72 && l->up) {
		hw_fence_barrier_sent(f, ++l->barrier);
		note(l, (struct happened){.what = SENT, .number = l->barrier});
	} else if (draw < 90 && l->back < l->barrier) {
		l->back += 1 + (uint64_t)below((int64_t)(l->barrier - l->back));
		hw_fence_barrier_back(f, (struct hw_mono){l->n}, l->back);
		note(l, (struct happened){.what = BACK, .number = l->back});
	} else {
		do_read(f, l);
	}
}

START_TEST(nothing_passes_that_its_twin_holds_back)
{
	static struct hw_fence f;
	static struct log l;
	unsigned passed = 0, held = 0;
	for (int round = 0; round < 10 * ROUNDS; round++) {
		memset(&l, 0, sizeof(l));
		hw_fence_init(&f, "m");
		l.reader = true;
		hw_fence_reader(&f, true);
		note(&l, (struct happened){.what = READER});
		do_session(&f, &l, true);
		while (l.n < STEPS) {
			step(&f, &l);
			for (unsigned p = 0; p < USED; p++) {
				bool passes = hw_fence_passes(&f, p), may = twin_may_pass(&l, p);
				if (passes && !may)
					ck_abort_msg("round %d, step %d: %u passes", round, l.n, p);
				passed += passes;
				held += may && !passes;
			}
			MUST(hw_fence_recalled(&f) == (recalled_at(&l) >= 0));
		}
	}
	printf("passed %u, held back longer than the twin does %u\n", passed, held);
	MUST(passed > 10000 && held < passed / 2);
}
END_TEST

int main(void)
{
	random_begin(random_seed_of_now());
	Suite *suite = suite_create("nodes (random)");
	TCase *tc = tcase_create("twins");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, texts_say_what_they_were_made_of);
	tcase_add_test(tc, no_text_does_harm);
	tcase_add_test(tc, members_are_their_twin);
	tcase_add_test(tc, nothing_passes_that_its_twin_holds_back);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
