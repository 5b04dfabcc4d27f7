/* SPDX-License-Identifier: MIT */
/*
 * Where Redis is, and as whom: all that a program knows of it before the connection. A second kind of address is a
 * member here, and what link.c makes of it; nobody else takes one apart.
 */
#ifndef HW_LINK_ADDRESS_H
#define HW_LINK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/shared.h"

struct hw_redis_address {
	const char *host; /* used when unix_socket is "" */
	int port;
	const char *unix_socket; /* "": none */
	/* A list that hw_hosts_parse() takes, and the master's name there; NULL or "": none. With these the master is
	 * asked for, and host, port and unix_socket are not used. */
	const char *sentinels, *master;
	int db;
	const char *username, *password; /* "": none; the password is already read from its file */
};

/* What the section [redis] says. `password` (NULL: none) and the section's texts are borrowed. */
struct hw_redis_address hw_redis_address_of(const struct hw_conf_redis *c, const char *password);

/* Copies its texts to the heap. 0; or -ENOMEM, and hw_redis_address_fini() is still to be called. */
int hw_redis_address_copy(struct hw_redis_address *to, const struct hw_redis_address *from);
/* Of a copy; the password is wiped. Zeroed storage may be given. */
void hw_redis_address_fini(struct hw_redis_address *a);
/* Whether it is Sentinels that know where. */
bool hw_redis_address_is_asked_for(const struct hw_redis_address *a);
/* "host:port", "[address]:port" or the socket's path; or "the master NAME". */
void hw_redis_address_text(const struct hw_redis_address *a, char *buf, size_t cap);
/* What the channels on which Redis tells keys' events there begin with; the event's name follows. */
void hw_redis_address_keyevents(const struct hw_redis_address *a, char *buf, size_t cap);
/* Which keys of the section [redis] name it. */
const char *hw_redis_address_keys(const struct hw_redis_address *a);

#endif
