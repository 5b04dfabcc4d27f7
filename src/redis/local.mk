# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libredis.a
REDIS_LIBS = libredis.a libinventory.a $(NODES_LIBS) $(LINK_LIBS)
libredis_a_SOURCES = \
	src/redis/answers.c \
	src/redis/beside.c \
	src/redis/call.c \
	src/redis/call_owner.c \
	src/redis/calls.c \
	src/redis/cluster.c \
	src/redis/dues.c \
	src/redis/pending_writes.c \
	src/redis/events.c \
	src/redis/flags.c \
	src/redis/items.c \
	src/redis/inventory.c \
	src/redis/kept.c \
	src/redis/keys.c \
	src/redis/keyspace.c \
	src/redis/load.c \
	src/redis/sight_record.c \
	src/redis/sight_records.c \
	src/redis/monitors.c \
	src/redis/page.c \
	src/redis/parent_heard.c \
	src/redis/plan.c \
	src/redis/published.c \
	src/redis/redis.c \
	src/redis/refusal.c \
	src/redis/resync.c \
	src/redis/server_run_id.c \
	src/redis/script.c \
	src/redis/sightings.c \
	src/redis/sink.c \
	src/redis/tail.c \
	src/redis/ttl_queries.c \
	src/redis/watched.c
redis_lua = \
	src/redis/scripts/claim.lua \
	src/redis/scripts/inventory.lua \
	src/redis/scripts/sight_record.lua \
	src/redis/scripts/monitors.lua \
	src/redis/scripts/published.lua \
	src/redis/scripts/refresh.lua \
	src/redis/scripts/release.lua \
	src/redis/scripts/remove.lua \
	src/redis/scripts/renew.lua \
	src/redis/scripts/transition.lua \
	src/redis/scripts/unseen.lua

# Put into those that include them.
redis_lua_parts = \
	src/redis/scripts/fence.lua \
	src/redis/scripts/tokens.lua \
	src/redis/scripts/view.lua
nodist_libredis_a_SOURCES = src/redis/scripts.c
redis_places = src/redis/scripts/places

src/redis/places.h: src/redis/places.sh $(redis_places)
	$(AM_V_GEN)$(MKDIR_P) src/redis && sh '$(srcdir)/src/redis/places.sh' header '$(srcdir)/$(redis_places)' >$@.tmp && mv $@.tmp $@

src/redis/scripts.c: src/redis/embed.sh src/redis/places.sh $(redis_places) src/core/report.c $(redis_lua) $(redis_lua_parts)
	$(AM_V_GEN)$(MKDIR_P) src/redis && cd '$(srcdir)' && \
		sh src/redis/embed.sh '$(abs_builddir)/$@' redis/script.h hw_script $(redis_places) src/core/report.c $(redis_lua)
BUILT_SOURCES += src/redis/places.h src/redis/scripts.c
CLEANFILES += src/redis/places.h src/redis/scripts.c
