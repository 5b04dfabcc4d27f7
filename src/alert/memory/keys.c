/* SPDX-License-Identifier: MIT */
/* See keys.h: the types, and the commands that write. Cost: O(1) for a field or member; a copy of each text, and one
 * more in `changes` until the keys are stored. */
#include "alert/memory/keys.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alert/memory/keys_priv.h"
#include "http/json.h"

#define CHANGES_MAX (16 << 20) /* bytes; to store all keys is as cheap then */

/* --- values ------------------------------------------------------------------------------------------------------- */

static void entry_fini(struct hw_key_entry *e)
{
	free(e->words);
}

static void key_free(void *key)
{
	struct hw_key *o = key;
	free(o->text);
	hw_dict_fini(&o->items, free);
	for (size_t i = 0; i < o->n; i++)
		entry_fini(&o->entries[o->first + i]);
	free(o->entries);
	free(o);
}

struct hw_key *hw_keys_find(const struct hw_keys *k, const char *name)
{
	const struct hw_dict_item *item = hw_dict_find(&k->keys, name);
	return item ? item->value : NULL;
}

static void delete_key(struct hw_keys *k, const char *name)
{
	struct hw_key *o = hw_dict_remove(&k->keys, name);
	if (o)
		key_free(o);
}

/* Returns the key, and makes it if there is none of this type; NULL if there is no memory. */
static struct hw_key *key_of(struct hw_keys *k, const char *name, enum hw_key_type type)
{
	struct hw_key *o = hw_keys_find(k, name);
	if (o && o->type == type)
		return o;
	delete_key(k, name);
	struct hw_dict_item *item = hw_dict_put(&k->keys, name);
	o = item ? calloc(1, sizeof(*o)) : NULL;
	if (o) {
		o->type = type;
		item->value = o;
		return o;
	}
	k->failed = true;
	if (item)
		(void)hw_dict_remove(&k->keys, name);
	return NULL;
}

static void set_text(struct hw_keys *k, char **to, const char *text)
{
	char *copy = strdup(text);
	k->failed |= !copy;
	if (!copy)
		return;
	free(*to);
	*to = copy;
}

static void set_item(struct hw_keys *k, struct hw_key *o, const char *name, const char *value)
{
	struct hw_dict_item *item = o ? hw_dict_put(&o->items, name) : NULL;
	k->failed |= !item;
	if (item) {
		char *text = item->value;
		set_text(k, &text, value);
		item->value = text;
	}
}

/* --- commands that write -------------------------------------------------------------------------------------------
 */

static void set(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = n == 3 ? key_of(k, words[1], HW_KEY_STRING) : NULL;
	if (o)
		set_text(k, &o->text, words[2]);
	if (out)
		fputs("+OK\r\n", out);
}

static void hset(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = key_of(k, words[1], HW_KEY_HASH);
	size_t before = o ? o->items.n : 0;
	for (size_t i = 2; o && i + 1 < n; i += 2)
		set_item(k, o, words[i], words[i + 1]);
	hw_keys_answer_int(out, o ? (long long)(o->items.n - before) : 0);
}

static void zadd(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = key_of(k, words[1], HW_KEY_ZSET);
	size_t before = o ? o->items.n : 0;
	for (size_t i = 2; o && i + 1 < n; i += 2)
		set_item(k, o, words[i + 1], words[i]);
	hw_keys_answer_int(out, o ? (long long)(o->items.n - before) : 0);
}

static void sadd(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = key_of(k, words[1], HW_KEY_SET);
	size_t before = o ? o->items.n : 0;
	for (size_t i = 2; o && i < n; i++)
		set_item(k, o, words[i], "");
	hw_keys_answer_int(out, o ? (long long)(o->items.n - before) : 0);
}

/* Carries out HDEL, ZREM and SREM. As in Redis, a key without items is removed. */
static void remove_items(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = hw_keys_find(k, words[1]);
	size_t before = o ? o->items.n : 0, left = before;
	for (size_t i = 2; o && i < n; i++)
		free(hw_dict_remove(&o->items, words[i]));
	if (o)
		left = o->items.n;
	if (before > 0 && left == 0)
		delete_key(k, words[1]);
	hw_keys_answer_int(out, (long long)(before - left));
}

