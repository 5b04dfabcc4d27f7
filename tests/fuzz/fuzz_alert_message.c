/* SPDX-License-Identifier: MIT */
/*
 * Messages of heartwheel-alert, which are read back from Redis: any bytes. What is made of them for a receiver stays
 * within its limits, is JSON where it must be, and no text ends a header. Also the words of servers: any bytes.
 */
#include <event2/buffer.h>
#include <string.h>

#include "alert/send/alerts.h"
#include "alert/send/form.h"
#include "alert/send/note.h"
#include "alert/send/transfer.h"
#include "fuzz.h"
#include "heartwheel/json.h"

#define NOW_MS INT64_C(1780000000000)

static char title[] = "{summary} {device} {group}", list[] = "{list}\\n{now} {node} {time} {count} {status} {silent}",
	    from[] = "Hub <hub@example.org>", to[] = "ops@example.org", key[] = "R1";

static void check_json(struct hw_note *note, bool array)
{
	MUST(note);
	MUST(array ? hw_json_array_valid(note->text, note->len) : hw_json_object_valid(note->text, note->len));
	MUST(note->len <= 512 << 10);
	hw_note_free(note);
}

/* Printable ASCII; `ends`: the bytes that may end a line. */
static void check_ascii(const char *text, const char *ends)
{
	for (; *text; text++)
		MUST((*text >= ' ' && *text <= '~') || strchr(ends, *text));
}

static void check_template(const struct hw_send_message *m, enum hw_receiver_type type, const char *json, size_t len)
{
	const struct hw_receiver_settings c = {.type = (int)type,
	                                       .template = HW_NOTIFY_TEXT,
	                                       .title = title,
	                                       .text = list,
	                                       .mail_from = from,
	                                       .mail_to = to};
	struct hw_note *note = hw_form_template(&c, m, json, len);
	MUST(note);
	if (type == HW_RECEIVER_SLACK) {
		MUST(!strstr(note->text, "<!") && !strstr(note->text, "<@"));
		check_json(note, false);
		return;
	}
	if (type == HW_RECEIVER_NTFY) {
		check_ascii(note->headers, "\n");
		size_t lines = 0;
		for (const char *s = note->headers; *s; s++)
			lines += *s == '\n';
		MUST(lines == 3);
	}
	if (type == HW_RECEIVER_SMTP) {
		const char *end = strstr(note->text, "\r\n\r\n");
		check_ascii(note->text, "\r\n");
		MUST(end && strncmp(note->text, "From: ", 6) == 0);
		for (const char *s = note->text; s < end; s = strstr(s, "\r\n") + 2)
			MUST(strchr("FTSDMAC ", *s));
	}
	hw_note_free(note);
}

static void check_alerts(const struct hw_send_message *m)
{
	struct hw_alerts a = {0};
	char after[HW_INCIDENT_ID + 1] = "";
	struct evbuffer *b = evbuffer_new();
	MUST(b);
	for (size_t k = 0; k < m->n; k++)
		MUST(hw_alerts_put(&a, &m->news[k].incident, NOW_MS));
	MUST(a.n > 0 && a.n <= m->n);
	MUST(hw_alerts_batch(&a, after, NOW_MS, b) == (int)a.n);
	check_json(hw_form_alerts(b), true);
	evbuffer_free(b);
	hw_alerts_fini(&a);
}

static void check_message(const char *json, size_t len)
{
	const struct hw_receiver_secrets secrets = {.key = key};
	struct hw_send_message m;
	if (hw_send_message_parse(&m, json, len))
		return;
	MUST(m.n > 0 && m.n <= HW_INCIDENT_NEWS);
	check_json(hw_form_pagerduty(&secrets, &m, false), false);
	check_template(&m, HW_RECEIVER_EXEC, json, len);
	check_template(&m, HW_RECEIVER_SLACK, json, len);
	check_template(&m, HW_RECEIVER_NTFY, json, len);
	check_template(&m, HW_RECEIVER_SMTP, json, len);
	check_alerts(&m);
	hw_send_message_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char words[HW_SEND_WORDS];
	/* On the heap, so that a byte beyond it is noticed. */
	char *text = malloc(size + !size);
	MUST(text);
	if (size)
		memcpy(text, data, size);
	check_message(text, size);
	hw_try_words(words, text, size);
	MUST(strlen(words) < sizeof(words));
	for (const char *s = words; *s; s++)
		MUST((unsigned char)*s >= ' ' && *s != 0x7f);
	free(text);
	return 0;
}
