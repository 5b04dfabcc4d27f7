/* SPDX-License-Identifier: MIT */
/* See origin.h. Cost: a scan of the list of names, if the client used a name. */
#include "http/origin.h"

#include <string.h>
#include <strings.h>

#include "http/ip.h"

#define SEPARATORS ", \t"

struct slice {
	const char *at;
	size_t len;
};

static bool is_text(struct slice s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

/* Takes the next item off `*list`; length 0: none. */
static struct slice next_item(const char **list)
{
	*list += strspn(*list, SEPARATORS);
	struct slice item = {*list, strcspn(*list, SEPARATORS)};
	*list += item.len;
	return item;
}

static bool has_name(const char *names, struct slice name)
{
	struct slice item;
	while ((item = next_item(&names)).len > 0)
		if (item.len == name.len && strncasecmp(item.at, name.at, name.len) == 0)
			return true;
	return false;
}

/* Returns an authority without its port: "[::1]:80" becomes "::1". A dot at the end is removed. */
static struct slice without_port(struct slice authority)
{
	struct slice name = authority;
	const char *end = NULL;
	if (name.len > 0 && name.at[0] == '[' && (end = memchr(name.at, ']', name.len))) {
		name.at++;
		name.len = (size_t)(end - name.at);
		return name;
	}
	end = memchr(name.at, ':', name.len);
	if (end)
		name.len = (size_t)(end - name.at);
	if (name.len > 1 && name.at[name.len - 1] == '.')
		name.len--;
	return name;
}

bool hw_origin_is_host(const char *host, const char *names, const char *local, bool any)
{
	struct slice name = without_port((struct slice){host, strlen(host)});
	unsigned char named[HW_IP_BYTES], is[HW_IP_BYTES];
	if (is_text(name, "localhost") || has_name(names, name))
		return true;
	if (!hw_ip_parse(name.at, name.len, named))
		return false;
	if (any)
		return true;
	if (!hw_ip_parse(local, strlen(local), is))
		return false;
	return memcmp(named, is, sizeof(is)) == 0 || (hw_ip_is_loopback(named) && hw_ip_is_loopback(is));
}

bool hw_origin_may_write(const char *origin, const char *host, const char *names)
{
	const char *authority = strstr(origin, "://");
	if (!authority)
		return false; /* also "null": a sandboxed page, or a file */
	authority += strlen("://");
	struct slice from = {authority, strcspn(authority, "/")};
	return is_text(from, host) || has_name(names, without_port(from));
}

const char *hw_origin_wrong_name(const char *names, size_t *len)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	struct slice item;
	while ((item = next_item(&names)).len > 0) {
		*len = item.len;
		if (strspn(item.at, bytes) < item.len || item.at[0] == '.' || item.at[0] == '-')
			return item.at;
	}
	return NULL;
}

bool hw_origin_is_json(const char *type)
{
	return is_text((struct slice){type, strcspn(type, "; \t")}, "application/json");
}
