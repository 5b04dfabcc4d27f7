/* SPDX-License-Identifier: MIT */
/* See learn.h. A gap is kept as a level: 96 times its binary logarithm in ms, rounded up. So 12 bits hold 1 ms to 10
 * years in steps of 0.7 %, and factors become differences. Level 0: no gap. */
#include "learn.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define DAY_MS    INT64_C(86400000)
#define OCTAVE    96 /* levels of a factor of two */
#define LEVEL_MAX 4095
#define STEP      11            /* levels between two timeouts: a twelfth */
#define KEPT      4             /* gaps kept of each window */
#define UNITS     16            /* time units in a window */
#define GAPS_MIN  20            /* a window lasts at least so many gaps */
#define ONE       (1u << 16)    /* fixed point: 1 mistake */
#define EXTRA     (OCTAVE / 16) /* levels of one step of the extra */
#define EXTRA_MAX 35            /* steps: a factor of 4.5 */
#define FAR       152           /* levels: a gap over three timeouts */
#define LIKE      OCTAVE        /* two gaps within a factor of two are alike */
#define BURST     (4 * OCTAVE)  /* a gap that is this far below the median lies between messages of one burst */
#define BRIDGE    103           /* levels: a little over a factor of two */
#define TAIL      331           /* 0.7 ln(2) / OCTAVE, in 1/65536 */
#define TAIL_MAX  (2 * OCTAVE)  /* the timeout without the extra is at most four times the largest gap */
#define LOST      56            /* levels: a factor of 1.5; a gap so far over the median shows a lost heartbeat */
#define MARGIN    4             /* levels over a whole number of medians */
#define HABIT_MAX 60            /* windows for which a habit may be remembered */
#define MARK      31

/* The fields of the three words: word, lowest bit, bits. */
struct field {
	unsigned char word, shift, width;
};

#define THIS(i)   ((struct field){0, (unsigned char)(12 * (i)), 12}) /* largest gaps of this window, falling */
#define BEFORE(i) ((struct field){1, (unsigned char)(12 * (i)), 12}) /* of the window before */
/* If mistakes are allowed rarely, each window keeps three gaps, and the bits of the fourth gaps hold a habit.
 * HABIT_MARK shows this layout. As a fourth gap of this window, the value of HABIT_MARK would be over 80 years, so no
 * gap looks like HABIT_MARK. */
static const struct field HABIT = {1, 36, 12};      /* a gap that was learned after mistakes; 0: none */
static const struct field HABIT_AGE = {0, 36, 6};   /* windows since the last gap of the habit */
static const struct field HABIT_AGAIN = {0, 42, 1}; /* the habit came again after a pause, and is in force */
static const struct field HABIT_MARK = {0, 43, 5};  /* MARK: these fields are in force */
/* Until the first estimate, the bits of BEFORE hold how many ms the gaps cover, and how many gaps these are. */
static const struct field FOLLOWED = {1, 0, 31};
static const struct field FOLLOWED_GAPS = {1, 31, 17};
static const struct field TIMEOUT = {0, 48, 12};      /* without bridge; 0: not enough was seen */
static const struct field DOUBT_GAPS = {0, 60, 2};    /* gaps like DOUBT that were seen */
static const struct field DOUBT_WINDOWS = {0, 62, 2}; /* windows since the last of them */
static const struct field DOUBT = {1, 48, 12};        /* a gap in which the device was called offline; 0: none */
static const struct field ESTIMATED = {1, 60, 4};     /* unit of the last estimate, modulo 16 */
static const struct field BRIDGED = {2, 0, 12};       /* timeout until a usual gap comes; 0: TIMEOUT */
static const struct field MEDIAN = {2, 12, 12};
static const struct field BEGAN = {2, 24, 10};       /* when this window began, in units, modulo 1024 */
static const struct field BEFORE_UNITS = {2, 34, 7}; /* length of the window before */
static const struct field WINDOW_GAPS = {2, 41, 5};  /* gaps in this window, up to 31 */
static const struct field EXTRA_STEPS = {2, 46, 6};  /* added to the timeout after mistakes */
static const struct field SEEN = {2, 52, 6};
static const struct field MISTAKES = {2, 58, 6};

static inline unsigned get(const struct hw_gaps *g, struct field f)
{
	return (unsigned)(g->word[f.word] >> f.shift) & ((1u << f.width) - 1);
}

