/* SPDX-License-Identifier: MIT */
/* See other.h. */
#include "ctl/other.h"

#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/shared.h"

struct place {
	struct hw_conf_head head;
	char *socket;
};

char *hw_find_socket(const char *config, const char *section)
{
	char usual[HW_CONF_SOCKET_MAX + 1];
	snprintf(usual, sizeof(usual), HW_RUNSTATEDIR "/%s.sock", section);
	const struct hw_conf_option rows[] = {{section, "socket", HW_CONF_PATH, HW_CONF_AT(struct place, socket),
	                                       .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = usual, .borrowed = true}};
	const struct hw_conf_table table = {.options = rows, .n_options = 1, .size = sizeof(struct place)};
	struct hw_conf_errors errors = {0};
	struct place *read = hw_conf_load(&table, config, &errors), *rest = errors.rest;
	const char *configured = read ? read->socket : rest ? rest->socket : NULL;
	char *socket = strdup(configured ? configured : usual);
	hw_conf_free(read);
	hw_conf_errors_fini(&errors);
	return socket;
}
