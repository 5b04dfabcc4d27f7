/* SPDX-License-Identifier: MIT */
/* See hosts.h. Quadratic in the list, which is short. */
#include "conf/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PORT_DIGITS 5

static int port_of(const char *text, size_t len)
{
	int port = 0;
	if (len < 1 || len > PORT_DIGITS)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		port = port * 10 + (text[i] - '0');
	}
	return port <= 65535 ? port : 0;
}

bool hw_host_set(struct hw_host *h, const char *name, size_t len, const char *port, size_t port_len)
{
	int number = port_of(port, port_len);
	if (len < 1 || len > HW_HOST_NAME_MAX || !number)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("[],/", name[i]))
			return false;
	memcpy(h->name, name, len);
	h->name[len] = '\0';
	h->port = number;
	return true;
}

bool hw_host_equal(const struct hw_host *a, const struct hw_host *b)
{
	return a->port == b->port && strcasecmp(a->name, b->name) == 0;
}

const char *hw_host_text(const struct hw_host *h, char buf[HW_HOST_TEXT])
{
	snprintf(buf, HW_HOST_TEXT, strchr(h->name, ':') ? "[%s]:%d" : "%s:%d", h->name, h->port);
	return buf;
}

/* Parses one item of a list, without spaces around it. An address with colons is in brackets. */
static bool parse_one(struct hw_host *h, const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len);
	size_t name = colon ? (size_t)(colon - text) : 0, port = colon ? len - name - 1 : 0;
	bool six = name > 2 && text[0] == '[' && text[name - 1] == ']';
	if (!six && name && memchr(text, ':', name))
		return false;
	return colon && hw_host_set(h, six ? text + 1 : text, six ? name - 2 : name, colon + 1, port);
}

static bool is_known(const struct hw_hosts *h, const struct hw_host *one)
{
	for (size_t i = 0; i < h->n; i++)
		if (hw_host_equal(&h->at[i], one))
			return true;
	return false;
}

int hw_hosts_parse(struct hw_hosts *h, const char *text, char *why, size_t cap)
{
	h->n = 0;
	for (;; text++) {
		text += strspn(text, " ");
		size_t all = strcspn(text, ","), len = all;
		struct hw_host one;
		while (len && text[len - 1] == ' ')
			len--;
		if (!parse_one(&one, text, len))
			snprintf(why, cap, "'%.*s' is not host:port: give a list such as a.example:26379, [::1]:26379",
			         (int)(len < 64 ? len : 64), text);
		else if (is_known(h, &one))
			snprintf(why, cap, "'%.*s' is listed twice: remove one", (int)(len < 64 ? len : 64), text);
		else if (h->n == HW_HOSTS_MAX)
			snprintf(why, cap, "has more than %d servers: remove some", HW_HOSTS_MAX);
		else
			*why = '\0';
		if (*why)
			return -EINVAL;
		h->at[h->n++] = one;
		text += all;
		if (!*text)
			return 0;
	}
}