static inline void set(struct hw_gaps *g, struct field f, unsigned value)
{
	uint64_t max = (1u << f.width) - 1, v = value < max ? value : max;
	g->word[f.word] = (g->word[f.word] & ~(max << f.shift)) | v << f.shift;
}

static inline unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the level of `ms`. Approximates log2(1 + x) by x + x (1 - x) (0.42 - 0.135 x), with an error of at most
 * 0.001. */
static unsigned level(int64_t ms)
{
	if (ms < 1)
		ms = 1;
	unsigned octave = 63 - (unsigned)__builtin_clzll((uint64_t)ms);
	uint64_t x = (octave >= 16 ? (uint64_t)ms >> (octave - 16) : (uint64_t)ms << (16 - octave)) - ONE;
	uint64_t log = x + (((x * (ONE - x)) >> 16) * (27500 - ((x * 8850) >> 16)) >> 16);
	return least(octave * OCTAVE + (unsigned)((log * OCTAVE + ONE - 1) >> 16), LEVEL_MAX);
}

/* The inverse of level(). Approximates 2^x by 1 + x - x (1 - x) (0.343 - 0.074 (1 - x)). */
static int64_t time_ms(unsigned l)
{
	unsigned octave = l / OCTAVE;
	uint64_t x = ((uint64_t)(l % OCTAVE) << 16) / OCTAVE;
	uint64_t y = ONE + x - (((x * (ONE - x)) >> 16) * (22490 - ((ONE - x) * 4870 >> 16)) >> 16);
	return (int64_t)(octave >= 16 ? y << (octave - 16) : (y + (1u << (16 - octave)) - 1) >> (16 - octave));
}

/* Puts a level into the first `n` of `kept`, which are sorted with the largest first; the smallest one falls out. */
static void keep(unsigned kept[KEPT], unsigned n, unsigned l)
{
	for (unsigned i = 0; i < n; i++) {
		if (l > kept[i]) {
			memmove(kept + i + 1, kept + i, sizeof(*kept) * (n - 1 - i));
			kept[i] = l;
			return;
		}
	}
}

/* Whether the fields of a habit are in place of gaps. */
static bool has_habit(const struct hw_gaps *g)
{
	return get(g, HABIT_MARK) == MARK;
}

/* Puts the fields of a habit in place of the fourth gaps, or removes them. The rules may have changed since the last
 * gap, by a reload or while the gaps were in the store. */
static void set_layout(struct hw_gaps *g, bool habit)
{
	if (has_habit(g) == habit)
		return;
	set(g, THIS(KEPT - 1), 0);
	set(g, HABIT, 0);
	set(g, HABIT_MARK, habit ? MARK : 0);
}

/* Returns how many gaps of each window are kept. */
static unsigned n_kept(const struct hw_gaps *g)
{
	return has_habit(g) ? KEPT - 1 : KEPT;
}

/* Adds a gap of level `l` to the largest gaps of this window. Returns false if it is not among them. */
static bool learn(struct hw_gaps *g, unsigned l)
{
	unsigned n = n_kept(g), kept[KEPT];
	if (l <= get(g, THIS(n - 1)))
		return false;
	for (unsigned i = 0; i < n; i++)
		kept[i] = get(g, THIS(i));
	keep(kept, n, l);
	for (unsigned i = 0; i < n; i++)
		set(g, THIS(i), kept[i]);
	return true;
}

void hw_learn_rules_init(struct hw_learn_rules *rules, int64_t min_ms, int64_t max_ms, unsigned mistakes,
                         int64_t per_ms, unsigned least_gaps)
{
	/* A window is as long as two allowed mistakes take, but at most a day. So at most four mistakes are allowed
	 * in two windows, and KEPT gaps are enough to find the timeout. Because of the limit of a day, a device that
	 * begins to send more often gets a shorter timeout within two days. */
	double a_day = (double)mistakes * (double)DAY_MS / (double)per_ms;
	double window = fmin(1, 2 / a_day);
	/* A mistake adds a larger step if mistakes are allowed rarely: one mistake says little where four a day are
	 * allowed, and much where one a month is allowed. */
	double step = fmin(16, 16 * 0.35 / M_LN2 * pow(a_day, -0.25));
	*rules = (struct hw_learn_rules){
		.timeout_min_ms = min_ms,
		.timeout_max_ms = max_ms,
		.timeout_first_ms = max_ms,
		.unit_ms = (int64_t)(window * (double)DAY_MS) / UNITS,
		.allowed = (uint32_t)fmax(1, a_day * window * ONE),
		.extra_step = (unsigned)lround(fmax(1, step)),
		.extra_decay = (unsigned)lround(fmax(1, step * a_day * window)),
		.medians = least_gaps > 1 ? level(least_gaps) : 0,
		/* Two windows hold less than one allowed mistake. */
		.rare = a_day < 0.5 ? level(per_ms / mistakes) : 0,
		.habit_windows = (unsigned)fmin(HABIT_MAX, fmax(15, 1.5 / a_day)),
	};
}

