# SPDX-License-Identifier: MIT
SIMULATION_TESTS = tests/simulation/test_incident_simulation tests/simulation/test_nodes_simulation tests/simulation/test_simulation \
	tests/simulation/test_tasks_simulation

# The daemon's wiring as it is.
wiring = \
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
	src/daemon/cluster/cluster_standby.c \
	src/daemon/cluster/cluster_stream.c \
	src/daemon/cluster/peers.c \
	src/daemon/config/specs.c \
	src/daemon/loop/fanout.c \
	src/daemon/loop/reports.c \
	src/daemon/loop/turn.c \
	src/daemon/loop/wall_clock.c \
	src/daemon/retained/discovery.c \
	src/daemon/retained/generations.c \
	src/daemon/retained/old_topics.c \
	src/daemon/retained/presence.c \
	src/daemon/retained/published.c \
	src/daemon/retained/retained.c \
	src/daemon/retained/retained_sink.c \
	src/daemon/retained/status.c \
	src/daemon/store/pending.c \
	src/daemon/store/store.c \
	src/daemon/visibility/sightings.c \
	src/daemon/visibility/unjudged.c \
	src/daemon/visibility/visibility.c \
	tests/simulation/absent.c

# A single monitor: the wiring above models of what it stands on. What a cluster would need is linked, and not called.
simulation = \
	$(wiring) \
	src/daemon/cluster/cluster_sentinel.c \
	src/daemon/cluster/cluster_view.c \
	src/daemon/store/prefix_guard.c \
	tests/simulation/sim.c \
	tests/simulation/sim_broker.c \
	tests/simulation/sim_fleet.c \
	tests/simulation/sim_gateway.c \
	tests/simulation/sim_host.c \
	tests/simulation/sim_judge.c \
	tests/simulation/sim_learning.c \
	tests/simulation/sim_metrics.c \
	tests/simulation/sim_mqtt.c \
	tests/simulation/sim_oracle.c \
	tests/simulation/sim_plan.c \
	tests/simulation/sim_queue.c \
	tests/simulation/sim_redis.c \
	tests/simulation/sim_store.c \
	tests/simulation/sim_traffic.c \
	tests/simulation/sim_trouble.c \
	tests/simulation/sim_watch.c \
	tests/simulation/sim_world.c
simulation_libs = $(MQTT_LIBS) $(REDIS_LIBS) $(CORE_LIBS)
simulation_wraps = -Wl,--wrap=hw_monitor_next -Wl,--wrap=hw_monitor_messages -Wl,--wrap=hw_blind_begin \
	-Wl,--wrap=hw_blind_end -Wl,--wrap=hw_monitor_link -Wl,--wrap=hw_monitor_publisher -Wl,--wrap=hw_monitor_barrier \
	-Wl,--wrap=hw_monitor_loaded -Wl,--wrap=hw_pace_woke -Wl,--wrap=hw_pace_sleeps
EXTRA_PROGRAMS += tests/simulation/simulate
tests_simulation_simulate_SOURCES = tests/simulation/simulate.c $(simulation)
tests_simulation_simulate_LDADD = $(simulation_libs)
tests_simulation_simulate_LDFLAGS = $(simulation_wraps)
tests_simulation_test_simulation_SOURCES = tests/simulation/test_simulation.c $(simulation)
tests_simulation_test_simulation_LDADD = $(simulation_libs) $(CHECK_LIBS)
tests_simulation_test_simulation_LDFLAGS = $(simulation_wraps)

# Several nodes, likewise.
nodes_simulation = \
	$(wiring) \
	src/link/eval.c \
	src/link/trouble.c \
	src/mqtt/barrier.c \
	src/mqtt/copies.c \
	src/redis/keys.c \
	src/redis/server_run_id.c \
	tests/simulation/nodes_absent.c \
	tests/simulation/nodes_broker.c \
	tests/simulation/nodes_fleet.c \
	tests/simulation/nodes_host.c \
	tests/simulation/nodes_link.c \
	tests/simulation/nodes_mqtt.c \
	tests/simulation/nodes_oracle.c \
	tests/simulation/nodes_redis.c \
	tests/simulation/nodes_scenes.c \
	tests/simulation/nodes_sink.c \
	tests/simulation/nodes_tail.c \
	tests/simulation/nodes_trouble.c \
	tests/simulation/nodes_world.c
