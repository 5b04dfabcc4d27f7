/* SPDX-License-Identifier: MIT */
/* Makes text readable: one pass over UTF-8, character by character. */
#include "ctl/text.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "heartwheel/print.h"

void hw_screen_init(struct hw_screen *s)
{
	struct winsize size = {0};
	bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	*s = (struct hw_screen){.terminal = isatty(STDOUT_FILENO) == 1, .ascii = !utf8};
	if (!s->terminal)
		return;
	const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
	s->colour = !(no_colour && *no_colour) && !(kind && strcmp(kind, "dumb") == 0);
	const char *columns = getenv("COLUMNS");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		s->width = size.ws_col;
	else if (columns && atoi(columns) > 0)
		s->width = (size_t)atoi(columns);
	else
		s->width = 80;
}

bool hw_screen_narrower(const struct hw_screen *s, size_t columns)
{
	return s->width > 0 && s->width < columns;
}

/* Decodes one UTF-8 character into *c. Returns its length; 0: malformed. */
static size_t decode(const char *text, uint32_t *c)
{
	const unsigned char *t = (const unsigned char *)text;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = t[0] < 0x80 ? 1 : t[0] >> 5 == 6 ? 2 : t[0] >> 4 == 14 ? 3 : t[0] >> 3 == 30 ? 4 : 0;
	if (len <= 1) {
		*c = t[0];
		return len;
	}
	*c = t[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((t[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (t[i] & 0x3f);
	}
	return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : len;
}

/* Whether a character is unsafe to show: a terminal may execute it, or it is invisible or changes the direction of
 * text. */
static bool unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x061c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
	       c == 0xfeff;
}

/* Writes the next character of *text as it is shown, and moves past it. Returns how many columns it takes. */
static size_t next_shown(const struct hw_screen *s, const char **text, char out[16])
{
	uint32_t c;
	size_t len = decode(*text, &c);
	if (len > 0 && !unsafe(c) && (c < 0x80 || !s->ascii)) {
		memcpy(out, *text, len);
		out[len] = '\0';
		*text += len;
		int columns = c < 0x80 ? 1 : wcwidth((wchar_t)c);
		return columns < 0 ? 1 : (size_t)columns;
	}
	if (len == 0 || c < 0x80)
		snprintf(out, 16, "\\x%02x", len == 0 ? (unsigned)(unsigned char)**text : (unsigned)c);
	else
		snprintf(out, 16, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
	*text += len == 0 ? 1 : len;
	return strlen(out);
}

/* The columns of the whole text. */
static size_t measure(const struct hw_screen *s, const char *text)
{
	size_t columns = 0;
	char shown[16];
	while (*text)
		columns += next_shown(s, &text, shown);
	return columns;
}

/* Appends up to `max` columns of `text` as it is shown, after its first `skip` columns. */
static size_t append(const struct hw_screen *s, const char *text, size_t skip, size_t max, char *out)
{
	size_t columns = 0, at = 0;
	char shown[16];
	while (*text) {
		size_t more = next_shown(s, &text, shown);
		at += more;
		if (at - more < skip)
			continue;
		if (columns + more > max)
			break;
		strcat(out, shown);
		columns += more;
	}
	return columns;
}

/* Returns a copy that is safe to show. A long text is shortened in the middle: ids with a common prefix differ at their
 * ends, so the end gets as much room as the begin. */
char *hw_text_clean(const struct hw_screen *s, const char *text, size_t max, size_t *width)
{
	const char *dots = s->ascii ? "..." : "\u2026";
	size_t dots_width = s->ascii ? 3 : 1, all = measure(s, text), columns;
	char *out = malloc(strlen(text) * 4 + 8);
	if (!out)
		return NULL;
	*out = '\0';
	if (max == 0 || all <= max) {
		columns = append(s, text, 0, all, out);
	} else if (max < dots_width + 2) {
		columns = append(s, text, 0, max, out);
	} else {
		size_t tail = (max - dots_width) / 2;
		columns = append(s, text, 0, max - dots_width - tail, out) + dots_width;
		strcat(out, dots);
		columns += append(s, text, all - tail, tail, out);
	}
	if (width)
		*width = columns;
	return out;
}

/* Parses an escape at the begin of `text` into a code point. Returns its length; 0: none. */
static size_t read_escape(const char *text, uint32_t *c)
{
	size_t digits = text[0] != '\\' ? 0 : text[1] == 'x' ? 2 : text[1] == 'u' ? 4 : text[1] == 'U' ? 8 : 0;
	char number[9] = "";
	if (digits == 0 || strspn(text + 2, "0123456789abcdef") < digits)
		return 0;
	memcpy(number, text + 2, digits);
	*c = (uint32_t)strtoul(number, NULL, 16);
	return 2 + digits;
}

/* Never longer than the escape. */
static size_t encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)((0xf00u >> len & 0xf0) | c);
	return len;
}

bool hw_text_unescape(char *text)
{
	uint32_t c;
	size_t len, n = 0;
	bool any = false;
	for (const char *at = text; *at; at += len ? len : 1) {
		len = read_escape(at, &c);
		if (len > 0 && (c == 0 || c > 0x10ffff))
			return false;
		any |= len > 0;
	}
	for (const char *at = text; any && *at; at += len ? len : 1) {
		len = read_escape(at, &c);
		if (len > 0)
			n += encode(c, text + n);
		else
			text[n++] = *at;
	}
	if (any)
		text[n] = '\0';
	return any;
}

#define WORD_MAX 64

/* Returns the distance of two words: optimal string alignment (Damerau 1964, Levenshtein 1966), with three rows of
 * the table. */
unsigned hw_text_distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t n = strlen(a), m = strlen(b);
	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (unsigned k = 0; k <= m; k++)
		last[k] = k;
	for (unsigned i = 1; i <= n; i++) {
		row[0] = i;
		for (unsigned k = 1; k <= m; k++) {
			unsigned least = last[k - 1] + (a[i - 1] != b[k - 1]);
			least = last[k] + 1 < least ? last[k] + 1 : least;
			least = row[k - 1] + 1 < least ? row[k - 1] + 1 : least;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < least)
				least = before[k - 2] + 1;
			row[k] = least;
		}
		unsigned *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[m];
}