void hw_learn_rules_first(struct hw_learn_rules *rules, int64_t timeout_ms)
{
	int64_t most = INT64_C(1) << 30; /* 12 days: a gap more has room in FOLLOWED */
	rules->timeout_first_ms = timeout_ms;
	rules->followed_ms = timeout_ms < most / HW_LEARN_FIRST_TIMEOUTS ? timeout_ms * HW_LEARN_FIRST_TIMEOUTS : most;
}

/* Units since this window began. */
static unsigned elapsed(const struct hw_gaps *g, unsigned unit)
{
	return (unit - get(g, BEGAN)) & 1023;
}

/* Returns the largest gap of the two windows. */
static unsigned largest(const struct hw_gaps *g)
{
	unsigned now = get(g, THIS(0)), before = get(g, TIMEOUT) ? get(g, BEFORE(0)) : 0;
	return now > before ? now : before;
}

/*
 * Returns the level of the timeout if less than one mistake is allowed in two windows, so that the windows contain no
 * gap as long as the timeout. The model: each heartbeat is lost with probability p. So each gap is a whole number of
 * intervals, and is longer than k intervals with probability p^k. If the largest of n gaps has j intervals, p is at
 * most about n^(-1/j). If one mistake is allowed in N gaps, the timeout is therefore j ln(N) / ln(n) intervals. The
 * same holds for gaps with an exponential tail. Levels are logarithms.
 */
static unsigned exceeded_rarely(const struct hw_gaps *g, const struct hw_learn_rules *rules, unsigned unit)
{
	unsigned units = elapsed(g, unit) + get(g, BEFORE_UNITS), median = get(g, MEDIAN);
	/* The first unit was not followed as a whole. */
	unsigned covered = units > 1 ? level((units - 1) * rules->unit_ms) : 0, most = largest(g);
	if (most < median + LOST)
		return most;                     /* no lost heartbeat was seen */
	uint64_t seen = level(get(g, SEEN) + 1); /* never 0 */
	if (covered > median + seen)
		seen = covered - median;
	uint64_t all = rules->rare > median + seen ? rules->rare - median : seen;
	uint64_t interval = (uint64_t)time_ms(median), ms = (uint64_t)time_ms(most) * all / seen;
	return least(level((int64_t)((ms + interval - 1) / interval * interval)) + MARGIN, most + TAIL_MAX);
}

/* Returns the level that is exceeded as often as mistakes are allowed in these two windows. If n mistakes are allowed,
 * this is the nth largest gap. If less than one mistake is allowed, the largest gap is extended by a Pareto tail
 * through all gaps that are kept (Hill's estimator, with 0.7 of its slope). */
static unsigned exceeded_as_allowed(const struct hw_gaps *g, const struct hw_learn_rules *rules, unsigned unit)
{
	unsigned v[KEPT], n = 0, most = n_kept(g), units = elapsed(g, unit) + get(g, BEFORE_UNITS);
	for (unsigned i = 0; i < most; i++)
		v[i] = get(g, BEFORE(i));
	for (unsigned i = 0; i < most; i++)
		keep(v, most, get(g, THIS(i)));
	while (n < most && v[n])
		n++;
	uint64_t allowed = (uint64_t)rules->allowed * units / UNITS;
	if (n == 0)
		return 0;
	if (allowed >= (uint64_t)n * ONE)
		return v[n - 1];
	if (allowed >= ONE) {
		unsigned i = (unsigned)(allowed / ONE), part = (unsigned)(allowed % ONE);
		return v[i - 1] - ((v[i - 1] - v[i]) * part >> 16);
	}
	if (n == 1)
		return v[0];
	unsigned above = 0;
	for (unsigned i = 0; i < n - 1; i++)
		above += v[i] - v[n - 1];
	uint64_t rarer = 16 * OCTAVE - level((int64_t)allowed);
	/* If the gaps kept are from before and after a change of habit, their slope is that of the change. So the tail
	 * has a limit. */
	return v[0] + least((unsigned)(above * rarer * TAIL / (n - 1) / ONE), TAIL_MAX);
}

