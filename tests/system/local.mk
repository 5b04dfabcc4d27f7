# SPDX-License-Identifier: MIT
NODES_LIBS = libnodes.a libheartwheel.a
SYSTEM_TESTS = \
	tests/system/test_control \
	tests/system/test_control_events \
	tests/system/test_control_hostile \
	tests/system/test_control_list \
	tests/system/test_control_nodes \
	tests/system/test_control_socket \
	tests/system/test_control_store \
	tests/system/test_control_wheel \
	tests/system/test_ctl \
	tests/system/test_ctl_list \
	tests/system/test_keyspace \
	tests/system/test_keyspace_faults \
	tests/system/test_mqtt \
	tests/system/test_mqtt_ahead \
	tests/system/test_mqtt_evict \
	tests/system/test_mqtt_hostile \
	tests/system/test_mqtt_link \
	tests/system/test_mqtt_outlet \
	tests/system/test_mqtt_publisher \
	tests/system/test_mqtt_silence \
	tests/system/test_pass \
	tests/system/test_send_names \
	tests/system/test_redis \
	tests/system/test_redis_cluster \
	tests/system/test_redis_events \
	tests/system/test_redis_faults \
	tests/system/test_redis_fence \
	tests/system/test_redis_published \
	tests/system/test_redis_inventory \
	tests/system/test_redis_kept \
	tests/system/test_redis_plain \
	tests/system/test_redis_refresh \
	tests/system/test_redis_refusals \
	tests/system/test_redis_start \
	tests/system/test_redis_tail \
	tests/system/test_stream_reader \
	tests/system/test_tasks_twin
control_rig = tests/system/control_rig.c tests/system/control_server.c
control_stream = tests/system/control_stream.c
tests_system_test_control_SOURCES = tests/system/test_control.c $(control_rig)
tests_system_test_control_LDADD = $(CONTROL_LIBS) $(CURL_LIBS) $(LDADD)
tests_system_test_control_events_SOURCES = tests/system/test_control_events.c $(control_stream) $(control_rig)
tests_system_test_control_events_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_hostile_SOURCES = tests/system/test_control_hostile.c $(control_rig)
tests_system_test_control_hostile_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_list_SOURCES = tests/system/test_control_list.c $(control_rig)
tests_system_test_control_list_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_nodes_SOURCES = tests/system/test_control_nodes.c $(control_rig)
tests_system_test_control_nodes_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_socket_SOURCES = tests/system/test_control_socket.c $(control_rig)
tests_system_test_control_socket_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_store_SOURCES = tests/system/test_control_store.c $(control_stream) $(control_rig)
tests_system_test_control_store_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_control_wheel_SOURCES = tests/system/test_control_wheel.c $(control_rig)
tests_system_test_control_wheel_LDADD = $(CONTROL_LIBS) $(LDADD)
ctl_rig = tests/system/ctl_rig.c tests/system/control_server.c
tests_system_test_ctl_SOURCES = tests/system/test_ctl.c $(ctl_rig)
tests_system_test_ctl_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_ctl_list_SOURCES = tests/system/test_ctl_list.c $(ctl_rig)
tests_system_test_ctl_list_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_system_test_keyspace_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_keyspace_faults_SOURCES = \
	tests/system/redis_proxy.c \
	tests/system/redis_rig.c \
	tests/system/test_keyspace_faults.c
tests_system_test_keyspace_faults_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_mqtt_SOURCES = tests/system/test_mqtt.c tests/system/mqtt_broker.c
tests_system_test_mqtt_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_hostile_SOURCES = tests/system/test_mqtt_hostile.c tests/system/mqtt_broker.c
tests_system_test_mqtt_hostile_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_ahead_SOURCES = tests/system/test_mqtt_ahead.c tests/system/mqtt_broker.c
tests_system_test_mqtt_ahead_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_evict_SOURCES = tests/system/test_mqtt_evict.c tests/system/mqtt_broker.c
tests_system_test_mqtt_evict_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_link_SOURCES = tests/system/test_mqtt_link.c tests/system/mqtt_broker.c
tests_system_test_mqtt_link_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_outlet_SOURCES = tests/system/test_mqtt_outlet.c tests/system/mqtt_broker.c
tests_system_test_mqtt_outlet_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_publisher_SOURCES = tests/system/test_mqtt_publisher.c tests/system/mqtt_broker.c
tests_system_test_mqtt_publisher_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_mqtt_silence_SOURCES = \
	tests/system/mqtt_broker.c \
	tests/system/mqtt_relay.c \
	tests/system/test_mqtt_silence.c
