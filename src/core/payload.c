/* SPDX-License-Identifier: MIT */
/*
 * What a heartbeat's payload says, and what a device reports of itself.
 *
 * cJSON is more lenient than JSON: it passes over control characters, takes any bytes for text, and cuts a string at
 * \u0000 or a broken escape. So the bytes are judged first (scan), and only what can be JSON is given to it; whatever
 * it makes of that is type-checked field by field. It allocates a node per value and recurses at most
 * CJSON_NESTING_LIMIT deep.
 *
 * Cost: a payload that does not begin with '{' is one look at its first byte. An object is read twice, with an
 * allocation or two per member.
 */
#include "heartwheel/payload.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

/* The largest integer below which a double holds every one. */
#define EXACT_MAX 9007199254740992.0

enum field { TIME, ONLINE, BATTERY, RSSI, IP, VERSION, UPTIME, DATA, TIMEOUT, BY, SEQ, REASON, LAST_SEEN, ID, FIELDS };

static const char *const field_names[FIELDS] = {
	[TIME] = "time",       [ONLINE] = "online", [BATTERY] = "battery",     [RSSI] = "rssi",       [IP] = "ip",
	[VERSION] = "version", [UPTIME] = "uptime", [DATA] = "data",           [TIMEOUT] = "timeout", [BY] = "by",
	[SEQ] = "seq",         [REASON] = "reason", [LAST_SEEN] = "last_seen", [ID] = "id",
};

static bool is_space(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether cJSON reads what a backslash begins right, or refuses it: not \u0000, which a C string cannot hold, and not
 * \u without four hexadecimal digits, of which it makes the same. The text ends in a brace: something follows. */
static bool scan_escape(const unsigned char *s, size_t len)
{
	if (s[1] != 'u')
		return true;
	if (len < 6 || memcmp(s + 2, "0000", 4) == 0)
		return false;
	return isxdigit(s[2]) && isxdigit(s[3]) && isxdigit(s[4]) && isxdigit(s[5]);
}

/* Whether the bytes can be JSON text: valid UTF-8, no control character but white space between the values, and only
 * escapes that cJSON reads right. */
static bool scan(const unsigned char *s, size_t len)
{
	bool quoted = false;
	uint32_t c;

	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next(s + i, len - i, &c);
		if (n == 0 || (c < 0x20 && (quoted || !is_space((unsigned char)c))))
			return false;
		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\') {
			if (!scan_escape(s + i, len - i))
				return false;
			n = 2;
		}
	}
	return true;
}

/* cJSON does not say why it gave up; what it allocates with does. Its hooks are the process's, so this is too. */
static _Thread_local bool starved;

static void *take_memory(size_t size)
{
	void *p = malloc(size);
	starved |= !p;
	return p;
}

static cJSON *parse(const char *text, size_t len, const char **end)
{
	cJSON_Hooks hooks = {take_memory, free};

	starved = false;
	cJSON_InitHooks(&hooks);
	return cJSON_ParseWithLengthOpts(text, len, end, 0);
}

/* The object in `text`, or NULL if that is not the whole of it. */
static cJSON *parse_object(const unsigned char *text, size_t len)
{
	const char *end = NULL;

	while (len > 0 && is_space(text[len - 1]))
		len--;
	/* cJSON before 1.7.18 reads past a comma at the end (CVE-2023-53154): not with a brace there. */
	if (text[len - 1] != '}' || !scan(text, len))
		return NULL;
	cJSON *o = parse((const char *)text, len, &end);
	if (o && end != (const char *)text + len) {
		cJSON_Delete(o);
		return NULL;
	}
	return o;
}

/* Finds the members that mean something; of several with one name the first counts. */
static void collect(const cJSON *object, const cJSON *found[FIELDS])
{
	const cJSON *m;

	memset(found, 0, FIELDS * sizeof(found[0]));
	cJSON_ArrayForEach(m, object)
	{
		for (int f = 0; f < FIELDS; f++) {
			if (strcmp(m->string, field_names[f]) != 0)
				continue;
			if (!found[f])
				found[f] = m;
			break;
		}
	}
}

