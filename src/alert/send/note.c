/* SPDX-License-Identifier: MIT */
/*
 * See note.h. Invariant: no text from a device can end a header line, a JSON string or the headers of a mail. Such
 * texts pass through header(), hw_json_bytes() or quoted_printable(). Mail addresses come from the configuration, which
 * allows only printable ASCII in them.
 */
#include "alert/send/note.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heartwheel/utf8.h"
#include "http/buffer.h"
#include "http/json.h"

#define TITLE_MAX 900 /* longest title in bytes; longer titles are cut */
/* Bytes of an encoded word: with "Subject: " a line of 73. A line may have 76 (RFC 2047, section 2). */
#define WORD_MAX 39
#define QP_LINE  76 /* of quoted-printable */

int hw_fields_are_whole(const struct hw_fields *f)
{
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		if (!f->of[k])
			return -ENOMEM;
	return 0;
}

void hw_fields_fini(struct hw_fields *f)
{
	for (int k = 0; k < HW_NOTIFY_FIELDS; k++)
		free(f->of[k]);
	*f = (struct hw_fields){.bad = false};
}

static void put(void *arg, const char *text, size_t len)
{
	evbuffer_add(arg, text, len);
}

/* Returns a format with its fields filled in, on the heap; NULL if there is no memory. */
static char *filled(const char *format, const struct hw_fields *f)
{
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	hw_notify_fill(format, (const char *const *)f->of, put, b);
	char *text = hw_buffer_text(b);
	evbuffer_free(b);
	return text;
}

/* --- headers ------------------------------------------------------------------ */

/* Returns the length of the whole characters in the first `max` bytes of `text`, but at least one character. */
static size_t whole_characters(const char *text, size_t len, size_t max)
{
	size_t n = 0, more;
	uint32_t c;
	for (; n < len; n += more) {
		more = hw_utf8_next((const unsigned char *)text + n, len - n, &c);
		more = more ? more : 1;
		if (n > 0 && n + more > max)
			break;
	}
	return n;
}

static void add_base64(struct evbuffer *b, const char *text, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *s = (const unsigned char *)text;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < len ? (uint32_t)s[i + 1] << 8 : 0) |
		             (i + 2 < len ? s[i + 2] : 0);
		char four[4] = {digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]};
		if (i + 1 >= len)
			four[2] = '=';
		if (i + 2 >= len)
			four[3] = '=';
		evbuffer_add(b, four, 4);
	}
}

/* Writes "NAME: text" without a line end. Text other than ASCII becomes encoded words (RFC 2047), separated by
 * `between`. A control character becomes a space. */
static void header(struct evbuffer *b, const char *name, const char *text, const char *between)
{
	size_t len = whole_characters(text, strlen(text), TITLE_MAX);
	char flat[TITLE_MAX + 8];
	bool ascii = !strstr(text, "=?");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		flat[i] = c < 0x20 || c == 0x7f ? ' ' : text[i];
		ascii &= c < 0x7f;
	}
	evbuffer_add_printf(b, "%s: ", name);
	if (ascii) {
		evbuffer_add(b, flat, len);
		return;
	}
	for (size_t i = 0, n; i < len; i += n) {
		n = whole_characters(flat + i, len - i, WORD_MAX);
		evbuffer_add_printf(b, "%s=?UTF-8?B?", i ? between : "");
		add_base64(b, flat + i, n);
		evbuffer_add(b, "?=", 2);
	}
}

/* --- the templates ------------------------------------------------------------ */

static void add_text(struct evbuffer *b, const char *title, const char *text)
{
	evbuffer_add_printf(b, "%s\n%s%s%s", title, *text ? "\n" : "", text, *text ? "\n" : "");
}

/* Escapes Slack markup: https://docs.slack.dev/messaging/formatting-message-text, "Escaping text". Adds an invisible
 * space after each @: otherwise a device named "@everyone" would notify everyone on Discord and Mattermost. */
static void add_escaped(struct evbuffer *b, const char *text)
{
	static const char special[] = "&<>@";
	static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "@\u200b"};
	for (size_t n; *text; text += n) {
		n = strcspn(text, special);
		evbuffer_add(b, text, n);
		if (!text[n])
			return;
		evbuffer_add_printf(b, "%s", escaped[strchr(special, text[n]) - special]);
		n++;
	}
}

static int add_slack(struct evbuffer *b, const char *title, const char *text)
{
	struct evbuffer *escaped = evbuffer_new();
	struct hw_json j;
	if (!escaped)
		return -1;
	add_escaped(escaped, title);
	evbuffer_add(escaped, "\n", *text ? 1 : 0);
	add_escaped(escaped, text);
	const char *all = (const char *)evbuffer_pullup(escaped, -1);
	hw_json_begin(&j, b);
	hw_json_open(&j, '{');
	hw_json_bytes(&j, "text", all ? all : "", evbuffer_get_length(escaped));
	hw_json_close(&j, '}');
	evbuffer_free(escaped);
	return hw_json_end(&j);
}

static char *ntfy_headers(const char *title, bool bad)
{
	struct evbuffer *b = evbuffer_new();
	if (!b)
		return NULL;
	header(b, "Title", title, " ");
	evbuffer_add_printf(b, "\nPriority: %s\nTags: %s\n", bad ? "high" : "default",
	                    bad ? "warning" : "white_check_mark");
	char *text = hw_buffer_text(b);
	evbuffer_free(b);
	return text;
}

