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

/* The members that mean something: first those of a report, as hw_report_fields[] has them. */
enum field { REPORTED, TIME = HW_REPORT_FIELDS, ONLINE, TIMEOUT, BY, SEQ, REASON, LAST_SEEN, ID, CANARY, FIELDS };

static const char *field_name(int f)
{
	static const char *const names[FIELDS] = {
		[TIME] = "time",     [ONLINE] = "online", [TIMEOUT] = "timeout",     [BY] = "by",
		[SEQ] = "seq",       [REASON] = "reason", [LAST_SEEN] = "last_seen", [ID] = "id",
		[CANARY] = "canary",
	};
	return f < HW_REPORT_FIELDS ? hw_report_fields[f].name : names[f];
}

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

/* cJSON does not say why it gave up; what it allocates with does. Its hooks are the process's, and set once, before
 * there is a second thread; what they note is each thread's own. */
static _Thread_local bool starved;

static void *take_memory(size_t size)
{
	void *p = malloc(size);
	starved |= !p;
	return p;
}

__attribute__((constructor)) static void set_hooks(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){take_memory, free});
}

static cJSON *parse(const char *text, size_t len, const char **end)
{
	starved = false;
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
			if (strcmp(m->string, field_name(f)) != 0)
				continue;
			if (!found[f])
				found[f] = m;
			break;
		}
	}
}

/* The member at a path, or NULL. */
static const cJSON *find_member(const cJSON *v, const char *path)
{
	while (cJSON_IsObject(v)) {
		size_t n = strcspn(path, ".");
		const cJSON *m;
		cJSON_ArrayForEach(m, v)
		{
			if (strlen(m->string) == n && memcmp(m->string, path, n) == 0)
				break;
		}
		v = m;
		if (!v || !path[n])
			return v;
		path += n + 1;
	}
	return NULL;
}

/* The fields that stand elsewhere than under their names. */
static void collect_fields(const cJSON *object, const cJSON *found[FIELDS], const struct hw_reading *how)
{
	for (int f = 0; how->plain && f < FIELDS; f++)
		if (f != BY && f != SEQ)
			found[f] = NULL;
	for (int r = 0; r < HW_REPORT_FIELDS; r++) {
		const cJSON *at = NULL;
		bool elsewhere = false;
		for (size_t i = 0; !at && i < how->n; i++) {
			if (how->fields[i].has != 1U << r)
				continue;
			elsewhere = true;
			at = find_member(object, how->fields[i].path);
			at = cJSON_IsNull(at) ? NULL : at;
		}
		if (elsewhere)
			found[r] = at;
	}
}

/* A monitor says what it says in its own words, whatever the group's devices do. */
static void collect_all(const cJSON *object, const cJSON *found[FIELDS], const struct hw_reading *how)
{
	collect(object, found);
	if (how && !(cJSON_IsString(found[BY]) && cJSON_IsNumber(found[SEQ])))
		collect_fields(object, found, how);
}

static bool is_finite_number(const cJSON *v)
{
	return cJSON_IsNumber(v) && isfinite(v->valuedouble);
}

/* A member of the wrong type or length; the first is named. */
static void blame(struct hw_payload *p, enum field f)
{
	if (!p->malformed)
		p->fault = field_name((int)f);
	p->malformed = true;
}