static bool is_finite_number(const cJSON *v)
{
	return cJSON_IsNumber(v) && isfinite(v->valuedouble);
}

/* A member that ought to be a finite number. Absent is fine, and false. */
static bool take_number(struct hw_payload *p, const cJSON *v, double *out)
{
	if (!v)
		return false;
	if (!is_finite_number(v)) {
		p->malformed = true;
		return false;
	}
	*out = v->valuedouble;
	return true;
}

static void take_reported_number(struct hw_payload *p, const cJSON *v, double *out, unsigned has)
{
	if (take_number(p, v, out))
		p->report.has |= has;
}

static bool is_short_text(const cJSON *v)
{
	if (!cJSON_IsString(v))
		return false;
	size_t len = strlen(v->valuestring);
	uint32_t c;
	if (len > HW_REPORT_TEXT_MAX)
		return false;
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)v->valuestring + i, len - i, &c);
		if (n == 0 || hw_utf8_is_control(c))
			return false;
	}
	return true;
}

static void take_text(struct hw_payload *p, const cJSON *v, char **out, unsigned has)
{
	if (!v)
		return;
	if (is_short_text(v))
		*out = strdup(v->valuestring);
	if (*out)
		p->report.has |= has;
	else
		p->malformed = true;
}

/* 1e999 is JSON, but no number that could be written again. Recursion is bounded by the parser's. */
static bool all_finite(const cJSON *v)
{
	const cJSON *m;

	if (cJSON_IsNumber(v))
		return isfinite(v->valuedouble);
	cJSON_ArrayForEach(m, v)
	{
		if (!all_finite(m))
			return false;
	}
	return true;
}

static void take_data(struct hw_payload *p, const cJSON *v)
{
	/* cJSON asks for a little more room than it uses: for the widest number, and a NUL per level. */
	char text[HW_REPORT_DATA_MAX + 64];

	if (!v)
		return;
	if (all_finite(v) && cJSON_PrintPreallocated((cJSON *)(uintptr_t)v, text, (int)sizeof(text), 0) &&
	    strlen(text) <= HW_REPORT_DATA_MAX)
		p->report.data = strdup(text);
	if (p->report.data)
		p->report.has |= HW_HAS_DATA;
	else
		p->malformed = true;
}

static void take_report(struct hw_payload *p, const cJSON *const found[FIELDS])
{
	take_reported_number(p, found[BATTERY], &p->report.battery, HW_HAS_BATTERY);
	take_reported_number(p, found[RSSI], &p->report.rssi, HW_HAS_RSSI);
	take_reported_number(p, found[UPTIME], &p->report.uptime, HW_HAS_UPTIME);
	take_text(p, found[IP], &p->report.ip, HW_HAS_IP);
	take_text(p, found[VERSION], &p->report.version, HW_HAS_VERSION);
	take_data(p, found[DATA]);
	p->has_time = take_number(p, found[TIME], &p->time_s);
}

static void take_device(struct hw_payload *p, const cJSON *const found[FIELDS])
{
	const cJSON *timeout = found[TIMEOUT], *online = found[ONLINE];

	p->kind = HW_PAYLOAD_FIELDS;
	if (timeout && is_finite_number(timeout) && timeout->valuedouble >= 0) {
		p->has_timeout = true;
		p->timeout_s = timeout->valuedouble;
	} else if (timeout) {
		p->timeout_refused = true;
	}
	if (cJSON_IsBool(online))
		p->goodbye = cJSON_IsFalse(online);
	else if (online)
		p->malformed = true;
}

