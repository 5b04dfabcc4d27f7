/* SPDX-License-Identifier: MIT */
/*
 * Topics and payloads for heartwheelctl discover. Input: records of a byte, a topic, a NUL, a payload, a NUL. Bit 0 of
 * the byte: the message is retained. Each `*` in the topic stands for the numbers of five devices. What is found must
 * be a configuration without control characters that loads, with each group that was found.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/discover_find.h"
#include "ctl/discover_write.h"
#include "daemon/config/settings.h"
#include "fuzz.h"

#define DEVICES   5
#define TOPIC_MAX 2000

static size_t field(const uint8_t **at, const uint8_t *end, const char **text)
{
	const uint8_t *nul = memchr(*at, '\0', (size_t)(end - *at));
	*text = (const char *)*at;
	size_t n = (size_t)((nul ? nul : end) - *at);
	*at += n + (nul != NULL);
	return n;
}

static void add(struct hw_topics *t, const uint8_t *data, size_t size, uint32_t at_ms)
{
	for (const uint8_t *at = data, *end = data + size; at < end;) {
		uint8_t flags = *at++;
		const char *topic, *payload;
		size_t len = field(&at, end, &topic), payload_len = field(&at, end, &payload);
		for (unsigned i = 0; i < DEVICES; i++) {
			char text[TOPIC_MAX];
			if (len > sizeof(text))
				break;
			for (size_t k = 0; k < len; k++)
				text[k] = topic[k] == '*' ? (char)('0' + i) : topic[k];
			MUST(hw_topics_add(t, text, len, payload, payload_len, flags & 1, at_ms) == 0);
		}
	}
}

/* Whether the configuration loads, and has this many groups. */
static bool loads(const char *text, size_t len, size_t groups)
{
	struct hw_conf_errors errors = {0};
	char path[64];
	int fd = memfd_create("groups.conf", MFD_CLOEXEC);
	MUST(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct hw_settings *c = hw_conf_load(&hw_settings_table, path, &errors);
	for (size_t i = 0; i < errors.n; i++)
		fprintf(stderr, "%s\n", errors.lines[i]);
	bool good = c && c->n_groups == groups;
	hw_conf_errors_fini(&errors);
	hw_conf_free(c);
	close(fd);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hw_topics *t = hw_topics_new(1);
	struct hw_found found;
	struct hw_listen how = {.conf = {.host = "broker", .port = 1883, .username = ""}};
	char *text = NULL;
	size_t len = 0;
	MUST(t);
	for (uint32_t round = 1; round <= 2; round++)
		add(t, data, size, round * 10000);
	MUST(hw_discover_find(t, 1, &found) == 0);
	FILE *out = open_memstream(&text, &len);
	MUST(out);
	hw_discover_write(out, &found, t, &how, 0);
	MUST(fclose(out) == 0);
	for (size_t i = 0; i < len; i++)
		MUST((unsigned char)text[i] >= ' ' || text[i] == '\n');
	MUST(found.n == 0 || loads(text, len, found.n));
	hw_found_fini(&found);
	hw_topics_free(t);
	free(text);
	return 0;
}
