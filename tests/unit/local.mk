# SPDX-License-Identifier: MIT
VALGRIND_TESTS += \
	tests/unit/test_accounts \
	tests/unit/test_address \
	tests/unit/test_backoff \
	tests/unit/test_batch \
	tests/unit/test_blind \
	tests/unit/test_bounds \
	tests/unit/test_bytes \
	tests/unit/test_canary \
	tests/unit/test_cluster \
	tests/unit/test_conf \
	tests/unit/test_conf_groups \
	tests/unit/test_conf_programs \
	tests/unit/test_conf_reload \
	tests/unit/test_conf_values \
	tests/unit/test_copies \
	tests/unit/test_discover \
	tests/unit/test_pending_writes \
	tests/unit/test_entry \
	tests/unit/test_event \
	tests/unit/test_evidence \
	tests/unit/test_expected \
	tests/unit/test_family \
	tests/unit/test_listed_parents \
	tests/unit/test_form \
	tests/unit/test_left_out \
	tests/unit/test_gate \
	tests/unit/test_gate_key \
	tests/unit/test_goodbye \
	tests/unit/test_group_labels \
	tests/unit/test_group \
	tests/unit/test_hearing \
	tests/unit/test_idstore \
	tests/unit/test_import \
	tests/unit/test_incident_class \
	tests/unit/test_incident_news \
	tests/unit/test_incident_parts \
	tests/unit/test_inflow \
	tests/unit/test_intake \
	tests/unit/test_json_text \
	tests/unit/test_kept \
	tests/unit/test_learn \
	tests/unit/test_learning \
	tests/unit/test_limits \
	tests/unit/test_metrics \
	tests/unit/test_monitor \
	tests/unit/test_monitor_key \
	tests/unit/test_monitor_key_blind \
	tests/unit/test_nodes \
	tests/unit/test_nodes_broker \
	tests/unit/test_nodes_parts \
	tests/unit/test_object \
	tests/unit/test_online_after \
	tests/unit/test_origin \
	tests/unit/test_pace \
	tests/unit/test_packet \
	tests/unit/test_parent_peers \
	tests/unit/test_parents \
	tests/unit/test_pages \
	tests/unit/test_past \
	tests/unit/test_payload \
	tests/unit/test_peers \
	tests/unit/test_probe \
	tests/unit/test_reading \
	tests/unit/test_recent \
	tests/unit/test_redis_keys \
	tests/unit/test_refused_topics \
	tests/unit/test_registry \
	tests/unit/test_regroup \
	tests/unit/test_reread \
	tests/unit/test_generations \
	tests/unit/test_retained_sink \
	tests/unit/test_ring \
	tests/unit/test_run \
	tests/unit/test_send_forms \
	tests/unit/test_send_notes \
	tests/unit/test_send_settings \
	tests/unit/test_rows \
	tests/unit/test_sentinel \
	tests/unit/test_siphash \
	tests/unit/test_sources \
	tests/unit/test_state_file \
	tests/unit/test_stored \
	tests/unit/test_stream_id \
	tests/unit/test_subscriptions \
	tests/unit/test_task_followers \
	tests/unit/test_task_message \
	tests/unit/test_task_name \
	tests/unit/test_task_wills \
	tests/unit/test_timeout \
	tests/unit/test_unseen \
	tests/unit/test_topic \
	tests/unit/test_transition \
	tests/unit/test_verdict \
	tests/unit/test_wheel
