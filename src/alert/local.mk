# SPDX-License-Identifier: MIT
include src/alert/send/local.mk

# libalert.a is what tests link. Each folder adds its files to it or to the daemon.
noinst_LIBRARIES += libalert.a
ALERT_LIBS = libalert.a $(SEND_LIBS) $(LINK_LIBS) $(CORE_LIBS)
libalert_a_SOURCES = \
	src/alert/settings.c
sbin_PROGRAMS += heartwheel-alert
heartwheel_alert_SOURCES = \
	src/alert/app.c \
	src/alert/main.c \
	src/alert/reload.c \
	src/alert/turn.c
heartwheel_alert_LDADD = $(ALERT_LIBS) $(HTTP_LIBS) $(RUN_LIBS) $(CONF_LIBS) $(CORE_LIBS)

include src/alert/api/local.mk
include src/alert/follow/local.mk
include src/alert/memory/local.mk
include src/alert/state/local.mk
