# SPDX-License-Identifier: MIT
noinst_LIBRARIES += librun.a
RUN_LIBS = librun.a $(HTTP_LIBS) $(SYSTEMD_LIBS)
librun_a_SOURCES = \
	src/run/background.c \
	src/run/daemon.c \
	src/run/job.c \
	src/run/log.c \
	src/run/loop.c \
	src/run/manager.c \
	src/run/options.c \
	src/run/pidfile.c \
	src/run/program.c \
	src/run/user.c
