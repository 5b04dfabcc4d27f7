/* SPDX-License-Identifier: MIT */
/* A list of servers in the value of a key: "host:port, [address]:port, ...". */
#ifndef HW_CONF_HOSTS_H
#define HW_CONF_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#define HW_HOSTS_MAX     16
#define HW_HOST_NAME_MAX 255 /* bytes */
#define HW_HOST_TEXT     (HW_HOST_NAME_MAX + 10)

struct hw_host {
	char name[HW_HOST_NAME_MAX + 1]; /* name, or address without brackets; "": none */
	int port;
};

struct hw_hosts {
	struct hw_host at[HW_HOSTS_MAX];
	size_t n;
};

/* Parses a list of 1 to HW_HOSTS_MAX different servers. Returns 0, or -EINVAL with the reason in `why`. */
int hw_hosts_parse(struct hw_hosts *h, const char *text, char *why, size_t cap);
/* Sets name and port ("6379"). Returns false if they are not valid for a server. */
bool hw_host_set(struct hw_host *h, const char *name, size_t len, const char *port, size_t port_len);
bool hw_host_equal(const struct hw_host *a, const struct hw_host *b);
/* "host:port" or "[address]:port". Returns `buf`. */
const char *hw_host_text(const struct hw_host *h, char buf[HW_HOST_TEXT]);

#endif