/* Encodes a text in lines of printable ASCII, which no mail server changes (RFC 2045, section 6.7). */
static void quoted_printable(struct evbuffer *b, const char *text)
{
	size_t column = 0;
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool ends = text[1] == '\n' || !text[1];
		if (c == '\n') {
			evbuffer_add(b, "\r\n", 2);
			column = 0;
			continue;
		}
		bool as_it_is = c > 0x20 ? c < 0x7f && c != '=' : c == ' ' && !ends;
		size_t wide = as_it_is ? 1 : 3;
		if (column + wide > QP_LINE - 1) {
			evbuffer_add(b, "=\r\n", 3);
			column = 0;
		}
		if (as_it_is)
			evbuffer_add(b, text, 1);
		else
			evbuffer_add_printf(b, "=%02X", c);
		column += wide;
	}
	evbuffer_add(b, "\r\n", 2);
}

/* Writes the header "Date:". Its names must be English, whatever the locale (RFC 5322, section 3.3). */
static void add_date(struct evbuffer *b, int64_t now_ms)
{
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t t = (time_t)(now_ms / 1000);
	struct tm tm;
	char zone[8] = "+0000";
	if (!localtime_r(&t, &tm))
		return;
	strftime(zone, sizeof(zone), "%z", &tm);
	evbuffer_add_printf(b, "Date: %s, %d %s %d %02d:%02d:%02d %s\r\n", days[tm.tm_wday], tm.tm_mday,
	                    months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec, zone);
}

/* A mail without a Message-ID is often treated as spam. */
static void add_message_id(struct evbuffer *b, const char *from, const char *id)
{
	const char *domain = strrchr(from, '@');
	if (domain)
		evbuffer_add_printf(b, "Message-ID: <%s%.*s>\r\n", id, (int)strcspn(domain, "> "), domain);
}

static void add_mail(struct evbuffer *b, const struct hw_style *style, const char *title, const char *text,
                     int64_t now_ms)
{
	/* Addresses must not be encoded words (RFC 2047, section 5). */
	evbuffer_add_printf(b, "From: %s\r\nTo: %s\r\n", style->from, style->to);
	header(b, "Subject", title, "\r\n ");
	evbuffer_add(b, "\r\n", 2);
	add_date(b, now_ms);
	add_message_id(b, style->from, style->id);
	evbuffer_add_printf(b, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
	                       "Content-Type: text/plain; charset=utf-8\r\n"
	                       "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
	quoted_printable(b, *text ? text : title);
}

/* --- making and ending -------------------------------------------------------- */

struct hw_note *hw_note_of(struct evbuffer *b, const char *type)
{
	size_t len = evbuffer_get_length(b);
	struct hw_note *note = malloc(sizeof(*note) + len + 1);
	if (!note)
		return NULL;
	*note = (struct hw_note){.type = type, .len = len};
	evbuffer_copyout(b, note->text, len);
	note->text[len] = '\0';
	return note;
}

static const char *type_of(enum hw_notify_template as)
{
	static const char *const types[] = {
		[HW_NOTIFY_JSON] = "application/json",  [HW_NOTIFY_TEXT] = "text/plain; charset=utf-8",
		[HW_NOTIFY_SLACK] = "application/json", [HW_NOTIFY_NTFY] = "text/plain; charset=utf-8",
		[HW_NOTIFY_MAIL] = "message/rfc822",
	};
	return types[as];
}

/* Writes the text of a note to `b`. Returns 0, or a negative number if there is no memory. */
static int write_note(struct evbuffer *b, const struct hw_style *s, const char *title, const char *text, int64_t now_ms)
{
	if (s->as == HW_NOTIFY_SLACK)
		return add_slack(b, title, text);
	if (s->as == HW_NOTIFY_MAIL)
		add_mail(b, s, title, text, now_ms);
	else if (s->as == HW_NOTIFY_NTFY)
		evbuffer_add(b, *text ? text : title, strlen(*text ? text : title));
	else
		add_text(b, title, text);
	return 0;
}

static struct hw_note *readable(const struct hw_style *style, const struct hw_fields *f, int64_t now_ms)
{
	struct evbuffer *b = evbuffer_new();
	char *title = filled(style->title, f), *text = filled(style->text, f);
	struct hw_note *note = NULL;
	if (b && title && text && write_note(b, style, title, text, now_ms) == 0)
		note = hw_note_of(b, type_of(style->as));
	if (note && style->as == HW_NOTIFY_NTFY && !(note->headers = ntfy_headers(title, f->bad))) {
		hw_note_free(note);
		note = NULL;
	}
	if (b)
		evbuffer_free(b);
	free(title);
	free(text);
	return note;
}

struct hw_note *hw_note_new(const struct hw_style *style, const struct hw_fields *f, struct evbuffer *json,
                            int64_t now_ms)
{
	return style->as == HW_NOTIFY_JSON ? hw_note_of(json, type_of(style->as)) : readable(style, f, now_ms);
}

void hw_note_free(struct hw_note *n)
{
	if (n)
		free(n->headers);
	free(n);
}
