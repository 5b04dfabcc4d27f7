/* SPDX-License-Identifier: MIT */
/*
 * What the tests of monitor.conf share. The rig says what the machine is called.
 */
#ifndef HW_TEST_CONF_RIG_H
#define HW_TEST_CONF_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "conf/conf.h"
#include "daemon/config/settings.h"

extern const char *rig_host_name; /* NULL: the name cannot be found out */

/* A file without a name, so that a test that fails leaves none behind. Returns its descriptor and a path to it. */
int rig_file(const void *text, size_t len, char *path, size_t cap);

/* Like hw_conf_load(), but for a text. The path is removed from the errors, because it differs in each run. */
void *rig_load_bytes(const struct hw_conf_table *table, const void *text, size_t len, struct hw_conf_errors *errors);

/* Must load. */
void *rig_load(const struct hw_conf_table *table, const char *text);

/* `expected`: what each error line starts with, or (after '~') what the error before holds as well. NULL ends it. */
void rig_refuse(const struct hw_conf_table *table, const void *text, size_t len, const char *const *expected);

#define REFUSE_OF(table, text, ...) rig_refuse(table, text, strlen(text), (const char *const[]){__VA_ARGS__, NULL})

/* heartwheeld's. */
#define REFUSE(text, ...) REFUSE_OF(&hw_settings_table, text, __VA_ARGS__)
struct hw_settings *load(const char *text);

#endif
