# SPDX-License-Identifier: MIT
libalert_a_SOURCES += \
	src/alert/state/message.c
heartwheel_alert_SOURCES += \
	src/alert/state/commit.c \
	src/alert/state/holder.c \
	src/alert/state/loader.c \
	src/alert/state/loader_devices.c \
	src/alert/state/outbox.c \
	src/alert/state/store.c

alert_lua = \
	src/alert/state/scripts/commit.lua \
	src/alert/state/scripts/renew.lua \
	src/alert/state/scripts/take.lua \
	src/alert/state/scripts/trim.lua
# Put into those that include it.
alert_lua_parts = src/alert/state/scripts/lease.lua
nodist_heartwheel_alert_SOURCES = src/alert/state/scripts.c
alert_places = src/alert/state/scripts/places

src/alert/state/places.h: src/redis/places.sh $(alert_places)
	$(AM_V_GEN)$(MKDIR_P) src/alert/state && sh '$(srcdir)/src/redis/places.sh' header '$(srcdir)/$(alert_places)' >$@.tmp && mv $@.tmp $@

src/alert/state/scripts.c: src/redis/embed.sh src/redis/places.sh $(alert_places) $(alert_lua) $(alert_lua_parts)
	$(AM_V_GEN)$(MKDIR_P) src/alert/state && cd '$(srcdir)' && \
		sh src/redis/embed.sh '$(abs_builddir)/$@' alert/state/script.h hw_alert_script $(alert_places) - $(alert_lua)
BUILT_SOURCES += src/alert/state/places.h src/alert/state/scripts.c
CLEANFILES += src/alert/state/places.h src/alert/state/scripts.c
