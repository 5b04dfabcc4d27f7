/* SPDX-License-Identifier: MIT */
/* See address.h. */
#include "link/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hw_redis_address hw_redis_address_of(const struct hw_conf_redis *c, const char *password)
{
	return (struct hw_redis_address){.host = c->host,
	                                 .port = (int)c->port,
	                                 .unix_socket = c->unix_socket,
	                                 .sentinels = c->sentinels,
	                                 .master = c->master,
	                                 .db = (int)c->db,
	                                 .username = c->username,
	                                 .password = password ? password : ""};
}

static char *copy_of(const char *text)
{
	return strdup(text ? text : "");
}

int hw_redis_address_copy(struct hw_redis_address *to, const struct hw_redis_address *from)
{
	*to = *from;
	to->host = strdup(from->host);
	to->unix_socket = strdup(from->unix_socket);
	to->sentinels = copy_of(from->sentinels);
	to->master = copy_of(from->master);
	to->username = strdup(from->username);
	to->password = strdup(from->password);
	return to->host && to->unix_socket && to->sentinels && to->master && to->username && to->password ? 0 : -ENOMEM;
}

void hw_redis_address_fini(struct hw_redis_address *a)
{
	if (a->password)
		explicit_bzero((char *)a->password, strlen(a->password));
	free((char *)a->host);
	free((char *)a->unix_socket);
	free((char *)a->sentinels);
	free((char *)a->master);
	free((char *)a->username);
	free((char *)a->password);
	*a = (struct hw_redis_address){0};
}

bool hw_redis_address_is_asked_for(const struct hw_redis_address *a)
{
	return a->sentinels && *a->sentinels;
}

void hw_redis_address_text(const struct hw_redis_address *a, char *buf, size_t cap)
{
	if (hw_redis_address_is_asked_for(a))
		snprintf(buf, cap, "the master %.255s", a->master);
	else if (*a->unix_socket)
		snprintf(buf, cap, "%s", a->unix_socket);
	else
		snprintf(buf, cap, strchr(a->host, ':') ? "[%.255s]:%d" : "%.255s:%d", a->host, a->port);
}

void hw_redis_address_keyevents(const struct hw_redis_address *a, char *buf, size_t cap)
{
	snprintf(buf, cap, "__keyevent@%d__:", a->db);
}

const char *hw_redis_address_keys(const struct hw_redis_address *a)
{
	if (hw_redis_address_is_asked_for(a))
		return "sentinels, master";
	return *a->unix_socket ? "unix_socket" : "host, port";
}