/* A string that does not fit is left empty: half a name would be somebody else's. */
static void copy_text(char *to, size_t cap, const cJSON *v)
{
	if (cJSON_IsString(v) && strlen(v->valuestring) < cap)
		memcpy(to, v->valuestring, strlen(v->valuestring) + 1);
}

static void take_monitor(struct hw_payload *p, const cJSON *const found[FIELDS])
{
	double seq = found[SEQ]->valuedouble;

	p->kind = HW_PAYLOAD_MONITOR;
	p->malformed = false;
	p->online = cJSON_IsTrue(found[ONLINE]);
	copy_text(p->by, sizeof(p->by), found[BY]);
	copy_text(p->reason, sizeof(p->reason), found[REASON]);
	if (seq >= 0 && seq <= EXACT_MAX)
		p->seq = (int64_t)seq;
	if (found[LAST_SEEN] && is_finite_number(found[LAST_SEEN]))
		p->last_seen_s = found[LAST_SEEN]->valuedouble;
}

static void take_object(struct hw_payload *p, const cJSON *const found[FIELDS])
{
	take_report(p, found);
	if (cJSON_IsString(found[BY]) && cJSON_IsNumber(found[SEQ]))
		take_monitor(p, found);
	else
		take_device(p, found);
}

void hw_payload_decode(struct hw_payload *p, const void *bytes, size_t len)
{
	const unsigned char *s = bytes;
	const cJSON *found[FIELDS];
	size_t at = 0;

	memset(p, 0, sizeof(*p));
	while (at < len && is_space(s[at]))
		at++;
	if (at == len || s[at] != '{')
		return;
	starved = false;
	cJSON *object = parse_object(s + at, len - at);
	if (!object) {
		p->malformed = true;
		p->no_memory = starved;
		return;
	}
	collect(object, found);
	take_object(p, found);
	cJSON_Delete(object);
}

static const struct {
	const char *name;
	enum { ALIVE, ASLEEP, GONE } is;
} homie_states[] = {{"init", ALIVE},      {"ready", ALIVE},       {"alert", ALIVE},
                    {"sleeping", ASLEEP}, {"disconnected", GONE}, {"lost", GONE}};

void hw_payload_homie(struct hw_payload *p, const void *bytes, size_t len)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < sizeof(homie_states) / sizeof(homie_states[0]); i++) {
		if (strlen(homie_states[i].name) != len || memcmp(homie_states[i].name, bytes, len) != 0)
			continue;
		p->kind = HW_PAYLOAD_FIELDS;
		p->goodbye = homie_states[i].is == GONE;
		p->has_timeout = !p->goodbye;
		p->timeout_s = homie_states[i].is == ASLEEP ? HUGE_VAL : 0;
		return;
	}
	p->malformed = true;
}

int hw_payload_element(struct hw_payload *p, const char *text, size_t len, char *id, size_t cap)
{
	const cJSON *found[FIELDS] = {NULL};
	const char *end;
	int rc = -EINVAL;

	memset(p, 0, sizeof(*p));
	if (len == 0 || (text[0] != '"' && text[0] != '{') || !scan((const unsigned char *)text, len))
		return rc;
	cJSON *v = parse(text, len, &end);
	if (cJSON_IsObject(v))
		collect(v, found);
	const cJSON *name = cJSON_IsString(v) ? v : found[ID];
	if (cJSON_IsString(name)) {
		rc = snprintf(id, cap, "%s", name->valuestring);
		if (name != v)
			take_object(p, found);
	}
	cJSON_Delete(v);
	return v || !starved ? rc : -ENOMEM;
}

void hw_payload_fini(struct hw_payload *p)
{
	hw_report_fini(&p->report);
}

static void move_text(char **to, char **from)
{
	free(*to);
	*to = *from;
	*from = NULL;
}