static unsigned estimate(const struct hw_gaps *g, const struct hw_learn_rules *rules, unsigned unit)
{
	unsigned l = exceeded_as_allowed(g, rules, unit) + get(g, EXTRA_STEPS) * EXTRA + 1;
	unsigned floor = rules->medians ? get(g, MEDIAN) + rules->medians + 1 : 0;
	if (l < floor)
		l = floor;
	unsigned rare = rules->rare ? exceeded_rarely(g, rules, unit) : 0;
	if (l < rare)
		l = rare;
	if (has_habit(g) && get(g, HABIT_AGAIN) && l < get(g, HABIT) + STEP)
		l = get(g, HABIT) + STEP;
	return least((l + STEP - 1) / STEP * STEP, LEVEL_MAX);
}

/* Returns the level in force: the estimate, or the doubled timeout after a mistake (BRIDGED) if that is longer. */
static unsigned in_force(const struct hw_gaps *g)
{
	unsigned t = get(g, TIMEOUT), bridged = get(g, BRIDGED);
	return bridged > t ? bridged : t;
}

static int64_t bounded_ms(const struct hw_learn_rules *rules, unsigned l)
{
	int64_t ms = time_ms(l);
	if (ms > rules->timeout_max_ms)
		return rules->timeout_max_ms;
	return ms < rules->timeout_min_ms ? rules->timeout_min_ms : ms;
}

/* Remembers a gap of level `l` that was learned after mistakes. If a similar gap comes after a pause, both are a habit
 * that the two windows are too short for, such as weekends. Two outages on one day have no pause between them, so they
 * are no habit. */
static void remember(struct hw_gaps *g, unsigned l)
{
	unsigned habit = get(g, HABIT), smaller = least(habit, l), larger = habit > l ? habit : l;
	if (!has_habit(g))
		return;
	bool like = habit && larger - smaller < LIKE;
	if (habit && get(g, HABIT_AGAIN) && !like)
		return;
	if (like && get(g, HABIT_AGE) >= 2)
		set(g, HABIT_AGAIN, 1);
	set(g, HABIT, like ? larger : l);
	set(g, HABIT_AGE, 0);
}

/* Handles a gap of level `l` that was longer than the timeout, whose level is `timeout`: the device was called
 * offline in the gap. */
static void mistake(struct hw_gaps *g, const struct hw_learn_rules *rules, unsigned l, unsigned timeout)
{
	bool far = l > timeout + FAR;
	set(g, MISTAKES, get(g, MISTAKES) + 1);
	set(g, BRIDGED, least(timeout + BRIDGE, LEVEL_MAX));
	if (!far && get(g, TIMEOUT) && l > get(g, TIMEOUT)) {
		/* The timeout never becomes longer than needed for this gap. */
		unsigned steps = get(g, EXTRA_STEPS), most = steps + (l - get(g, TIMEOUT)) / EXTRA + 1;
		set(g, EXTRA_STEPS, least(least(steps + rules->extra_step, most), EXTRA_MAX));
	}
	unsigned doubt = get(g, DOUBT), smaller = least(doubt, l), larger = doubt > l ? doubt : l;
	if (doubt && larger - smaller < LIKE) {
		unsigned seen = least(get(g, DOUBT_GAPS) + 1, 3);
		set(g, DOUBT_GAPS, seen);
		bool learned = seen >= (far ? 3 : 2);
		if (learned) {
			learn(g, smaller);
			remember(g, larger);
		}
		if (learned && !get(g, MEDIAN))
			set(g, MEDIAN, smaller);
		set(g, DOUBT, learned && !far ? larger : smaller);
		set(g, DOUBT_WINDOWS, 0);
	} else if (!doubt || l < doubt) {
		set(g, DOUBT, l);
		set(g, DOUBT_GAPS, 1);
		set(g, DOUBT_WINDOWS, 0);
	}
}

/* Returns the median after a gap of level `l`. Gaps between the messages of a burst do not count. */
static unsigned median_after(const struct hw_gaps *g, unsigned l)
{
	unsigned median = least(get(g, MEDIAN), largest(g));
	if (median == 0)
		return l;
	return l > median ? median + 1 : l == median || l + BURST < median ? median : median - 1;
}

