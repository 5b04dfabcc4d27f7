/* SPDX-License-Identifier: MIT */
/*
 * Protects the address against pages of other web servers. A browser sends the name from which it loaded a page in the
 * header Host, and the page's origin in Origin. By DNS rebinding, a page of another server can send requests to a
 * server on this machine. But then Host contains the other server's name. Pure.
 */
#ifndef HW_HTTP_ORIGIN_H
#define HW_HTTP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#define HW_ORIGIN_NAMES_MAX 1024 /* length of the list in bytes */

/*
 * Whether the header `host` (name or address, with or without port) names this server. It does if it is one of these:
 *
 * - localhost, or a name in `names` (separated by commas or blanks)
 * - `local`, the numeric address to which the client connected; or any loopback address if `local` is one
 * - any address, if `any`: the server listens on all addresses, perhaps behind an address translation
 */
bool hw_origin_is_host(const char *host, const char *names, const char *local, bool any);
/* Whether a page of `origin` ("https://name:port") may change something on this server. `host` is the server's name
 * in the request. The page may if `host` is the authority of `origin`, or if the name of the origin is in `names`. */
bool hw_origin_may_write(const char *origin, const char *host, const char *names);
/* Returns NULL, or the first item of the list that cannot be the name of a host, with its length in *len. */
const char *hw_origin_wrong_name(const char *names, size_t *len);
/* Whether the header Content-Type is application/json. A form in another server's page cannot send this type. */
bool hw_origin_is_json(const char *type);

#endif
