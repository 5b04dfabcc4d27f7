# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libconf.a
CONF_LIBS = libconf.a
libconf_a_SOURCES = \
	src/conf/diff.c \
	src/conf/draft.c \
	src/conf/errors.c \
	src/conf/hosts.c \
	src/conf/judge.c \
	src/conf/load.c \
	src/conf/parent.c \
	src/conf/parse.c \
	src/conf/presets.c \
	src/conf/secret.c \
	src/conf/shared.c \
	src/conf/suggest.c \
	src/conf/table.c \
	src/conf/value.c
