/* SPDX-License-Identifier: MIT */
#include "peers.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/json_tree.h"
#include "heartwheel/json_writer.h"
#include "nodes/claims.h"

#define ROOT "heartwheel/"

static const struct {
	const char *last;
	enum hw_peer_topic topic;
} lasts[] = {{"/status", HW_PEER_STATUS}, {"/known", HW_PEER_KNOWN}};

enum hw_peer_topic hw_peer_topic(const char *topic, size_t len, char node[HW_NODE_ID_MAX + 1])
{
	size_t root = strlen(ROOT);
	if (len <= root || memcmp(topic, ROOT, root) != 0)
		return HW_PEER_NONE;
	const char *name = topic + root, *slash = memchr(name, '/', len - root);
	size_t name_len = slash ? (size_t)(slash - name) : 0, rest = len - root - name_len;
	if (!hw_claims_is_node(name, name_len))
		return HW_PEER_NONE;
	for (size_t i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
		if (rest != strlen(lasts[i].last) || memcmp(slash, lasts[i].last, rest) != 0)
			continue;
		memcpy(node, name, name_len);
		node[name_len] = '\0';
		return lasts[i].topic;
	}
	return HW_PEER_NONE;
}

/* --- reading ------------------------------------------------------------------- */

static const char *text_of(const cJSON *j, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(j, key));
	return text ? text : "";
}

static uint64_t number_of(const cJSON *j, const char *key)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(j, key);
	return cJSON_IsNumber(n) && n->valuedouble > 0 && n->valuedouble < 1e15 ? (uint64_t)n->valuedouble : 0;
}

int hw_peer_claims(const char *payload, size_t len, const char *cluster, uint64_t claims[HW_PARTITIONS], uint64_t *seq)
{
	cJSON *j = hw_json_tree(payload, len);
	*seq = 0;
	memset(claims, 0, HW_PARTITIONS * sizeof(*claims));
	if (!cJSON_IsObject(j)) {
		cJSON_Delete(j);
		return len ? -EINVAL : 0;
	}
	int rc = 0;
	const char *text = text_of(j, "claims");
	*seq = number_of(j, "seq");
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "online")) && strcmp(text_of(j, "cluster"), cluster) == 0)
		rc = hw_claims_parse(text, strlen(text), claims);
	cJSON_Delete(j);
	return rc;
}

bool hw_peer_is_of_another(const char *payload, size_t len, const char *cluster)
{
	cJSON *j = hw_json_tree(payload, len);
	bool other = cJSON_IsObject(j) && strcmp(text_of(j, "cluster"), cluster) != 0;
	cJSON_Delete(j);
	return other;
}

int hw_peer_known(const char *payload, size_t len, const char *cluster, struct hw_fencing_token known[HW_PARTITIONS],
                  uint64_t *seq)
{
	cJSON *j = hw_json_tree(payload, len);
	*seq = 0;
	memset(known, 0, HW_PARTITIONS * sizeof(*known));
	if (!cJSON_IsObject(j)) {
		cJSON_Delete(j);
		return len ? -EINVAL : 0;
	}
	int rc = 0;
	const char *text = text_of(j, "known");
	*seq = number_of(j, "seq");
	if (strcmp(text_of(j, "cluster"), cluster) == 0)
		rc = hw_known_parse(text, strlen(text), known);
	cJSON_Delete(j);
	return rc;
}

/* --- writing ------------------------------------------------------------------- */

int hw_peer_print_known(const char *cluster, const char *node, uint64_t seq,
                        const struct hw_fencing_token known[HW_PARTITIONS], char *buf, size_t cap)
{
	char text[HW_KNOWN_TEXT];
	struct hw_json j;
	hw_known_text(known, text);
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	hw_json_text(&j, "by", node);
	hw_json_uint(&j, "seq", seq);
	hw_json_text(&j, "cluster", cluster);
	hw_json_text(&j, "known", text);
	hw_json_close(&j, '}');
	return hw_json_end_text(&j);
}

int hw_peer_print_offline(const char *cluster, const char *node, const char *by, int64_t wall_ms, char *buf, size_t cap)
{
	struct hw_json j;
	hw_json_begin_text(&j, buf, cap);
	hw_json_open(&j, '{');
	hw_json_int(&j, "time", wall_ms / 1000);
	hw_json_bool(&j, "online", false);
	hw_json_bool(&j, "blind", false);
	hw_json_text(&j, "version", HW_VERSION);
	hw_json_int(&j, "uptime", 0);
	hw_json_int(&j, "devices", 0);
	hw_json_int(&j, "offline", 0);
	hw_json_text(&j, "by", node);
	hw_json_int(&j, "seq", wall_ms);
	hw_json_text(&j, "cluster", cluster);
	hw_json_text(&j, "state", "gone");
	hw_json_text(&j, "claims", "");
	hw_json_text(&j, "evicted_by", by);
	hw_json_close(&j, '}');
	return hw_json_end_text(&j);
}
