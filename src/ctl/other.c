/* SPDX-License-Identifier: MIT */
/* See other.h. */
#include "ctl/other.h"

#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/shared.h"

struct place {
	struct hw_conf_head head;
	char *socket;
};

/* What `socket` of a section says in a configuration, of which nothing else is judged here. Owned; NULL: without
 * memory. */
static char *find_socket(const char *config, const char *section)
{
	char usual[HW_CONF_SOCKET_MAX + 1];
	snprintf(usual, sizeof(usual), HW_RUNSTATEDIR "/%s.sock", section);
	const struct hw_conf_option rows[] = {{section, "socket", HW_CONF_PATH, HW_CONF_AT(struct place, socket),
	                                       .min = 1, .max = HW_CONF_SOCKET_MAX, .dflt = usual, .borrowed = true}};
	const struct hw_conf_table table = {.options = rows, .n_options = 1, .size = sizeof(struct place)};
	struct hw_conf_errors errors = {0};
	struct place *read = hw_conf_load(&table, config, &errors), *rest = errors.rest;
	const char *said = read ? read->socket : rest ? rest->socket : NULL;
	char *socket = strdup(said ? said : usual);
	hw_conf_free(read);
	hw_conf_errors_fini(&errors);
	return socket;
}

int hw_ask_other(const struct hw_whom *whom, const char *program, const char *section,
                 int (*run)(struct hw_ctl *ctl, void *arg), void *arg)
{
	struct hw_ctl ctl;
	int rc;
	hw_screen_init(&ctl.screen);
	char *found = whom->socket ? NULL : find_socket(whom->config, section);
	const char *socket = whom->socket ? whom->socket : found;
	ctl.client = socket ? hw_client_new(socket) : NULL;
	if (!ctl.client) {
		rc = hw_failed(&ctl, "out of memory");
	} else {
		/* A socket that was named may be heartwheeld's, which hands the request on. */
		hw_client_ask_of(ctl.client, whom->socket ? "a daemon" : program, whom->socket ? "http" : section);
		rc = run(&ctl, arg);
		hw_client_free(ctl.client);
	}
	free(found);
	return rc;
}
