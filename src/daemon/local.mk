# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libsettings.a
SETTINGS_LIBS = libsettings.a libhttp.a librun.a $(CONF_LIBS) $(CORE_LIBS)

# The configuration of heartwheeld; a library, so that its tests can link it.
libsettings_a_SOURCES = \
	src/daemon/config/names.c \
	src/daemon/config/preset.c \
	src/daemon/config/rules.c \
	src/daemon/config/settings.c
sbin_PROGRAMS += heartwheeld
heartwheeld_SOURCES = \
	src/daemon/app.c \
	src/daemon/broker/barriers.c \
	src/daemon/broker/broker.c \
	src/daemon/broker/dial.c \
	src/daemon/broker/feed.c \
	src/daemon/broker/share.c \
	src/daemon/broker/subscriptions.c \
	src/daemon/cluster/cluster.c \
	src/daemon/cluster/cluster_broker.c \
	src/daemon/cluster/cluster_evict.c \
	src/daemon/cluster/cluster_forms.c \
	src/daemon/cluster/cluster_gate.c \
	src/daemon/cluster/cluster_peers.c \
	src/daemon/cluster/cluster_redis.c \
	src/daemon/cluster/cluster_requests.c \
	src/daemon/cluster/cluster_sentinel.c \
	src/daemon/cluster/cluster_standby.c \
	src/daemon/cluster/cluster_strangers.c \
	src/daemon/cluster/cluster_stream.c \
	src/daemon/cluster/cluster_view.c \
	src/daemon/cluster/peers.c \
	src/daemon/config/lint.c \
	src/daemon/config/reload.c \
	src/daemon/config/specs.c \
	src/daemon/inventory/changes.c \
	src/daemon/inventory/inventory.c \
	src/daemon/inventory/inventory_file.c \
	src/daemon/inventory/table.c \
	src/daemon/loop/clock.c \
	src/daemon/loop/fanout.c \
	src/daemon/loop/reports.c \
	src/daemon/loop/turn.c \
	src/daemon/loop/wall_clock.c \
	src/daemon/main.c \
	src/daemon/observe.c \
	src/daemon/retained/discovery.c \
	src/daemon/retained/generations.c \
	src/daemon/retained/old_topics.c \
	src/daemon/retained/presence.c \
	src/daemon/retained/published.c \
	src/daemon/retained/retained.c \
	src/daemon/retained/retained_sink.c \
	src/daemon/retained/status.c \
	src/daemon/store/keys.c \
	src/daemon/store/pending.c \
	src/daemon/store/prefix_guard.c \
	src/daemon/store/store.c \
	src/daemon/visibility/probes.c \
	src/daemon/visibility/sightings.c \
	src/daemon/visibility/unjudged.c \
	src/daemon/visibility/visibility.c
heartwheeld_LDADD = libsettings.a $(INVENTORY_LIBS) $(CONTROL_LIBS) $(MQTT_LIBS) $(REDIS_LIBS) $(RUN_LIBS) $(CONF_LIBS) $(CORE_LIBS)
