# SPDX-License-Identifier: MIT
libtasks_a_SOURCES += \
	src/tasks/queue/calls.c \
	src/tasks/queue/replies.c
heartwheel_tasks_SOURCES += \
	src/tasks/queue/advice.c \
	src/tasks/queue/dispatcher.c \
	src/tasks/queue/reads.c \
	src/tasks/queue/store.c \
	src/tasks/queue/turn.c

tasks_lua = \
	src/tasks/queue/scripts/answer.lua \
	src/tasks/queue/scripts/callback.lua \
	src/tasks/queue/scripts/cancel.lua \
	src/tasks/queue/scripts/claim.lua \
	src/tasks/queue/scripts/count.lua \
	src/tasks/queue/scripts/list.lua \
	src/tasks/queue/scripts/online.lua \
	src/tasks/queue/scripts/page.lua \
	src/tasks/queue/scripts/show.lua \
	src/tasks/queue/scripts/submit.lua \
	src/tasks/queue/scripts/sweep.lua \
	src/tasks/queue/scripts/watch.lua

# Put into those that include them.
tasks_lua_parts = src/tasks/queue/scripts/common.lua src/tasks/queue/scripts/place.lua src/tasks/queue/scripts/watched.lua
nodist_libtasks_a_SOURCES = src/tasks/queue/scripts.c
tasks_places = src/tasks/queue/scripts/places

src/tasks/queue/places.h: src/redis/places.sh $(tasks_places)
	$(AM_V_GEN)$(MKDIR_P) src/tasks/queue && sh '$(srcdir)/src/redis/places.sh' header '$(srcdir)/$(tasks_places)' >$@.tmp && mv $@.tmp $@

src/tasks/queue/scripts.c: src/redis/embed.sh src/redis/places.sh $(tasks_places) $(tasks_lua) $(tasks_lua_parts)
	$(AM_V_GEN)$(MKDIR_P) src/tasks/queue && cd '$(srcdir)' && \
		sh src/redis/embed.sh '$(abs_builddir)/$@' tasks/queue/script.h hw_tasks_script $(tasks_places) - $(tasks_lua)
BUILT_SOURCES += src/tasks/queue/places.h src/tasks/queue/scripts.c
CLEANFILES += src/tasks/queue/places.h src/tasks/queue/scripts.c