nodes_simulation_libs = $(NODES_LIBS) $(CORE_LIBS)
nodes_simulation_wraps = -Wl,--wrap=hw_monitor_reread_begin -Wl,--wrap=calloc -Wl,--wrap=hw_pace_woke
EXTRA_PROGRAMS += tests/simulation/nodes_simulate
tests_simulation_nodes_simulate_SOURCES = tests/simulation/nodes_simulate.c $(nodes_simulation)
tests_simulation_nodes_simulate_LDADD = $(nodes_simulation_libs)
tests_simulation_nodes_simulate_LDFLAGS = $(nodes_simulation_wraps)
tests_simulation_test_nodes_simulation_SOURCES = tests/simulation/test_nodes_simulation.c $(nodes_simulation)
tests_simulation_test_nodes_simulation_LDADD = $(nodes_simulation_libs) $(CHECK_LIBS)
tests_simulation_test_nodes_simulation_LDFLAGS = $(nodes_simulation_wraps)
incident_simulation = \
	tests/simulation/incident_fleet.c \
	tests/simulation/incident_host.c \
	tests/simulation/incident_oracle.c \
	tests/simulation/incident_world.c
EXTRA_PROGRAMS += tests/simulation/incident_simulate
tests_simulation_incident_simulate_SOURCES = tests/simulation/incident_simulate.c $(incident_simulation)
tests_simulation_incident_simulate_LDADD = $(INCIDENT_LIBS) -lm
tests_simulation_test_incident_simulation_SOURCES = tests/simulation/test_incident_simulation.c $(incident_simulation)
tests_simulation_test_incident_simulation_LDADD = $(INCIDENT_LIBS) $(CHECK_LIBS) -lm
tasks_simulation = \
	tests/simulation/tasks_oracle.c \
	tests/simulation/tasks_plan.c \
	tests/simulation/tasks_world.c \
	$(twin_tasks)
EXTRA_PROGRAMS += tests/simulation/tasks_simulate
tests_simulation_tasks_simulate_SOURCES = tests/simulation/tasks_simulate.c $(tasks_simulation)
tests_simulation_tasks_simulate_LDADD = libtasks.a $(CORE_LIBS) $(CRYPTO_LIBS)
tests_simulation_test_tasks_simulation_SOURCES = tests/simulation/test_tasks_simulation.c $(tasks_simulation)
tests_simulation_test_tasks_simulation_LDADD = libtasks.a $(LDADD) $(CRYPTO_LIBS)
CLEANFILES += tests/simulation/simulate$(EXEEXT) tests/simulation/nodes_simulate$(EXEEXT) tests/simulation/tasks_simulate$(EXEEXT) \
	tests/simulation/incident_simulate$(EXEEXT)

.PHONY: simulate simulate-nodes simulate-tasks simulate-incidents
# Many seeds, one after another; exit status 1 and the seed if one breaks a promise.
SEED = 1
RUNS = 10000

simulate: tests/simulation/simulate$(EXEEXT)
	nice tests/simulation/simulate$(EXEEXT) --seed $(SEED) --runs $(RUNS) --metrics

simulate-nodes: tests/simulation/nodes_simulate$(EXEEXT)
	nice tests/simulation/nodes_simulate$(EXEEXT) --seed $(SEED) --runs $(RUNS)

simulate-tasks: tests/simulation/tasks_simulate$(EXEEXT)
	nice tests/simulation/tasks_simulate$(EXEEXT) --seed $(SEED) --runs $(RUNS)

simulate-incidents: tests/simulation/incident_simulate$(EXEEXT)
	nice tests/simulation/incident_simulate$(EXEEXT) --seed $(SEED) --runs $(RUNS)