/* Handles a gap of level `l` in which the device stayed online. Returns false if the timeout stays as it is. */
static bool usual_gap(struct hw_gaps *g, unsigned l)
{
	bool learned = learn(g, l);
	unsigned bridged = get(g, BRIDGED), timeout = get(g, TIMEOUT);
	set(g, MEDIAN, median_after(g, l));
	/* The doubled timeout has kept the device online in the second gap of a habit. */
	unsigned doubt = get(g, DOUBT);
	if (bridged && doubt && l < doubt + LIKE / 2 && l + LIKE / 2 > doubt)
		remember(g, l);
	unsigned habit = has_habit(g) ? get(g, HABIT) : 0;
	if (habit && l + LIKE / 4 >= habit && l < habit + LIKE) {
		set(g, HABIT, l > habit ? l : habit);
		set(g, HABIT_AGE, 0);
	}
	/* A usual gap halves the extra time of the doubled timeout and does not end it, because a new habit may
	 * contain a short gap too. */
	if (bridged && l <= timeout)
		set(g, BRIDGED, bridged > timeout + BRIDGE / 5 ? timeout + (bridged - timeout) / 2 : 0);
	return learned || bridged;
}

/* This window becomes the window before. */
static void begin_window(struct hw_gaps *g, const struct hw_learn_rules *rules, unsigned unit)
{
	set(g, BEFORE_UNITS, elapsed(g, unit));
	for (unsigned i = 0; i < n_kept(g); i++) {
		set(g, BEFORE(i), get(g, THIS(i)));
		set(g, THIS(i), 0);
	}
	if (has_habit(g) && get(g, HABIT)) {
		unsigned age = get(g, HABIT_AGE) + 1;
		set(g, HABIT_AGE, age);
		if (age > rules->habit_windows) {
			set(g, HABIT, 0);
			set(g, HABIT_AGAIN, 0);
		}
	}
	set(g, BEGAN, unit & 1023);
	set(g, WINDOW_GAPS, 0);
	unsigned windows = get(g, DOUBT_WINDOWS) + 1;
	set(g, DOUBT_WINDOWS, windows);
	if (windows * rules->unit_ms * UNITS >= 3 * DAY_MS / 2) {
		set(g, DOUBT, 0);
		set(g, DOUBT_GAPS, 0);
	}
	unsigned steps = get(g, EXTRA_STEPS), decay = rules->extra_decay > steps / 4 ? rules->extra_decay : steps / 4;
	set(g, EXTRA_STEPS, steps > decay ? steps - decay : 0);
}

static unsigned unit_of(struct hw_learn_rules *rules, int64_t now_ms)
{
	if ((uint64_t)now_ms - (uint64_t)rules->unit_began_ms >= (uint64_t)rules->unit_ms ||
	    rules->unit_began_ms == 0) {
		rules->unit = (unsigned)(now_ms / rules->unit_ms);
		rules->unit_began_ms = now_ms - now_ms % rules->unit_ms;
	}
	return rules->unit;
}

/* Whether enough gaps were seen for the first estimate. `gap_ms` is the last of these gaps, and SEEN counts this gap
 * already. */
static bool follow(struct hw_gaps *g, const struct hw_learn_rules *rules, int64_t gap_ms)
{
	int64_t most = gap_ms < rules->timeout_first_ms ? gap_ms : rules->timeout_first_ms;
	int64_t followed = get(g, FOLLOWED) + (most > 0 ? most : 0);
	bool enough = get(g, SEEN) >= HW_LEARN_FIRST_GAPS && followed >= rules->followed_ms;
	unsigned n = get(g, FOLLOWED_GAPS) + 1, report = get(g, THIS(KEPT - 1));
	/* If the first gaps were those of a burst, the median would need hundreds of gaps to reach the other gaps. */
	if (enough && get(g, MEDIAN) + BURST < report && level(followed / n) + BURST >= report)
		set(g, MEDIAN, report);
	set(g, FOLLOWED_GAPS, enough ? 0 : n);
	set(g, FOLLOWED, enough ? 0 : (unsigned)(followed < INT32_MAX ? followed : INT32_MAX));
	return enough;
}

