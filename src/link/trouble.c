/* SPDX-License-Identifier: MIT */
/* Finds the kind of an error reply, and its meaning for the operator. Cost: a few substring searches per error
 * reply. */
#include "link/trouble.h"

#include <stdio.h>
#include <string.h>

static const struct {
	enum hw_trouble kind;
	const char *word; /* the text that identifies the reply */
	bool global;
	bool bare; /* the hint is complete without the reply's text */
	const char *hint;
} table[] = {
	{HW_TROUBLE_NOSCRIPT, "NOSCRIPT", true, false, "Redis has forgotten the scripts"},
	{HW_TROUBLE_PASSWORD, "WRONGPASS", true, true,
         "Redis refused the password: check [redis] username and password_file"},
	{HW_TROUBLE_PASSWORD, "invalid password", true, true,
         "Redis refused the password: check [redis] username and password_file"},
	{HW_TROUBLE_NO_PASSWORD, "without any password", true, true,
         "Redis has no password, but [redis] password_file is set: remove it, or set a password in Redis"},
	/* This reply also has the words of the next row. */
	{HW_TROUBLE_PROTECTED, "in protected mode", true, true,
         "Redis is in protected mode and accepts only clients of its own machine: set a password in Redis and [redis] "
         "password_file, or protected-mode no in Redis"},
	{HW_TROUBLE_NO_PASSWORD, "no password is set", true, true,
         "Redis has no password, but [redis] password_file is set: remove it, or set a password in Redis"},
	{HW_TROUBLE_NOAUTH, "NOAUTH", true, true, "Redis needs a password: set [redis] username and password_file"},
	{HW_TROUBLE_NOPERM, "NOPERM", true, false,
         "Redis' ACL denies [redis] username a command or key that heartwheel needs"},
	{HW_TROUBLE_NOPERM, "user executing the script", true, false,
         "Redis' ACL denies [redis] username a command or key that heartwheel needs"},
	{HW_TROUBLE_NOPERM, "ACL failure in script", true, false,
         "Redis' ACL denies [redis] username a command or key that heartwheel needs"},
	{HW_TROUBLE_LOADING, "LOADING", true, true, "Redis is still loading its data"},
	{HW_TROUBLE_OOM, "OOM", true, false, "Redis is out of memory: raise its maxmemory"},
	{HW_TROUBLE_READONLY, "READONLY", true, false,
         "this Redis is a read-only replica: point [redis] host at its master"},
	{HW_TROUBLE_MISCONF, "MISCONF", true, false, "Redis refuses writes because it cannot save them to disk"},
	{HW_TROUBLE_MASTERDOWN, "MASTERDOWN", true, false, "this Redis is a replica that has lost its master"},
	{HW_TROUBLE_NOREPLICAS, "NOREPLICAS", true, false,
         "Redis refuses writes because it has fewer replicas than min-replicas-to-write"},
	{HW_TROUBLE_BUSY, "BUSY ", true, false, "Redis is busy with a slow script"},
	{HW_TROUBLE_CROSSSLOT, "CROSSSLOT", true, false,
         "Redis Cluster is not supported: point [redis] host at a Redis without cluster-enabled"},
	{HW_TROUBLE_MOVED, "MOVED", true, false,
         "Redis Cluster is not supported: point [redis] host at a Redis without cluster-enabled"},
	{HW_TROUBLE_CLUSTERDOWN, "CLUSTERDOWN", true, false,
         "Redis Cluster is not supported: point [redis] host at a Redis without cluster-enabled"},
	{HW_TROUBLE_DB, "DB index", true, false, "Redis has no such database: see [redis] db"},
	{HW_TROUBLE_STREAM_FULL, "last possible ID", true, false,
         "a stream has the greatest possible id and accepts no entry: save what you need of it and delete its key"},
	{HW_TROUBLE_WRONGTYPE, "WRONGTYPE", false, false, "a key holds a type that heartwheel does not write there"},
};

#define N_TABLE (sizeof(table) / sizeof(table[0]))

static size_t row_of(const char *reply)
{
	size_t i = 0;
	while (i < N_TABLE && !strstr(reply, table[i].word))
		i++;
	return i;
}

enum hw_trouble hw_trouble_of(const char *reply)
{
	size_t i = row_of(reply);
	return i < N_TABLE ? table[i].kind : HW_TROUBLE_OTHER;
}

bool hw_trouble_is_global(enum hw_trouble k)
{
	for (size_t i = 0; i < N_TABLE; i++)
		if (table[i].kind == k)
			return table[i].global;
	return false;
}

const char *hw_trouble_name(enum hw_trouble k)
{
	static const char *const names[HW_TROUBLE_KINDS] = {[HW_TROUBLE_NOAUTH] = "NOAUTH",
	                                                    [HW_TROUBLE_NOPERM] = "NOPERM",
	                                                    [HW_TROUBLE_LOADING] = "LOADING",
	                                                    [HW_TROUBLE_OOM] = "OOM",
	                                                    [HW_TROUBLE_READONLY] = "READONLY",
	                                                    [HW_TROUBLE_MISCONF] = "MISCONF",
	                                                    [HW_TROUBLE_MASTERDOWN] = "MASTERDOWN",
	                                                    [HW_TROUBLE_NOREPLICAS] = "NOREPLICAS",
	                                                    [HW_TROUBLE_BUSY] = "BUSY",
	                                                    [HW_TROUBLE_CROSSSLOT] = "CROSSSLOT",
	                                                    [HW_TROUBLE_MOVED] = "MOVED",
	                                                    [HW_TROUBLE_CLUSTERDOWN] = "CLUSTERDOWN",
	                                                    [HW_TROUBLE_WRONGTYPE] = "WRONGTYPE",
	                                                    [HW_TROUBLE_STREAM_FULL] = "STREAMFULL",
	                                                    [HW_TROUBLE_OTHER] = "other"};
	return (unsigned)k < HW_TROUBLE_KINDS ? names[k] : NULL;
}

void hw_trouble_text(const char *reply, char buf[HW_TROUBLE_TEXT])
{
	size_t i = row_of(reply);
	if (i < N_TABLE && table[i].bare)
		snprintf(buf, HW_TROUBLE_TEXT, "%s", table[i].hint);
	else
		snprintf(buf, HW_TROUBLE_TEXT, "%s (%.250s)",
		         i < N_TABLE ? table[i].hint : "Redis answered with an error", reply);
	for (char *c = buf; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
}

bool hw_trouble_due(struct hw_troubles *t, enum hw_trouble k, int64_t now_ms)
{
	return hw_trouble_due_again(&t->reported_ms[k], now_ms);
}

bool hw_trouble_due_again(int64_t *reported_ms, int64_t now_ms)
{
	if (*reported_ms && now_ms - *reported_ms < HW_TROUBLE_EVERY_MS)
		return false;
	*reported_ms = now_ms > 0 ? now_ms : 1;
	return true;
}
