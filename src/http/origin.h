/* SPDX-License-Identifier: MIT */
/*
 * Defence of the address against pages of other web servers. A browser sends the name that a page was loaded from as
 * Host, and the page's own origin as Origin. By DNS rebinding a foreign page reaches a server of this machine, but
 * under the page's own name. Pure.
 */
#ifndef HW_HTTP_ORIGIN_H
#define HW_HTTP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#define HW_ORIGIN_NAMES_MAX 1024 /* bytes of the list */

/*
 * Whether `host`, the header (a name or an address, with or without a port), names this server: localhost; a name of
 * the list `names` (separated by commas or blanks); `local`, the numeric address that the client connected to; any
 * loopback address where that is one; any address at all if `any` (the server listens on every address, and may stand
 * behind an address translation).
 */
bool hw_origin_is_host(const char *host, const char *names, const char *local, bool any);
/* Whether a page of `origin` ("https://name:port") may write to the server that it calls `host`: both have the same
 * authority, or the origin's name is in the list `names`. */
bool hw_origin_may_write(const char *origin, const char *host, const char *names);
/* NULL, or the first item of the list that cannot be a host name; `*len` its length. */
const char *hw_origin_wrong_name(const char *names, size_t *len);
/* Whether `type`, the header Content-Type, is application/json, which no form of a foreign page can send. */
bool hw_origin_is_json(const char *type);

#endif