int64_t hw_learn_gap(struct hw_gaps *g, struct hw_learn_rules *rules, int64_t now_ms, int64_t gap_ms)
{
	unsigned unit = unit_of(rules, now_ms), l = level(gap_ms), seen = get(g, SEEN);
	if (seen == 0)
		set(g, BEGAN, unit & 1023);
	bool first = get(g, TIMEOUT) == 0;
	set_layout(g, rules->rare && !first);
	int64_t timeout_ms = first ? rules->timeout_first_ms : bounded_ms(rules, in_force(g));
	if (seen < HW_LEARN_COUNT_MAX)
		set(g, SEEN, seen + 1);
	set(g, WINDOW_GAPS, get(g, WINDOW_GAPS) + 1);
	bool changed = first || get(g, ESTIMATED) != (unit & 15);
	if (gap_ms > timeout_ms) {
		mistake(g, rules, l, level(timeout_ms));
		changed = true;
	} else {
		changed |= usual_gap(g, l);
	}
	if (!first && elapsed(g, unit) >= UNITS && get(g, WINDOW_GAPS) >= GAPS_MIN) {
		begin_window(g, rules, unit);
		changed = true;
	}
	if (first && !follow(g, rules, gap_ms))
		return rules->timeout_first_ms;
	if (!changed)
		return timeout_ms;
	set(g, TIMEOUT, estimate(g, rules, unit));
	set(g, ESTIMATED, unit & 15);
	return bounded_ms(rules, in_force(g));
}

void hw_learn_restart(struct hw_gaps *g, struct hw_learn_rules *rules, int64_t now_ms)
{
	unsigned unit = unit_of(rules, now_ms);
	set(g, BEGAN, unit & 1023);
	set(g, ESTIMATED, unit & 15);
	set(g, BEFORE_UNITS, 0);
	set(g, WINDOW_GAPS, 0);
}

int64_t hw_learned_ms(const struct hw_gaps *g, const struct hw_learn_rules *rules)
{
	return get(g, TIMEOUT) ? bounded_ms(rules, in_force(g)) : 0;
}

unsigned hw_learn_seen(const struct hw_gaps *g)
{
	return get(g, SEEN);
}

unsigned hw_learn_mistakes(const struct hw_gaps *g)
{
	return get(g, MISTAKES);
}

int64_t hw_learn_median_ms(const struct hw_gaps *g)
{
	return get(g, SEEN) ? time_ms(get(g, MEDIAN)) : 0;
}

int64_t hw_learn_largest_ms(const struct hw_gaps *g)
{
	unsigned l = largest(g);
	return l ? time_ms(l) : 0;
}

/* --- as text ------------------------------------------------------------------- */

#define VERSION    1
#define UNIT_BYTES 3 /* a unit is at most 90 minutes: 23 bits */
#define BYTES      (1 + sizeof(struct hw_gaps) + UNIT_BYTES)
#define OLD_LEN    36 /* of a text without the unit */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hw_learn_print(const struct hw_gaps *g, int64_t unit_ms, char text[HW_LEARN_TEXT])
{
	unsigned char bytes[BYTES + 2] = {VERSION}, *unit = bytes + 1 + sizeof(*g);
	for (size_t i = 0; i < sizeof(*g); i++)
		bytes[1 + i] = (unsigned char)(g->word[i / 8] >> i % 8 * 8);
	for (size_t i = 0; i < UNIT_BYTES; i++)
		unit[i] = (unsigned char)(unit_ms >> i * 8);
	for (size_t i = 0, at = 0; i < BYTES; i += 3) {
		unsigned v = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
		for (int shift = 18; shift >= 0; shift -= 6)
			text[at++] = letters[v >> shift & 63];
	}
	memcpy(text + HW_LEARN_TEXT - 3, "==", 3);
}

bool hw_learn_parse(struct hw_gaps *g, int64_t *unit_ms, const char *text, size_t len)
{
	unsigned char bytes[BYTES + 2] = {0}, *unit = bytes + 1 + sizeof(*g);
	if ((len != HW_LEARN_TEXT - 1 && len != OLD_LEN) || memcmp(text + len - 2, "==", 2) != 0)
		return false;
	for (size_t i = 0; i < len - 2; i++) {
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;
		if (!letter)
			return false;
		unsigned v = (unsigned)(letter - letters) << (10 - i * 6 % 8);
		bytes[i * 6 / 8] |= (unsigned char)(v >> 8);
		bytes[i * 6 / 8 + 1] |= (unsigned char)v;
	}
	*g = (struct hw_gaps){{0}};
	for (size_t i = 0; i < sizeof(*g); i++)
		g->word[i / 8] |= (uint64_t)bytes[1 + i] << i % 8 * 8;
	*unit_ms = 0;
	for (size_t i = 0; i < UNIT_BYTES && len != OLD_LEN; i++)
		*unit_ms |= (int64_t)unit[i] << i * 8;
	return bytes[0] == VERSION;
}