tests_system_test_mqtt_silence_LDADD = $(MQTT_LIBS) $(LDADD)
tests_system_test_pass_SOURCES = tests/system/test_pass.c tests/system/pass_servers.c
tests_system_test_send_names_LDADD = $(SEND_LIBS) $(LDADD) -lpthread
tests_system_test_pass_LDADD = $(HTTP_LIBS) $(CORE_LIBS) $(CHECK_LIBS)
redis_fixture = tests/system/redis_fixture.c tests/system/redis_rig.c
tests_system_test_redis_SOURCES = tests/system/test_redis.c $(redis_fixture)
tests_system_test_redis_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_cluster_SOURCES = tests/system/test_redis_cluster.c $(redis_fixture)
tests_system_test_redis_cluster_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_events_SOURCES = tests/system/test_redis_events.c $(redis_fixture)
tests_system_test_redis_events_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_faults_SOURCES = tests/system/test_redis_faults.c $(redis_fixture)
tests_system_test_redis_faults_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_faults_LDFLAGS = -Wl,--wrap=event_add
tests_system_test_redis_published_SOURCES = tests/system/test_redis_published.c $(redis_fixture)
tests_system_test_redis_published_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_fence_SOURCES = tests/system/test_redis_fence.c $(redis_fixture)
tests_system_test_redis_fence_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_inventory_SOURCES = tests/system/test_redis_inventory.c $(redis_fixture)
tests_system_test_redis_inventory_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_kept_SOURCES = tests/system/test_redis_kept.c $(redis_fixture)
tests_system_test_redis_kept_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_plain_SOURCES = tests/system/test_redis_plain.c $(redis_fixture)
tests_system_test_redis_plain_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_refresh_SOURCES = tests/system/test_redis_refresh.c $(redis_fixture)
tests_system_test_redis_refresh_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_refusals_SOURCES = tests/system/test_redis_refusals.c $(redis_fixture)
tests_system_test_redis_refusals_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_start_SOURCES = tests/system/test_redis_start.c $(redis_fixture)
tests_system_test_redis_start_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_redis_tail_SOURCES = tests/system/test_redis_tail.c $(redis_fixture)
tests_system_test_redis_tail_LDADD = $(REDIS_LIBS) $(LDADD)
tests_system_test_stream_reader_SOURCES = tests/system/test_stream_reader.c $(redis_fixture)
tests_system_test_stream_reader_LDADD = $(REDIS_LIBS) $(LDADD)
tasks_redis = tests/system/tasks_redis.c tests/system/redis_rig.c
tests_system_test_tasks_twin_SOURCES = tests/system/test_tasks_twin.c $(tasks_redis) $(twin_tasks)
tests_system_test_tasks_twin_LDADD = $(TASKS_LIBS) $(REDIS_LIBS) $(LDADD)

# The simulated fleet: quickstart shows it, the system tests measure with it.
noinst_PROGRAMS += tests/system/fleet
tests_system_fleet_SOURCES = tests/system/fleet.c tests/system/fleet_account.c tests/system/fleet_options.c
tests_system_fleet_LDADD = $(MOSQUITTO_LIBS)

# Faults injected into real processes: five of each kind; and the full counts, which goes on where it was interrupted as
# long as the daemon is the same. FAULTS: further options (tests/system/faults/faults.py --help).
.PHONY: faults faults-full faults-deaf faults-nodes faults-tasks
run_faults = HW_BUILD='$(abs_builddir)' CC='$(CC)' PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
	'$(srcdir)/tests/system/faults/faults.py' --keep faults.logs

