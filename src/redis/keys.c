/* SPDX-License-Identifier: MIT */
/* The names of all keys. Cost: copying the bytes of a name. */
#include "redis/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartwheel/topic.h"

static const char *const device_part[] = {
	[HW_KEY_CONNECTED] = "connected:", [HW_KEY_DISCONNECTED] = "disconnected:", [HW_KEY_STATE] = "state:"};

static char *join(const char *a, const char *b, const char *c)
{
	size_t la = strlen(a), lb = strlen(b), lc = strlen(c);
	char *s = malloc(la + lb + lc + 1);
	if (!s)
		return NULL;
	memcpy(s, a, la);
	memcpy(s + la, b, lb);
	memcpy(s + la + lb, c, lc + 1);
	return s;
}

/* Escapes the characters that are special in Redis' glob patterns. */
static char *match_of(const char *prefix, const char *tail)
{
	char *s = malloc(2 * strlen(prefix) + strlen(tail) + 1), *to = s;
	if (!s)
		return NULL;
	for (const char *from = prefix; *from; from++) {
		if (strchr("*?[]\\^-", *from))
			*to++ = '\\';
		*to++ = *from;
	}
	memcpy(to, tail, strlen(tail) + 1);
	return s;
}

int hw_keys_init(struct hw_keys *k, const char *prefix, const char *node_id)
{
	k->prefix = strdup(prefix);
	k->prefix_len = strlen(prefix);
	k->offline = join(prefix, "offline", "");
	k->outbox = join(prefix, "outbox", "");
	k->published = join(prefix, "published", "");
	k->events = join(prefix, "events", "");
	k->sight = join(prefix, "sight", "");
	k->parent_heard = join(prefix, "parent_heard", "");
	k->groups = join(prefix, "groups", "");
	k->expected = join(prefix, "expected", "");
	k->unseen = join(prefix, "unseen", "");
	k->inventory = join(prefix, "inventory", "");
	k->watched = join(prefix, "watched", "");
	k->monitor = join(prefix, "monitor:", node_id);
	k->monitors = join(prefix, "monitors", "");
	k->nodes = join(prefix, "nodes", "");
	k->owners = join(prefix, "owners", "");
	k->nodes_left = join(prefix, "nodes_left", "");
	k->state_match = match_of(prefix, "state:*");
	k->connected_match = match_of(prefix, "connected:*");
	k->self_match = match_of(prefix, "self:*");
	for (int i = 0; i < 3; i++)
		k->no_device[i] = join(prefix, device_part[i], "+");
	if (k->prefix && k->offline && k->outbox && k->published && k->events && k->sight && k->parent_heard &&
	    k->groups && k->watched && k->monitor && k->monitors && k->nodes && k->owners && k->nodes_left &&
	    k->state_match && k->connected_match && k->self_match && k->expected && k->unseen && k->inventory &&
	    k->no_device[0] && k->no_device[1] && k->no_device[2])
		return 0;
	hw_keys_fini(k);
	return -ENOMEM;
}

void hw_keys_fini(struct hw_keys *k)
{
	free(k->prefix);
	free(k->offline);
	free(k->outbox);
	free(k->published);
	free(k->events);
	free(k->sight);
	free(k->parent_heard);
	free(k->groups);
	free(k->expected);
	free(k->unseen);
	free(k->inventory);
	free(k->watched);
	free(k->monitor);
	free(k->monitors);
	free(k->nodes);
	free(k->owners);
	free(k->nodes_left);
	free(k->state_match);
	free(k->connected_match);
	free(k->self_match);
	for (int i = 0; i < 3; i++)
		free(k->no_device[i]);
	memset(k, 0, sizeof(*k));
}

size_t hw_keys_device_max(const struct hw_keys *k)
{
	return k->prefix_len + strlen(device_part[HW_KEY_DISCONNECTED]) + HW_ID_MAX;
}

size_t hw_keys_device(const struct hw_keys *k, enum hw_device_key key, const char *id, size_t id_len, char *buf)
{
	size_t part = strlen(device_part[key]);
	memcpy(buf, k->prefix, k->prefix_len);
	memcpy(buf + k->prefix_len, device_part[key], part);
	memcpy(buf + k->prefix_len + part, id, id_len);
	return k->prefix_len + part + id_len;
}

static bool id_of(const struct hw_keys *k, enum hw_device_key which, const char *key, size_t len, const char **id,
                  size_t *id_len)
{
	const char *part = device_part[which];
	size_t head = k->prefix_len + strlen(part);
	if (len < head || memcmp(key, k->prefix, k->prefix_len) != 0 ||
	    memcmp(key + k->prefix_len, part, strlen(part)) != 0)
		return false;
	*id = key + head;
	*id_len = len - head;
	return true;
}

bool hw_keys_state_id(const struct hw_keys *k, const char *key, size_t len, const char **id, size_t *id_len)
{
	return id_of(k, HW_KEY_STATE, key, len, id, id_len);
}

bool hw_keys_device_id(const struct hw_keys *k, const char *key, size_t len, enum hw_device_key *which, const char **id,
                       size_t *id_len)
{
	for (*which = HW_KEY_CONNECTED; *which <= HW_KEY_DISCONNECTED; (*which)++)
		if (id_of(k, *which, key, len, id, id_len))
			return true;
	return false;
}

char *hw_keys_self(const char *prefix, const char *node_id, uint64_t run_id)
{
	char *s;
	return asprintf(&s, "%sself:%s:%016" PRIx64, prefix, node_id, run_id) < 0 ? NULL : s;
}
