/* SPDX-License-Identifier: MIT */
/*
 * The address of Redis and the account there: all that a program knows of Redis before it connects. For a new kind of
 * address, add a member here and code in link.c. No other file reads the members.
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
	/* A list for hw_hosts_parse(), and the name of the master at those Sentinels. NULL or "": no Sentinels. If both
	 * are set, the Sentinels name the master, and host, port and unix_socket are not used. */
	const char *sentinels, *master;
	int db;
	const char *username, *password; /* "": none. The password was already read from its file */
};

/* Returns the address in the section [redis]. `password` (NULL: none) and the texts of the section are borrowed. */
struct hw_redis_address hw_redis_address_of(const struct hw_conf_redis *c, const char *password);

/* Copies the texts to the heap. Returns 0 or -ENOMEM; the caller must call hw_redis_address_fini() in both cases. */
int hw_redis_address_copy(struct hw_redis_address *to, const struct hw_redis_address *from);
/* Frees a copy and wipes its password. Zeroed storage is accepted. */
void hw_redis_address_fini(struct hw_redis_address *a);
/* Whether Sentinels are asked for the address. */
bool hw_redis_address_is_asked_for(const struct hw_redis_address *a);
/* Writes "host:port", "[address]:port", the path of the socket, or "the master NAME". */
void hw_redis_address_text(const struct hw_redis_address *a, char *buf, size_t cap);
/* Writes the prefix of the channels on which Redis publishes the key events of this db. The event's name follows it. */
void hw_redis_address_keyevents(const struct hw_redis_address *a, char *buf, size_t cap);
/* Returns the keys of [redis] that set this address, for an error message. */
const char *hw_redis_address_keys(const struct hw_redis_address *a);

#endif