static void del(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	size_t before = k->keys.n;
	for (size_t i = 1; i < n; i++)
		delete_key(k, words[i]);
	hw_keys_answer_int(out, (long long)(before - k->keys.n));
}

/* RENAME FROM TO. Without FROM, TO is removed. */
static void rename_key(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = n == 3 ? hw_dict_remove(&k->keys, words[1]) : NULL;
	delete_key(k, words[2]);
	struct hw_dict_item *item = o ? hw_dict_put(&k->keys, words[2]) : NULL;
	k->failed |= o && !item;
	if (item)
		item->value = o;
	else if (o)
		key_free(o);
	if (out)
		fputs("+OK\r\n", out);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static struct hw_stream_id newest(const struct hw_key *o)
{
	return o->n > 0 ? o->entries[o->first + o->n - 1].id : (struct hw_stream_id){0, 0};
}

static void remove_first(struct hw_key *o)
{
	entry_fini(&o->entries[o->first++]);
	if (--o->n == 0)
		o->first = 0;
}

/* Returns memory for an entry after the newest one; NULL if there is none. */
static struct hw_key_entry *next_entry(struct hw_key *o)
{
	if (o->first + o->n == o->cap && o->first > o->cap / 2) {
		memmove(o->entries, o->entries + o->first, o->n * sizeof(*o->entries));
		o->first = 0;
	}
	if (o->first + o->n == o->cap) {
		size_t cap = o->cap ? 2 * o->cap : 16;
		struct hw_key_entry *grown = reallocarray(o->entries, cap, sizeof(*grown));
		if (!grown)
			return NULL;
		o->entries = grown;
		o->cap = cap;
	}
	return &o->entries[o->first + o->n];
}

static char **copy_words(const char *const *words, size_t n)
{
	size_t len = 0;
	for (size_t i = 0; i < n; i++)
		len += strlen(words[i]) + 1;
	char **copy = malloc(n * sizeof(*copy) + len);
	char *to = (char *)(copy + n);
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = to;
		to = stpcpy(to, words[i]) + 1;
	}
	return copy;
}

/* Sets *id to the id of a new entry: that of `text`, or for "*" the time, but greater than all ids of the stream.
 * Returns false if `text` is no such id. */
static bool read_new_id(const struct hw_key *o, const char *text, struct hw_stream_id *id)
{
	struct hw_stream_id last = newest(o);
	if (strcmp(text, "*") != 0)
		return hw_stream_id_parse(text, strlen(text), id) == 0 && hw_stream_id_compare(*id, last) > 0;
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*id = (struct hw_stream_id){(uint64_t)t.tv_sec * 1000 + (uint64_t)(t.tv_nsec / 1000000), 0};
	if (hw_stream_id_compare(*id, last) <= 0)
		*id = hw_stream_id_next(last);
	return true;
}

/* XADD KEY MAXLEN ~ N ID NAME VALUE.. */
static void xadd(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = n > 6 ? key_of(k, words[1], HW_KEY_STREAM) : NULL;
	struct hw_key_entry *e = o ? next_entry(o) : NULL;
	char text[HW_STREAM_ID_TEXT];
	struct hw_stream_id id;
	if (!e || !read_new_id(o, words[5], &id)) {
		k->failed |= o && !e;
		if (out)
			fputs("-ERR the id is not greater than that of the newest entry\r\n", out);
		return;
	}
	*e = (struct hw_key_entry){id, copy_words(words + 6, n - 6), n - 6};
	if (!e->words) {
		k->failed = true;
		return;
	}
	o->n++;
	while (o->n > strtoull(words[4], NULL, 10))
		remove_first(o);
	hw_keys_answer_text(out, hw_stream_id_print(id, text));
}

/* XTRIM KEY MINID ID: removes the entries before an id. */
static void xtrim(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	struct hw_key *o = n == 4 ? hw_keys_find(k, words[1]) : NULL;
	struct hw_stream_id id = {0, 0};
	size_t before = o ? o->n : 0;
	if (o)
		(void)hw_stream_id_parse(words[3], strlen(words[3]), &id);
	while (o && o->n > 0 && hw_stream_id_compare(o->entries[o->first].id, id) < 0)
		remove_first(o);
	hw_keys_answer_int(out, o ? (long long)(before - o->n) : 0);
}

