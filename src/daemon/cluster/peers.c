/* SPDX-License-Identifier: MIT */
#include "peers.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heartwheel/json_tree.h"
#include "heartwheel/report.h"
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

/* Quotes a JSON string. False if `to` is too small. */
static bool quote(const char *text, char *to, size_t cap)
{
	return hw_json_quote(text, strlen(text), to, cap) < cap;
}

int hw_peer_print_known(const char *cluster, const char *node, uint64_t seq,
                        const struct hw_fencing_token known[HW_PARTITIONS], char *buf, size_t cap)
{
	char by[512], name[512], text[HW_KNOWN_TEXT];
	if (!quote(node, by, sizeof(by)) || !quote(cluster, name, sizeof(name)))
		return -1;
	hw_known_text(known, text);
	int n = snprintf(buf, cap, "{\"by\":%s,\"seq\":%llu,\"cluster\":%s,\"known\":", by, (unsigned long long)seq,
	                 name);
	if (n < 0 || (size_t)n >= cap || !quote(text, buf + n, cap - (size_t)n))
		return -1;
	size_t len = strlen(buf);
	if (len + 2 > cap)
		return -1;
	memcpy(buf + len, "}", 2);
	return (int)len + 1;
}

int hw_peer_print_offline(const char *cluster, const char *node, const char *by, int64_t wall_ms, char *buf, size_t cap)
{
	char node_text[512], cluster_text[512], by_text[512];
	if (!quote(node, node_text, sizeof(node_text)) || !quote(cluster, cluster_text, sizeof(cluster_text)) ||
	    !quote(by, by_text, sizeof(by_text)))
		return -1;
	int n = snprintf(
		buf, cap,
		"{\"time\":%lld,\"online\":false,\"blind\":false,\"version\":\"%s\",\"uptime\":0,\"devices\":0,"
		"\"offline\":0,\"by\":%s,\"seq\":%lld,\"cluster\":%s,\"state\":\"gone\",\"claims\":\"\","
		"\"evicted_by\":%s}",
		(long long)(wall_ms / 1000), HW_VERSION, node_text, (long long)wall_ms, cluster_text, by_text);
	return n > 0 && (size_t)n < cap ? n : -1;
}