void hw_report_merge(struct hw_report *to, struct hw_report *from)
{
	if (from->has & HW_HAS_BATTERY)
		to->battery = from->battery;
	if (from->has & HW_HAS_RSSI)
		to->rssi = from->rssi;
	if (from->has & HW_HAS_UPTIME)
		to->uptime = from->uptime;
	if (from->has & HW_HAS_IP)
		move_text(&to->ip, &from->ip);
	if (from->has & HW_HAS_VERSION)
		move_text(&to->version, &from->version);
	if (from->has & HW_HAS_DATA)
		move_text(&to->data, &from->data);
	to->has |= from->has;
	hw_report_fini(from);
}

void hw_report_fini(struct hw_report *r)
{
	free(r->ip);
	free(r->version);
	free(r->data);
	memset(r, 0, sizeof(*r));
}

/* Text that is measured as far as it goes and written as far as there is room. */
struct sink {
	char *buf;
	size_t cap, len;
};

static void put(struct sink *o, const char *text, size_t n)
{
	if (o->len < o->cap) {
		size_t room = o->cap - o->len;
		memcpy(o->buf + o->len, text, n < room ? n : room);
	}
	o->len += n;
}

static void put_str(struct sink *o, const char *text)
{
	put(o, text, strlen(text));
}

static void put_escaped(struct sink *o, unsigned char c)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
	const char *at = strchr(plain, c);
	char esc[8];

	if (c && at)
		snprintf(esc, sizeof(esc), "\\%c", letter[at - plain]);
	else
		snprintf(esc, sizeof(esc), "\\u%04x", c);
	put_str(o, esc);
}

static void put_quoted(struct sink *o, const char *text, size_t len)
{
	uint32_t c;

	put(o, "\"", 1);
	for (size_t i = 0, n; i < len; i += n) {
		n = hw_utf8_next((const unsigned char *)text + i, len - i, &c);
		if (n == 0) {
			put_str(o, "\xef\xbf\xbd"); /* U+FFFD for each byte that is none of a character */
			n = 1;
		} else if (c < 0x20 || c == '"' || c == '\\') {
			put_escaped(o, (unsigned char)c);
		} else {
			put(o, text + i, n);
		}
	}
	put(o, "\"", 1);
}

static void put_number(struct sink *o, const char *key, double v)
{
	char text[32];

	put_str(o, key);
	put(o, text, (size_t)hw_number_text(v, text, sizeof(text)));
}

size_t hw_report_json(const struct hw_report *r, char *buf, size_t cap)
{
	struct sink o = {buf, cap, 0};

	if (r->has & HW_HAS_BATTERY)
		put_number(&o, ",\"battery\":", r->battery);
	if (r->has & HW_HAS_RSSI)
		put_number(&o, ",\"rssi\":", r->rssi);
	if (r->has & HW_HAS_IP) {
		put_str(&o, ",\"ip\":");
		put_quoted(&o, r->ip, strlen(r->ip));
	}
	if (r->has & HW_HAS_VERSION) {
		put_str(&o, ",\"version\":");
		put_quoted(&o, r->version, strlen(r->version));
	}
	if (r->has & HW_HAS_UPTIME)
		put_number(&o, ",\"uptime\":", r->uptime);
	if (r->has & HW_HAS_DATA) {
		put_str(&o, ",\"data\":");
		put_str(&o, r->data);
	}
	if (o.len < cap)
		buf[o.len] = '\0';
	return o.len;
}

int hw_number_text(double v, char *buf, size_t cap)
{
	int n = 0;

	if (!isfinite(v))
		return snprintf(buf, cap, "null"); /* what JSON has for it */
	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(buf, cap, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	/* A program that has called setlocale() may write a comma. */
	char *comma = strchr(buf, ',');
	if (comma)
		*comma = '.';
	return n;
}

size_t hw_json_quote(const char *text, size_t len, char *buf, size_t cap)
{
	struct sink o = {buf, cap, 0};

	put_quoted(&o, text, len);
	if (cap > 0)
		buf[o.len < cap ? o.len : cap - 1] = '\0';
	return o.len;
}