faults: $(sbin_PROGRAMS)
	@$(run_faults) $(FAULTS)

# Each way of being deaf, ROUNDS times; prints the counts.
ROUNDS = 50

faults-deaf: $(sbin_PROGRAMS)
	@HW_ROUNDS=$(ROUNDS) sh '$(srcdir)/tests/tools/system-tests.sh' '$(abs_builddir)' -s \
	 '$(srcdir)/tests/system/test_deaf.py' $(FAULTS)

faults-full: $(sbin_PROGRAMS)
	@$(run_faults) --full --state faults.state $(FAULTS)

# What heartwheel-history has to bear, in full counts: a hundred kills in the midst of a batch on each database, twenty trims
# while it is stopped, an emptied and a set-back Redis, MariaDB away, a full disk, two workers.
.PHONY: faults-history

faults-history: $(sbin_PROGRAMS)
	@HW_ROUNDS=100 HW_TRIMS=20 HW_DEVICES=1000 sh '$(srcdir)/tests/tools/system-tests.sh' '$(abs_builddir)' -s -v \
	 '$(srcdir)/tests/system/test_history.py' '$(srcdir)/tests/system/test_history_reports.py' $(FAULTS)

# heartwheel-alert and the servers of its receivers, each killed 100 times: no end is lost.
.PHONY: faults-alert

faults-alert: $(sbin_PROGRAMS)
	@HW_ROUNDS=100 sh '$(srcdir)/tests/tools/system-tests.sh' '$(abs_builddir)' -s \
	 '$(srcdir)/tests/system/test_incidents_kills.py' $(FAULTS)

# Faults of two and three nodes. NODES_ROUNDS: of each kind; NODES_MODE: mirror or standby; FAULTS=--full: the counts
# that faults/nodes.py --list says.
NODES_ROUNDS = 2
NODES_MODE = mirror
DEVICES = 200

faults-nodes: $(sbin_PROGRAMS)
	@HW_BUILD='$(abs_builddir)' PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '$(srcdir)/tests/system/faults/nodes.py' \
	 --keep faults.logs --devices $(DEVICES) --rounds $(NODES_ROUNDS) --mode $(NODES_MODE) $(FAULTS)

# heartwheel-tasks, killed at each named point, and three of them killed and stopped: each point once, or with
# FAULTS=--full the counts that faults/tasks.py --list says. Prints what was counted.
faults-tasks: $(sbin_PROGRAMS)
	@HW_BUILD='$(abs_builddir)' CC='$(CC)' PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '$(srcdir)/tests/system/faults/tasks.py' \
	 --keep faults.logs --jobs 4 $(FAULTS)
# For the Python tests: the receivers of heartwheel-alert, driven line by line.
# With small commits, so that a test needs few devices.
noinst_PROGRAMS += tests/system/alert_small_commits
tests_system_alert_small_commits_SOURCES = $(heartwheel_alert_SOURCES)
nodist_tests_system_alert_small_commits_SOURCES = $(nodist_heartwheel_alert_SOURCES)
tests_system_alert_small_commits_LDADD = $(heartwheel_alert_LDADD)
tests_system_alert_small_commits_CPPFLAGS = $(AM_CPPFLAGS) -DHW_ALERT_ITEMS_MAX=50
noinst_PROGRAMS += tests/system/send_messages
tests_system_send_messages_LDADD = $(SEND_LIBS) $(CORE_LIBS)
# The keys of heartwheel-alert in memory, without the daemon.
noinst_PROGRAMS += tests/system/alert_keys
tests_system_alert_keys_SOURCES = tests/system/alert_keys.c $(alert_keys)
nodist_tests_system_alert_keys_SOURCES = $(nodist_heartwheel_alert_SOURCES)
tests_system_alert_keys_LDADD = $(LINK_LIBS) $(HTTP_LIBS) $(CORE_LIBS)
