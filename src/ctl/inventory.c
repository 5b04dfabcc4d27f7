/* SPDX-License-Identifier: MIT */
/* heartwheelctl devices: import, export, set, remove, unseen. A file is sent in parts of PART bytes, as it is read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "heartwheel/json_writer.h"

#define PART      ((size_t)4 << 20)
#define TIMEOUT_S 900L /* an import of millions */
#define BUSY_S    60   /* how long to wait for another import */
#define PAGE      "limit=1000"

/* --- import --- */

struct import {
	struct hw_ctl *ctl;
	const struct hw_args *args;
	const char *name; /* of the file, for messages */
	FILE *file;
	struct stat found; /* when it was opened */
	int64_t n_read;
	char *bytes; /* PART bytes, and one more byte, which shows whether another part follows; owned */
	size_t len;
	unsigned part;
	char id[48]; /* of the import, if it has several parts */
	struct hw_client_body body;
};

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);
	return n > k && strcasecmp(name + n - k, end) == 0;
}

/* Returns the content type of the file: by the end of its name, or else by its first byte. */
static const char *type_of(const struct import *m)
{
	if (ends_with(m->name, ".csv"))
		return "text/csv";
	if (ends_with(m->name, ".ndjson") || ends_with(m->name, ".jsonl") || ends_with(m->name, ".json"))
		return "application/x-ndjson";
	size_t bom = m->len >= 3 && memcmp(m->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	return m->len > bom && m->bytes[bom] == '{' ? "application/x-ndjson" : "text/csv";
}

/* The path of the request for the next part. */
static struct hw_path path_of(const struct import *m, bool last)
{
	const struct hw_args *args = m->args;
	const char *slash = strrchr(m->name, '/');
	struct hw_path p = {0};
	char part[96];
	hw_path_add(&p, "/v1/inventory?source=");
	hw_path_add_encoded(&p, args->source ? args->source : slash ? slash + 1 : m->name);
	hw_path_add(&p, args->prune ? "&prune=1" : "");
	hw_path_add(&p, args->force ? "&force=1" : "");
	hw_path_add(&p, args->skip_bad ? "&skip_bad=1" : "");
	hw_path_add(&p, args->dry_run ? "&dry_run=1" : "");
	snprintf(part, sizeof(part), "&import=%s&part=%u%s", m->id, m->part, last ? "&last=1" : "");
	hw_path_add(&p, m->part > 1 || !last ? part : "");
	return p;
}

/* Prints the wrong rows as FILE:LINE: column 'COLUMN': MESSAGE. */
static void print_errors(const struct import *m, const cJSON *answer)
{
	const cJSON *e, *errors = cJSON_GetObjectItemCaseSensitive(answer, "errors");
	int64_t wrong = hw_member_int(answer, "wrong"), listed = cJSON_GetArraySize(errors);
	cJSON_ArrayForEach(e, errors)
	{
		char place[48];
		snprintf(place, sizeof(place), ":%lld: ", (long long)hw_member_int(e, "line"));
		hw_text_print(stderr, &m->ctl->screen, m->name);
		fputs(place, stderr);
		if (*hw_member_text(e, "column")) {
			fputs("column '", stderr);
			hw_text_print(stderr, &m->ctl->screen, hw_member_text(e, "column"));
			fputs("': ", stderr);
		}
		hw_text_print(stderr, &m->ctl->screen, hw_member_text(e, "message"));
		fputc('\n', stderr);
	}
	if (wrong > listed)
		fprintf(stderr, "... and %lld more\n", (long long)(wrong - listed));
}

static void print_counts(const struct import *m, const cJSON *a)
{
	printf("%s%lld added, %lld changed, %lld the same, %lld removed", m->args->dry_run ? "would be: " : "",
	       (long long)hw_member_int(a, "added"), (long long)hw_member_int(a, "changed"),
	       (long long)hw_member_int(a, "same"), (long long)hw_member_int(a, "removed"));
	if (hw_member_int(a, "wrong") > 0)
		printf(", %lld wrong and left out", (long long)hw_member_int(a, "wrong"));
	putchar('\n');
}

/* Sends a part. While another import runs, waits and sends the part again. Returns 0 with the answer, or
 * HW_EXIT_FAILED. */
static int send_part(struct import *m, const char *path, struct hw_answer *a)
{
	for (int waited = 0;; waited++) {
		if (hw_client_send(m->ctl->client, "PUT", path, &m->body, TIMEOUT_S, a) < 0)
			return hw_failed(m->ctl, "%s", hw_client_why(m->ctl->client));
		if (a->code != 409 || m->part > 1 || waited == BUSY_S)
			return HW_EXIT_DONE;
		hw_answer_fini(a);
		sleep(1);
	}
}

/* Sends the bytes that were read. `last`: the end of the file was reached. */
static int send_bytes(struct import *m, bool last)
{
	struct hw_path path = path_of(m, last);
	struct hw_answer a;
	int rc = path.text ? send_part(m, path.text, &a) : hw_failed(m->ctl, "out of memory");
	hw_path_fini(&path);
	if (rc)
		return rc;
	if (a.code != 200 || last)
		print_errors(m, a.json);
	if (a.code != 200) {
		const char *why = hw_member_text(a.json, "error");
		rc = hw_failed(m->ctl, "%s", *why ? why : "heartwheeld's answer is malformed");
	} else if (last) {
		print_counts(m, a.json);
	}
	hw_answer_fini(&a);
	return rc;
}

/* Whether another program has written the file since it was opened. A pipe has no length. */
static bool has_changed(const struct import *m)
{
	struct stat now;
	if (!S_ISREG(m->found.st_mode) || fstat(fileno(m->file), &now) < 0)
		return false;
	return m->n_read != m->found.st_size || now.st_size != m->found.st_size ||
	       now.st_mtim.tv_sec != m->found.st_mtim.tv_sec || now.st_mtim.tv_nsec != m->found.st_mtim.tv_nsec;
}

static int send_file(struct import *m)
{
	if (fstat(fileno(m->file), &m->found) < 0)
		return hw_failed(m->ctl, "%s: cannot be read: %s", m->name, strerror(errno));
	off_t from = S_ISREG(m->found.st_mode) ? ftello(m->file) : 0; /* standard input may be read from its middle */
	m->n_read = from > 0 ? from : 0;
	for (bool last = false; !last; m->part++) {
		size_t n = fread(m->bytes + m->len, 1, PART + 1 - m->len, m->file);
		m->len += n;
		m->n_read += (int64_t)n;
		if (ferror(m->file))
			return hw_failed(m->ctl, "%s: cannot be read: %s", m->name, strerror(errno));
		last = m->len <= PART;
		if (last && has_changed(m))
			return hw_failed(m->ctl,
			                 "%s: was changed while it was read: nothing was imported; repeat the import "
			                 "when the file is complete",
			                 m->name);
		if (m->part == 1)
			m->body.type = type_of(m);
		m->body.bytes = m->bytes;
		m->body.len = last ? m->len : PART;
		int rc = send_bytes(m, last);
		if (rc || last)
			return rc;
		m->bytes[0] = m->bytes[PART];
		m->len = 1;
	}
	return HW_EXIT_DONE;
}

int hw_cmd_devices_import(struct hw_ctl *ctl, const struct hw_args *args)
{
	bool input = strcmp(args->id, "-") == 0;
	struct import m = {.ctl = ctl, .args = args, .name = input ? "stdin" : args->id, .part = 1};
	snprintf(m.id, sizeof(m.id), "ctl-%ld-%lld", (long)getpid(), (long long)hw_wall_ms());
	m.bytes = malloc(PART + 1);
	m.file = input ? stdin : fopen(args->id, "re");
	int rc = !m.bytes  ? hw_failed(ctl, "out of memory")
	         : !m.file ? hw_failed(ctl, "%s: cannot be opened: %s", args->id, strerror(errno))
	                   : send_file(&m);
	if (m.file && !input)
		fclose(m.file);
	free(m.bytes);
	return rc;
}

/* --- export --- */

int hw_cmd_devices_export(struct hw_ctl *ctl, const struct hw_args *args)
{
	char next[64] = "";
	int rc = hw_need_group(ctl, args->group);
	hw_client_want(ctl->client, args->json ? "application/x-ndjson" : "text/csv");
	for (bool more = true; more && rc == HW_EXIT_DONE;) {
		struct hw_path path = {0};
		struct hw_answer a;
		hw_path_add(&path, "/v1/inventory?" PAGE "&group=");
		hw_path_add_encoded(&path, args->group ? args->group : "");
		hw_path_add(&path, "&source=");
		hw_path_add_encoded(&path, args->source ? args->source : "");
		hw_path_add(&path, "&after=");
		hw_path_add(&path, next);
		rc = hw_ask_path(ctl, "GET", &path, &a);
		if (rc)
			break;
		more = *a.next != '\0';
		snprintf(next, sizeof(next), "%s", a.next);
		if (a.text)
			fputs(a.text, stdout);
		hw_answer_fini(&a);
	}
	return rc;
}

/* --- single entries --- */

/* Writes the member for NAME=VALUE into the body; null if the value is empty. Returns false if the word has no '='. */
static bool write_assignment(struct hw_json *body, char *word)
{
	char *equals = strchr(word, '=');
	if (!equals)
		return false;
	*equals = '\0';
	hw_json_named_text(body, word, equals[1] ? equals + 1 : NULL);
	return true;
}

int hw_cmd_devices_set(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_json object;
	struct hw_path path = hw_device_path(args->id);
	struct hw_answer a = {0};
	int rc = HW_EXIT_DONE;
	hw_json_begin_alloc(&object);
	hw_json_open(&object, '{');
	for (int i = 1; i < args->n_words && rc == HW_EXIT_DONE; i++)
		if (!write_assignment(&object, args->words[i]))
			rc = hw_usage(args->command, "'%s' is not NAME=VALUE, such as label.site=north",
			              args->words[i]);
	const char *wrong = "out of memory";
	char *text = hw_body_end(&object, &wrong);
	struct hw_client_body body = {"application/json", text, text ? strlen(text) : 0};
	if (rc == HW_EXIT_DONE && (!text || !path.text))
		rc = hw_failed(ctl, "%s", wrong);
	if (rc == HW_EXIT_DONE && hw_client_send(ctl->client, "PATCH", path.text, &body, 30, &a) < 0)
		rc = hw_failed(ctl, "%s", hw_client_why(ctl->client));
	const char *why = hw_member_text(a.json, "error");
	if (rc == HW_EXIT_DONE && a.code != 200 && a.code != 201)
		rc = hw_failed(ctl, "%s: %s", args->id, *why ? why : "heartwheeld's answer is malformed");
	hw_answer_fini(&a);
	free(text);
	hw_path_fini(&path);
	return rc;
}

/* A failure does not stop the other ids. */
int hw_cmd_devices_remove(struct hw_ctl *ctl, const struct hw_args *args)
{
	int rc = HW_EXIT_DONE;
	for (int i = 0; i < args->n_words; i++) {
		struct hw_path path = {0};
		struct hw_answer a = {0};
		hw_path_add(&path, "/v1/inventory/");
		hw_path_add_encoded(&path, args->words[i]);
		if (!path.text || hw_client_ask(ctl->client, "DELETE", path.text, &a) < 0) {
			rc = hw_failed(ctl, "%s", path.text ? hw_client_why(ctl->client) : "out of memory");
		} else if (a.code != 204) {
			const char *why = hw_member_text(a.json, "error");
			rc = hw_failed(ctl, "%s: %s", args->words[i], *why ? why : "heartwheeld's answer is malformed");
		}
		hw_path_fini(&path);
		hw_answer_fini(&a);
	}
	return rc;
}

/* --- unseen --- */

static void show_unseen(struct hw_ctl *ctl, const cJSON *d)
{
	char when[HW_SPAN_MAX], expected[HW_SPAN_MAX];
	hw_text_column(&ctl->screen, 24, hw_member_text(d, "id"));
	hw_text_column(&ctl->screen, 16, hw_member_text(d, "group"));
	printf("since %s, expected since %s", hw_text_clock(hw_member_int(d, "since_ms"), when),
	       hw_text_clock(hw_member_int(d, "expected_since_ms"), expected));
	if (*hw_member_text(d, "name")) {
		fputs("  ", stdout);
		hw_text_print(stdout, &ctl->screen, hw_member_text(d, "name"));
	}
	putchar('\n');
}

int hw_cmd_devices_unseen(struct hw_ctl *ctl, const struct hw_args *args)
{
	char *next = NULL;
	int rc = hw_need_group(ctl, args->group);
	for (bool more = true; more && rc == HW_EXIT_DONE;) {
		struct hw_path path = {0};
		struct hw_answer a;
		const cJSON *d;
		hw_path_add(&path, "/v1/devices?state=unseen&" PAGE "&group=");
		hw_path_add_encoded(&path, args->group ? args->group : "");
		hw_path_add(&path, "&after=");
		hw_path_add_encoded(&path, next ? next : "");
		free(next);
		next = NULL;
		rc = hw_ask_path(ctl, "GET", &path, &a);
		if (rc)
			return rc;
		cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(a.json, "devices"))
		{
			if (args->json)
				rc = hw_print_json(ctl, d);
			else
				show_unseen(ctl, d);
		}
		more = *hw_member_text(a.json, "next");
		if (more && !(next = strdup(hw_member_text(a.json, "next"))))
			rc = hw_failed(ctl, "out of memory");
		hw_answer_fini(&a);
	}
	free(next);
	return rc;
}