bool hw_text_may_mean(const char *word, const char *name)
{
	size_t len = strlen(word);
	return len > 0 && (strncmp(word, name, len) == 0 || hw_text_distance(word, name) <= (len < 4 ? 1 : 2));
}

void hw_text_print(FILE *f, const struct hw_screen *s, const char *text)
{
	char shown[16];
	while (*text) {
		next_shown(s, &text, shown);
		fputs(shown, f);
	}
}

int hw_text_column(const struct hw_screen *s, int width, const char *text)
{
	int columns = (int)measure(s, text);
	hw_text_print(stdout, s, text);
	for (; columns < width; columns++)
		putchar(' ');
	return columns;
}

void hw_text_print_name(const struct hw_screen *s, const char *name)
{
	if (s->terminal)
		hw_text_print(stdout, s, name);
	else
		fputs(name, stdout);
	putchar('\n');
}

#define REST_LEAST 12

void hw_text_print_rest(FILE *f, const struct hw_screen *s, size_t used, const char *text)
{
	char *clean = hw_text_clean(s, text, s->width >= used + REST_LEAST ? s->width - used : 0, NULL);
	fputs(clean ? clean : "?", f);
	free(clean);
}

void hw_text_print_json(FILE *f, const struct hw_screen *s, const char *json)
{
	bool ascii = s && s->ascii;
	while (*json) {
		uint32_t c;
		size_t len = decode(json, &c);
		if (len == 0)
			fputs("\\ufffd", f);
		else if (ascii && c > 0xffff)
			fprintf(f, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)), (unsigned)(0xdc00 | (c & 0x3ff)));
		else if (unsafe(c) || (ascii && c > 0x7f))
			fprintf(f, "\\u%04x", (unsigned)c);
		else
			fwrite(json, 1, len, f);
		json += len == 0 ? 1 : len;
	}
}

const char *hw_paint(const struct hw_screen *s, enum hw_paint p)
{
	static const char *const codes[] = {"\x1b[0m", "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[1m"};
	return s->colour ? codes[p] : "";
}

enum hw_paint hw_state_paint(const char *state)
{
	if (strcmp(state, "online") == 0)
		return HW_GOOD;
	return strcmp(state, "offline") == 0 ? HW_BAD : HW_DIM;
}

char *hw_text_count(int64_t n, char *buf)
{
	char digits[HW_SPAN_MAX];
	size_t len = hw_print(digits, sizeof(digits), "%" PRId64, n), at = 0;
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

char *hw_text_span(int64_t ms, char *buf)
{
	static const struct {
		int64_t s;
		char name;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int64_t s = ms / 1000;
	size_t i = 0;

	if (ms < 1000 || (ms < 10000 && ms % 1000 != 0)) {
		if (ms < 1000)
			snprintf(buf, HW_SPAN_MAX, "%" PRId64 "ms", ms);
		else
			snprintf(buf, HW_SPAN_MAX, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
		return buf;
	}
	while (i < 3 && s < units[i].s)
		i++;
	int64_t rest = i < 3 ? s % units[i].s / units[i + 1].s : 0;
	size_t n = hw_print(buf, HW_SPAN_MAX, "%" PRId64 "%c", s / units[i].s, units[i].name);
	if (rest > 0)
		snprintf(buf + n, HW_SPAN_MAX - n, "%" PRId64 "%c", rest, units[i + 1].name);
	return buf;
}

char *hw_text_ago(int64_t ms, char *buf)
{
	if (ms < 1000)
		return strcpy(buf, "now");
	hw_text_span(ms / 1000 * 1000, buf);
	return strcat(buf, " ago");
}

static char *format_time(int64_t wall_ms, const char *format, char *buf)
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;
	if (!localtime_r(&t, &tm) || strftime(buf, HW_SPAN_MAX, format, &tm) == 0)
		snprintf(buf, HW_SPAN_MAX, "%" PRId64, wall_ms / 1000);
	return buf;
}

char *hw_text_clock(int64_t wall_ms, char *buf)
{
	return format_time(wall_ms, "%Y-%m-%d %H:%M:%S", buf);
}

char *hw_text_zone(int64_t wall_ms, char *buf)
{
	return format_time(wall_ms, "%Z", buf);
}

char *hw_text_time(int64_t wall_ms, char *buf)
{
	return format_time(wall_ms, "%H:%M:%S", buf);
}

char *hw_text_minute(int64_t wall_ms, char *buf)
{
	return format_time(wall_ms, "%m-%d %H:%M", buf);
}

int64_t hw_wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
