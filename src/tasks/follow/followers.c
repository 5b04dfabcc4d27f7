/* SPDX-License-Identifier: MIT */
/* See followers.h. */
#include "tasks/follow/followers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "heartwheel/fnv.h"
#include "heartwheel/json.h"

#define HEADS_MIN  64
#define QUOTED_MAX (HW_ID_MAX * 6 + 3)

enum kind { BY_CLIENT, BY_ID, BY_PREFIX, BY_NOTHING };

struct hw_follower_key {
	struct hw_chain chain;
	struct hw_follower *of;
	enum kind kind;
	size_t len; /* of a prefix */
};

/* --- chains ------------------------------------------------------------------------------------------------------- */

static struct hw_chain **head_of(const struct hw_chains *c, uint64_t hash)
{
	return &c->heads[hash & (c->n_heads - 1)];
}

/* Makes room for n entries. False if there is no memory. */
static bool make_room(struct hw_chains *c, size_t n)
{
	size_t n_heads = c->n_heads ? c->n_heads : HEADS_MIN;
	while (n_heads < n)
		n_heads *= 2;
	if (n_heads == c->n_heads)
		return true;
	struct hw_chains grown = {calloc(n_heads, sizeof(*grown.heads)), n_heads, c->n};
	if (!grown.heads)
		return false;
	for (size_t i = 0; i < c->n_heads; i++)
		for (struct hw_chain *e = c->heads[i], *next; e; e = next) {
			next = e->next;
			e->next = *head_of(&grown, e->hash);
			*head_of(&grown, e->hash) = e;
		}
	free(c->heads);
	*c = grown;
	return true;
}

static void chain_in(struct hw_chains *c, struct hw_chain *e)
{
	struct hw_chain **head = head_of(c, e->hash);
	e->next = *head;
	*head = e;
	c->n++;
}

static void chain_out(struct hw_chains *c, struct hw_chain *e)
{
	struct hw_chain **at = head_of(c, e->hash);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	c->n--;
}

static uint64_t mix(uint64_t h)
{
	return (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);
}

/* `group` empty: of any group. */
static uint64_t hash_of(const struct hw_followers *t, enum kind kind, struct hw_text text, struct hw_text group)
{
	uint64_t h = mix(hw_fnv64(t->secret, text.len ? text.at : "", text.len));
	if (group.len)
		h = mix(hw_fnv64(h, group.at, group.len));
	return h + (uint64_t)kind;
}

static const struct hw_text none = {"", 0};

/* --- clients ------------------------------------------------------------------------------------------------------ */

int hw_followers_init(struct hw_followers *t)
{
	memset(t, 0, sizeof(*t));
	if (getrandom(&t->secret, sizeof(t->secret), 0) != (ssize_t)sizeof(t->secret))
		return -EIO;
	return make_room(&t->clients, HEADS_MIN) && make_room(&t->keys, HEADS_MIN) ? 0 : -ENOMEM;
}

void hw_followers_fini(struct hw_followers *t)
{
	free(t->clients.heads);
	free(t->keys.heads);
}

struct hw_follower *hw_followers_find(const struct hw_followers *t, struct hw_text client)
{
	uint64_t hash = hash_of(t, BY_CLIENT, client, none);
	for (struct hw_chain *e = *head_of(&t->clients, hash); e; e = e->next) {
		struct hw_follower *f = (struct hw_follower *)e;
		if (e->hash == hash && strlen(f->client) == client.len && memcmp(f->client, client.at, client.len) == 0)
			return f;
	}
	return NULL;
}

int hw_followers_add(struct hw_followers *t, struct hw_follower *f)
{
	if (!make_room(&t->clients, t->clients.n + 1))
		return -ENOMEM;
	f->by_client.hash = hash_of(t, BY_CLIENT, (struct hw_text){f->client, strlen(f->client)}, none);
	chain_in(&t->clients, &f->by_client);
	f->next = t->first;
	t->first = f;
	return 0;
}

/* --- filters ------------------------------------------------------------------------------------------------------ */

static void drop_keys(struct hw_followers *t, struct hw_follower *f)
{
	for (size_t i = 0; i < f->n_keys; i++) {
		chain_out(&t->keys, &f->keys[i].chain);
		if (f->keys[i].kind == BY_PREFIX)
			t->prefixes[f->keys[i].len]--;
	}
	free(f->keys);
	f->keys = NULL;
	f->n_keys = 0;
}

void hw_followers_remove(struct hw_followers *t, struct hw_follower **at)
{
	struct hw_follower *f = *at;
	*at = f->next;
	chain_out(&t->clients, &f->by_client);
	drop_keys(t, f);
	free(f->filter);
}

/* Reads the text of a member. Returns false if it is no string, or is longer than any device's id. */
static bool text_of(const struct hw_json_member *m, char text[QUOTED_MAX], struct hw_text *out)
{
	int len = m->value_len < QUOTED_MAX && m->value[0] == '"' ? hw_json_unquote(m->value, m->value_len, text) : -1;
	*out = (struct hw_text){text, len > 0 ? (size_t)len : 0};
	return len >= 0 && len <= HW_ID_MAX;
}

