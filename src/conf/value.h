/* SPDX-License-Identifier: MIT */
/*
 * One value: conversion of a text for its field, and operations on a field whose type only the table has. `base` is the
 * struct to which the option's offset refers. Internal to src/conf.
 */
#ifndef HW_CONF_VALUE_H
#define HW_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/table.h"

/* Writes the shortest form of a duration with one unit: "1d", "250ms", "0". */
const char *hw_conf_duration_format(int64_t ms, char *buf, size_t cap);

/* Writes the range of a number or duration: "1 to 65535", "100ms to 3650d". */
const char *hw_conf_range(const struct hw_conf_option *o, char *buf, size_t cap);

/*
 * Checks `text` and stores it; appends it if the field is a list. Returns 0. Returns -ENOMEM, or -EINVAL with the
 * reason in `why`, with the field unchanged.
 */
int hw_conf_value_set(const struct hw_conf_option *o, const char *text, void *base, char *why, size_t cap);

bool hw_conf_value_equal(const struct hw_conf_option *o, const void *a, const void *b);

/* Copies the value of `from` to `to`. Not for lists. Returns 0, or -ENOMEM with `to` unchanged. */
int hw_conf_value_copy(const struct hw_conf_option *o, const void *from, void *to);

/* Writes "key = value"; for a list one line per element. */
void hw_conf_value_print(const struct hw_conf_option *o, const void *base, FILE *out);

/* Frees what the field owns. */
void hw_conf_value_free(const struct hw_conf_option *o, void *base);

#endif