key_world = tests/unit/key_world.c
conf_rig = tests/unit/conf_rig.c
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c $(conf_rig)
tests_unit_test_cluster_LDADD = $(REDIS_LIBS) $(LDADD)
tests_unit_test_conf_LDADD = $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_conf_groups_SOURCES = tests/unit/test_conf_groups.c $(conf_rig)
tests_unit_test_conf_groups_LDADD = $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_conf_programs_SOURCES = tests/unit/test_conf_programs.c $(conf_rig)
tests_unit_test_conf_programs_LDADD = $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_conf_reload_SOURCES = tests/unit/test_conf_reload.c $(conf_rig)
tests_unit_test_conf_reload_LDADD = $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_conf_values_SOURCES = tests/unit/test_conf_values.c $(conf_rig)
tests_unit_test_conf_values_LDADD = $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_entry_LDADD = $(INVENTORY_LIBS) $(LDADD)
tests_unit_test_import_LDADD = $(INVENTORY_LIBS) $(LDADD)
tests_unit_test_rows_LDADD = $(INVENTORY_LIBS) $(LDADD)
tests_unit_test_regroup_LDFLAGS = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=strdup
tests_unit_test_metrics_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_unit_test_bounds_LDADD = $(CONTROL_LIBS) $(LDADD)
tests_unit_test_incident_class_LDADD = $(INCIDENT_LIBS) $(CHECK_LIBS) -lm
tests_unit_test_incident_news_LDADD = $(INCIDENT_LIBS) $(CHECK_LIBS) -lm
tests_unit_test_incident_parts_LDADD = $(INCIDENT_LIBS) $(CHECK_LIBS) -lm
tests_unit_test_monitor_key_SOURCES = tests/unit/test_monitor_key.c $(key_world)
tests_unit_test_monitor_key_blind_SOURCES = tests/unit/test_monitor_key_blind.c $(key_world)
tests_unit_test_accounts_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
tests_unit_test_origin_LDADD = $(HTTP_LIBS) $(CHECK_LIBS)
tests_unit_test_address_LDADD = $(LINK_LIBS) $(LDADD)
tests_unit_test_sentinel_LDADD = $(LINK_LIBS) $(LDADD)
tests_unit_test_pending_writes_LDADD = $(REDIS_LIBS) $(LDADD)
tests_unit_test_kept_LDADD = $(REDIS_LIBS) $(LDADD)
tests_unit_test_redis_keys_LDADD = $(REDIS_LIBS) $(LDADD)
tests_unit_test_nodes_broker_LDADD = $(NODES_LIBS) $(CHECK_LIBS)
tests_unit_test_nodes_LDADD = $(NODES_LIBS) $(CHECK_LIBS)
tests_unit_test_nodes_parts_LDADD = $(NODES_LIBS) $(CHECK_LIBS)
tests_unit_test_send_forms_LDADD = $(SEND_LIBS) $(LDADD)
tests_unit_test_send_notes_LDADD = $(SEND_LIBS) $(LDADD)
tests_unit_test_send_settings_SOURCES = tests/unit/test_send_settings.c $(conf_rig)
tests_unit_test_send_settings_LDADD = $(ALERT_LIBS) $(SETTINGS_LIBS) $(LDADD)
tests_unit_test_state_file_SOURCES = tests/unit/test_state_file.c src/alert/memory/state_file.c $(alert_keys)
nodist_tests_unit_test_state_file_SOURCES = $(nodist_heartwheel_alert_SOURCES)
tests_unit_test_state_file_LDADD = $(LINK_LIBS) $(HTTP_LIBS) $(LDADD)
tests_unit_test_state_file_CPPFLAGS = $(AM_CPPFLAGS) -DHW_STATE_FILE_MAX=3000000
tests_unit_test_generations_SOURCES = tests/unit/test_generations.c src/daemon/retained/generations.c
tests_unit_test_retained_sink_SOURCES = tests/unit/test_retained_sink.c src/daemon/retained/retained_sink.c
tests_unit_test_packet_LDADD = $(MQTT_LIBS) $(LDADD)
tests_unit_test_backoff_LDADD = libmqtt.a $(LDADD)
tests_unit_test_copies_LDADD = libmqtt.a $(LDADD)
tests_unit_test_limits_LDADD = libmqtt.a $(LDADD)
tests_unit_test_refused_topics_LDADD = libmqtt.a $(LDADD)
tests_unit_test_ring_LDADD = $(MQTT_LIBS) $(LDADD)
tests_unit_test_past_SOURCES = tests/unit/test_past.c src/tasks/follow/past.c
tests_unit_test_past_LDADD = $(TASKS_LIBS) $(HTTP_LIBS) $(LDADD)
tests_unit_test_peers_SOURCES = tests/unit/test_peers.c src/daemon/cluster/peers.c
tests_unit_test_peers_LDADD = $(NODES_LIBS) $(CORE_LIBS) $(LDADD)
tests_unit_test_subscriptions_SOURCES = tests/unit/test_subscriptions.c src/daemon/broker/subscriptions.c
tests_unit_test_subscriptions_LDADD = libmqtt.a $(LDADD)
tests_unit_test_task_followers_SOURCES = tests/unit/test_task_followers.c src/tasks/follow/followers.c src/tasks/follow/filter.c
tests_unit_test_task_followers_LDADD = $(TASKS_LIBS) $(HTTP_LIBS) $(LDADD)
tests_unit_test_task_wills_SOURCES = tests/unit/test_task_wills.c src/tasks/follow/wills.c
tests_unit_test_task_wills_LDADD = $(TASKS_LIBS) $(HTTP_LIBS) $(RUN_LIBS) $(CONF_LIBS) $(LDADD)
tests_unit_test_task_message_LDADD = $(TASKS_LIBS) $(MQTT_LIBS) $(LDADD)
tests_unit_test_task_name_LDADD = $(TASKS_LIBS) $(LDADD)
tests_unit_test_recent_SOURCES = tests/unit/test_recent.c src/ctl/recent.c
tests_unit_test_run_LDADD = $(RUN_LIBS) $(CHECK_LIBS)
tests_unit_test_run_LDFLAGS = -Wl,--wrap=poll
tests_unit_test_discover_SOURCES = tests/unit/test_discover.c src/ctl/discover_write.c src/ctl/text.c $(conf_rig)
tests_unit_test_discover_LDADD = $(DISCOVER_LIBS) $(SETTINGS_LIBS) $(LDADD)