/* Whether the keys have an id with this hash already. */
static bool has_key(const struct hw_follower_key *keys, size_t n, uint64_t hash)
{
	for (size_t i = 0; i < n; i++)
		if (keys[i].chain.hash == hash)
			return true;
	return false;
}

/* Makes the keys of the ids in a filter. Returns false if one id is `*`, which stands for all devices. */
static bool id_keys(const struct hw_followers *t, const struct hw_json_member *ids, struct hw_text group,
                    struct hw_follower_key *keys, size_t *n)
{
	struct hw_json_member m;
	char text[QUOTED_MAX];
	struct hw_text id;
	*n = 0;
	for (size_t at = 0; hw_json_array_next(ids->value, ids->value_len, &at, &m);) {
		if (!text_of(&m, text, &id))
			continue;
		if (id.len == 1 && id.at[0] == '*')
			return false;
		uint64_t hash = hash_of(t, BY_ID, id, group);
		if (!has_key(keys, *n, hash))
			keys[(*n)++] = (struct hw_follower_key){.chain = {.hash = hash}, .kind = BY_ID};
	}
	return true;
}

/* Makes the keys of the narrowest member of a filter. `keys` has room for count_commas() of them. */
static size_t keys_of(const struct hw_followers *t, const char *filter, struct hw_follower_key *keys)
{
	struct hw_json_member m, ids = {0};
	char prefix_text[QUOTED_MAX], group_text[QUOTED_MAX];
	struct hw_text prefix = none, group = none;
	size_t len = strlen(filter), n;
	for (size_t at = 0; hw_json_object_next(filter, len, &at, &m);) {
		if (m.key_len == 3)
			ids = m;
		else if (memcmp(m.key, "group", 5) == 0)
			group = text_of(&m, group_text, &group) ? group : none;
		else
			prefix = text_of(&m, prefix_text, &prefix) ? prefix : none;
	}
	if (ids.value && id_keys(t, &ids, group, keys, &n))
		return n;
	enum kind kind = prefix.len ? BY_PREFIX : BY_NOTHING;
	keys[0] = (struct hw_follower_key){
		.chain = {.hash = hash_of(t, kind, prefix, group)}, .kind = kind, .len = prefix.len};
	return 1;
}

/* The maximum number of keys of a filter. */
static size_t count_commas(const char *filter)
{
	size_t n = 1;
	for (; *filter; filter++)
		n += *filter == ',';
	return n;
}

int hw_followers_set_filter(struct hw_followers *t, struct hw_follower *f, const char *filter)
{
	if (f->filter && strcmp(f->filter, filter) == 0)
		return 0;
	size_t most = count_commas(filter), n = 0;
	char *copy = strdup(filter);
	struct hw_follower_key *keys = calloc(most, sizeof(*keys));
	if (keys)
		n = keys_of(t, filter, keys);
	if (!copy || !keys || !make_room(&t->keys, t->keys.n + n)) {
		free(copy);
		free(keys);
		return -ENOMEM;
	}
	drop_keys(t, f);
	free(f->filter);
	f->filter = copy;
	f->keys = n < most ? realloc(keys, (n ? n : 1) * sizeof(*keys)) : keys;
	f->keys = f->keys ? f->keys : keys;
	f->n_keys = n;
	for (size_t i = 0; i < n; i++) {
		f->keys[i].of = f;
		chain_in(&t->keys, &f->keys[i].chain);
		if (f->keys[i].kind == BY_PREFIX)
			t->prefixes[f->keys[i].len]++;
	}
	return 0;
}

/* --- matching ----------------------------------------------------------------------------------------------------- */

struct match {
	const struct hw_device_transition *device;
	hw_follower_fn *fn;
	void *arg;
};

static void match_key(const struct hw_followers *t, const struct match *m, enum kind kind, struct hw_text name,
                      struct hw_text group)
{
	uint64_t hash = hash_of(t, kind, name, group);
	for (struct hw_chain *e = *head_of(&t->keys, hash); e; e = e->next) {
		struct hw_follower_key *k = (struct hw_follower_key *)e;
		if (e->hash == hash && k->kind == kind && hw_filter_matches(k->of->filter, m->device))
			m->fn(m->arg, k->of);
	}
}

/* Finds the followers with this key whose filter has no group, and then those whose filter has the device's group. */
static void match_name(const struct hw_followers *t, const struct match *m, enum kind kind, struct hw_text name)
{
	match_key(t, m, kind, name, none);
	if (m->device->group.len)
		match_key(t, m, kind, name, m->device->group);
}

void hw_followers_match(const struct hw_followers *t, const struct hw_device_transition *d, hw_follower_fn *fn,
                        void *arg)
{
	struct match m = {d, fn, arg};
	match_name(t, &m, BY_ID, d->device);
	match_name(t, &m, BY_NOTHING, none);
	for (size_t len = 1; len <= d->device.len && len <= HW_ID_MAX; len++)
		if (t->prefixes[len])
			match_name(t, &m, BY_PREFIX, (struct hw_text){d->device.at, len});
}