/* A member that ought to be a finite number. Absent is fine, and false. */
static bool take_number(struct hw_payload *p, const cJSON *const found[FIELDS], enum field f, double *out)
{
	const cJSON *v = found[f];
	if (!v)
		return false;
	if (!is_finite_number(v)) {
		blame(p, f);
		return false;
	}
	*out = v->valuedouble;
	return true;
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

static void take_text(struct hw_payload *p, const cJSON *v, int k)
{
	char **out = hw_report_string(&p->report, k);
	if (is_short_text(v))
		*out = strdup(v->valuestring);
	if (*out)
		p->report.has |= 1U << k;
	else
		blame(p, (enum field)k);
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

static void take_json(struct hw_payload *p, const cJSON *v, int k)
{
	/* cJSON asks for a little more room than it uses: for the widest number, and a NUL per level. */
	char text[HW_REPORT_DATA_MAX + 64], **out = hw_report_string(&p->report, k);
	if (all_finite(v) && cJSON_PrintPreallocated((cJSON *)(uintptr_t)v, text, (int)sizeof(text), 0) &&
	    strlen(text) <= HW_REPORT_DATA_MAX)
		*out = strdup(text);
	if (*out)
		p->report.has |= 1U << k;
	else
		blame(p, (enum field)k);
}

static void take_report(struct hw_payload *p, const cJSON *const found[FIELDS])
{
	for (int k = 0; k < HW_REPORT_FIELDS; k++) {
		if (!found[k])
			continue;
		if (hw_report_fields[k].kind == HW_REPORT_TEXT)
			take_text(p, found[k], k);
		else if (hw_report_fields[k].kind == HW_REPORT_JSON)
			take_json(p, found[k], k);
		else if (take_number(p, found, (enum field)k, hw_report_number(&p->report, k)))
			p->report.has |= 1U << k;
	}
	p->has_time = take_number(p, found, TIME, &p->time_s);
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
		blame(p, ONLINE);
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
	p->canary = cJSON_IsTrue(found[CANARY]);
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
	hw_payload_read(p, bytes, len, NULL);
}

void hw_payload_read(struct hw_payload *p, const void *bytes, size_t len, const struct hw_reading *how)
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
		p->malformed = starved || !how || !how->plain;
		p->no_memory = starved;
		return;
	}
	collect_all(object, found, how);
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
	p->fault = "$state";
}

int hw_payload_element(struct hw_payload *p, const char *text, size_t len, const struct hw_reading *how, char *id,
                       size_t cap)
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
	if (name != v)
		collect_all(v, found, how);
	if (cJSON_IsString(name)) {
		rc = snprintf(id, cap, "%s", name->valuestring);
		if (name != v)
			take_object(p, found);
	}
	cJSON_Delete(v);
	return v || !starved ? rc : -ENOMEM;
}

static bool is_written(const cJSON *v, const char *text)
{
	char *end;
	if (cJSON_IsString(v))
		return strcmp(v->valuestring, text) == 0;
	if (cJSON_IsBool(v))
		return strcmp(text, cJSON_IsTrue(v) ? "true" : "false") == 0;
	if (cJSON_IsNull(v))
		return strcmp(text, "null") == 0;
	if (!cJSON_IsNumber(v))
		return false;
	double number = strtod(text, &end);
	return end != text && !*end && number == v->valuedouble;
}

/* NULL: it is none, or (starved) could not be read. */
static cJSON *object_of(const void *bytes, size_t len)
{
	const unsigned char *s = bytes;
	while (len > 0 && is_space(*s)) {
		s++;
		len--;
	}
	starved = false;
	return len > 0 && *s == '{' ? parse_object(s, len) : NULL;
}

int hw_payload_member_is(const void *bytes, size_t len, const char *path, const char *value)
{
	cJSON *object = object_of(bytes, len);
	if (!object)
		return starved ? -ENOMEM : 0;
	bool same = is_written(find_member(object, path), value);
	cJSON_Delete(object);
	return same;
}

int hw_payload_text(const void *bytes, size_t len, const char *path, char *text, size_t cap)
{
	cJSON *object = object_of(bytes, len);
	if (!object)
		return starved ? -ENOMEM : -EINVAL;
	const cJSON *v = find_member(object, path);
	int rc = cJSON_IsString(v) ? snprintf(text, cap, "%s", v->valuestring) : -EINVAL;
	cJSON_Delete(object);
	return rc;
}

void hw_payload_fini(struct hw_payload *p)
{
	hw_report_fini(&p->report);
}
