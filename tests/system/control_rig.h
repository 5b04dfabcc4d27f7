/* SPDX-License-Identifier: MIT */
/* Shared by the programs that test the control API: one server and its last answer, which are made for each test. */
#ifndef HW_TEST_CONTROL_RIG_H
#define HW_TEST_CONTROL_RIG_H

#include <cjson/cJSON.h>

#include "control_server.h"

extern struct server s;
extern struct reply r;

/* Fixtures of a test: a server that is still blind, or one that sees; and the end of both and of `r`. */
void rig_set_up_blind(void);
void rig_set_up(void);
void rig_tear_down(void);

/* Checks that `r` is an error with this status, in the format of all errors; frees it. */
void expect_error(int code);
/* The keys of a JSON object, in order, separated by a space. */
void expect_keys(const cJSON *object, const char *keys);
/* A number or a text that must be there. The text is borrowed from the object. */
double number(const cJSON *object, const char *key);
const char *text(const cJSON *object, const char *key);

#endif
