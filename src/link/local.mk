# SPDX-License-Identifier: MIT
noinst_LIBRARIES += liblink.a
LINK_LIBS = liblink.a libconf.a $(HIREDIS_LIBS) $(EVENT_LIBS) -lpthread
liblink_a_SOURCES = \
	src/link/address.c \
	src/link/eval.c \
	src/link/follow.c \
	src/link/guard.c \
	src/link/hooks.c \
	src/link/link.c \
	src/link/resolve.c \
	src/link/scripts.c \
	src/link/sentinel.c \
	src/link/trouble.c \
	src/link/voices.c