size_t hw_key_first_entry(const struct hw_key *o, struct hw_stream_id from)
{
	size_t low = 0, high = o->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (hw_stream_id_compare(o->entries[o->first + middle].id, from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- the table of commands ---------------------------------------------------------------------------------------- */

static const struct command {
	const char *name;
	size_t least; /* words */
	hw_keys_command *fn;
	enum hw_key_type type; /* of its key, if the command reads; HW_KEY_TYPES: any */
	bool writes;           /* ... without a script */
} commands[] = {{"DEL", 2, del, HW_KEY_TYPES, true},
                {"EVALSHA", 3, hw_keys_evalsha, HW_KEY_TYPES, false},
                {"HDEL", 3, remove_items, HW_KEY_HASH, true},
                {"HGETALL", 2, hw_keys_hgetall, HW_KEY_HASH, false},
                {"HSCAN", 5, hw_keys_scan, HW_KEY_HASH, false},
                {"HSET", 4, hset, HW_KEY_TYPES, true},
                {"MGET", 2, hw_keys_mget, HW_KEY_TYPES, false},
                {"RENAME", 3, rename_key, HW_KEY_TYPES, true},
                {"SADD", 3, sadd, HW_KEY_TYPES, true},
                {"SCRIPT", 3, hw_keys_script, HW_KEY_TYPES, false},
                {"SET", 3, set, HW_KEY_TYPES, true},
                {"SMEMBERS", 2, hw_keys_smembers, HW_KEY_SET, false},
                {"SREM", 3, remove_items, HW_KEY_SET, true},
                {"XADD", 8, xadd, HW_KEY_TYPES, true},
                {"XRANGE", 6, hw_keys_xrange, HW_KEY_STREAM, false},
                {"XREVRANGE", 6, hw_keys_xrevrange, HW_KEY_STREAM, false},
                {"XTRIM", 4, xtrim, HW_KEY_STREAM, true},
                {"ZADD", 4, zadd, HW_KEY_TYPES, true},
                {"ZRANGE", 4, hw_keys_zrange, HW_KEY_ZSET, false},
                {"ZRANGEBYSCORE", 7, hw_keys_zrangebyscore, HW_KEY_ZSET, false},
                {"ZREM", 3, remove_items, HW_KEY_ZSET, true},
                {"ZREVRANGE", 4, hw_keys_zrevrange, HW_KEY_ZSET, false},
                {"ZREVRANK", 3, hw_keys_zrevrank, HW_KEY_ZSET, false},
                {"ZSCAN", 5, hw_keys_scan, HW_KEY_ZSET, false}};

static void drop_changes(struct hw_keys *k)
{
	if (k->changes)
		evbuffer_free(k->changes);
	k->changes = NULL;
}

/* Adds a command that was carried out to the changes. An entry of a stream gets the id that it has. */
static void record(struct hw_keys *k, size_t n, const char *const *words)
{
	struct hw_json j;
	char id[HW_STREAM_ID_TEXT];
	bool is_entry = strcmp(words[0], "XADD") == 0;
	hw_json_append(&j, k->changes);
	hw_json_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		const char *word = is_entry && i == 5 ? hw_stream_id_print(hw_keys_newest(k, words[1]), id) : words[i];
		hw_json_item_bytes(&j, word, strlen(word));
	}
	hw_json_close(&j, ']');
	if (hw_json_end(&j) != 0 || evbuffer_get_length(k->changes) > CHANGES_MAX)
		drop_changes(k);
}

void hw_keys_run(struct hw_keys *k, size_t n, const char *const *words, FILE *out)
{
	const struct command *c = commands, *end = commands + sizeof(commands) / sizeof(*commands);
	while (c < end && (n == 0 || strcmp(c->name, words[0]) != 0))
		c++;
	const struct hw_key *o = c < end && n >= c->least && c->type < HW_KEY_TYPES ? hw_keys_find(k, words[1]) : NULL;
	if (c == end || n < c->least) {
		if (out)
			fputs("-ERR unknown command, or too few arguments\r\n", out);
	} else if (o && o->type != c->type) {
		if (out)
			fputs("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", out);
	} else {
		c->fn(k, n, words, out);
		if (c->writes && k->changes)
			record(k, n, words);
	}
}

void hw_keys_do(struct hw_keys *k, const char *const *words)
{
	size_t n = 0;
	while (words[n])
		n++;
	hw_keys_run(k, n, words, NULL);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

const char *hw_keys_text(const struct hw_keys *k, const char *key)
{
	const struct hw_key *o = hw_keys_find(k, key);
	return o ? o->text : NULL;
}

const char *hw_keys_field(const struct hw_keys *k, const char *key, const char *field)
{
	const struct hw_key *o = hw_keys_find(k, key);
	const struct hw_dict_item *item = o ? hw_dict_find(&o->items, field) : NULL;
	return item ? item->value : NULL;
}

const char *hw_keys_item(const struct hw_keys *k, const char *key, size_t at)
{
	const struct hw_key *o = hw_keys_find(k, key);
	return o && at < o->items.n ? o->items.items[at].name : NULL;
}

struct hw_stream_id hw_keys_newest(const struct hw_keys *k, const char *stream)
{
	const struct hw_key *o = hw_keys_find(k, stream);
	return o ? newest(o) : (struct hw_stream_id){0, 0};
}

bool hw_keys_failed(const struct hw_keys *k)
{
	return k->failed;
}

bool hw_keys_must_store(const struct hw_keys *k)
{
	return k->must_store;
}

void hw_keys_stored(struct hw_keys *k)
{
	k->must_store = false;
	drop_changes(k);
	k->changes = evbuffer_new();
}

struct evbuffer *hw_keys_changes(struct hw_keys *k)
{
	return k->changes;
}

/* Writes the commands that make the key: an array of words each. */
static void write_key(struct hw_json *j, const char *name, const struct hw_key *o)
{
	static const char *const names[] = {
		[HW_KEY_STRING] = "SET", [HW_KEY_HASH] = "HSET", [HW_KEY_ZSET] = "ZADD", [HW_KEY_SET] = "SADD"};
	hw_json_open(j, '[');
	hw_json_item(j, names[o->type]);
	hw_json_item_bytes(j, name, strlen(name));
	if (o->type == HW_KEY_STRING)
		hw_json_item_bytes(j, o->text ? o->text : "", o->text ? strlen(o->text) : 0);
	for (size_t i = 0; i < o->items.n; i++) {
		const char *item = o->items.items[i].name, *value = o->items.items[i].value;
		if (o->type == HW_KEY_ZSET)
			hw_json_item_bytes(j, value, strlen(value));
		hw_json_item_bytes(j, item, strlen(item));
		if (o->type == HW_KEY_HASH)
			hw_json_item_bytes(j, value, strlen(value));
	}
	hw_json_close(j, ']');
}

static void write_entry(struct hw_json *j, const char *name, const struct hw_key_entry *e)
{
	const char *const head[] = {"MAXLEN", "~", "1000000"};
	char id[HW_STREAM_ID_TEXT];
	hw_json_open(j, '[');
	hw_json_item(j, "XADD");
	hw_json_item_bytes(j, name, strlen(name));
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		hw_json_item(j, head[i]);
	hw_json_item(j, hw_stream_id_print(e->id, id));
	for (size_t i = 0; i < e->n; i++)
		hw_json_item_bytes(j, e->words[i], strlen(e->words[i]));
	hw_json_close(j, ']');
}

void hw_keys_write(const struct hw_keys *k, struct hw_json *j)
{
	for (size_t i = 0; i < k->keys.n; i++) {
		const char *name = k->keys.items[i].name;
		const struct hw_key *o = k->keys.items[i].value;
		if (o->type != HW_KEY_STREAM)
			write_key(j, name, o);
		for (size_t e = 0; e < o->n; e++)
			write_entry(j, name, &o->entries[o->first + e]);
	}
}

struct hw_keys *hw_keys_new(uint64_t seed)
{
	hw_dict_seed(seed);
	return calloc(1, sizeof(struct hw_keys));
}

void hw_keys_free(struct hw_keys *k)
{
	if (!k)
		return;
	hw_dict_fini(&k->keys, key_free);
	drop_changes(k);
	free(k);
}
