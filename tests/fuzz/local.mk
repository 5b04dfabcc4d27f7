# SPDX-License-Identifier: MIT
# What fuzzing starts from and what it has found is fed to its targets once in `make check`.
FUZZ_TARGETS = alert_message conf discover http inventory packet payload redis_reply task_body task_message topic
FUZZ_TESTS = \
	tests/fuzz/replay_alert_message \
	tests/fuzz/replay_conf \
	tests/fuzz/replay_discover \
	tests/fuzz/replay_http \
	tests/fuzz/replay_inventory \
	tests/fuzz/replay_packet \
	tests/fuzz/replay_payload \
	tests/fuzz/replay_redis_reply \
	tests/fuzz/replay_task_body \
	tests/fuzz/replay_task_message \
	tests/fuzz/replay_topic
fuzz_common = tests/fuzz/replay.c
tests_fuzz_replay_alert_message_SOURCES = tests/fuzz/fuzz_alert_message.c $(fuzz_common)
tests_fuzz_replay_alert_message_LDADD = $(SEND_LIBS) $(CORE_LIBS)
tests_fuzz_replay_conf_SOURCES = tests/fuzz/fuzz_conf.c $(fuzz_common)
tests_fuzz_replay_conf_LDADD = $(SETTINGS_LIBS)
tests_fuzz_replay_discover_SOURCES = tests/fuzz/fuzz_discover.c src/ctl/discover_write.c src/ctl/text.c $(fuzz_common)
tests_fuzz_replay_discover_LDADD = $(DISCOVER_LIBS) $(SETTINGS_LIBS)
tests_fuzz_replay_http_SOURCES = tests/fuzz/fuzz_http.c $(fuzz_common)
tests_fuzz_replay_http_LDADD = $(CONTROL_LIBS) $(CORE_LIBS)
tests_fuzz_replay_inventory_SOURCES = tests/fuzz/fuzz_inventory.c $(fuzz_common)
tests_fuzz_replay_inventory_LDADD = $(INVENTORY_LIBS)
tests_fuzz_replay_packet_SOURCES = tests/fuzz/fuzz_packet.c $(fuzz_common)
tests_fuzz_replay_packet_LDADD = $(MQTT_LIBS) $(CORE_LIBS)
tests_fuzz_replay_payload_SOURCES = tests/fuzz/fuzz_payload.c $(fuzz_common)
tests_fuzz_replay_payload_LDADD = $(CORE_LIBS)
tests_fuzz_replay_redis_reply_SOURCES = tests/fuzz/fuzz_redis_reply.c $(fuzz_common)
tests_fuzz_replay_redis_reply_LDADD = $(REDIS_LIBS) $(CORE_LIBS)
tests_fuzz_replay_task_body_SOURCES = tests/fuzz/fuzz_task_body.c $(fuzz_common)
tests_fuzz_replay_task_body_LDADD = $(TASKS_LIBS)
tests_fuzz_replay_task_message_SOURCES = tests/fuzz/fuzz_task_message.c $(fuzz_common)
tests_fuzz_replay_task_message_LDADD = $(TASKS_LIBS)
tests_fuzz_replay_topic_SOURCES = tests/fuzz/fuzz_topic.c $(fuzz_common)
tests_fuzz_replay_topic_LDADD = $(CORE_LIBS)

# Each target under libFuzzer for FUZZ_SECONDS; built with clang in ./fuzz, whatever CC is.
.PHONY: fuzz
FUZZ_SECONDS = 20

fuzz: $(BUILT_SOURCES)
	@sh '$(srcdir)/tests/fuzz/run.sh' '$(srcdir)' '$(FUZZ_SECONDS)' '$(FUZZ_TARGETS)' \
		'-std=c17 -D_GNU_SOURCE -DHW_VERSION="$(PACKAGE_VERSION)" -I$(srcdir)/include -I$(srcdir)/src -I$(builddir)/src $(STYLE_CPPFLAGS)' \
		'$(HIREDIS_LIBS) $(EVENT_SSL_LIBS) $(EVENT_EXTRA_LIBS) $(EVENT_LIBS) $(SSL_LIBS) $(CRYPTO_LIBS) $(CURL_LIBS) $(CJSON_LIBS) $(MOSQUITTO_LIBS) -lm -lpthread' \
		$(libheartwheel_a_SOURCES) $(libconf_a_SOURCES) $(libdiscover_a_SOURCES) src/ctl/discover_write.c src/ctl/text.c $(libcontrol_a_SOURCES) $(libhttp_a_SOURCES) $(libinventory_a_SOURCES) \
		$(liblink_a_SOURCES) $(libnodes_a_SOURCES) $(libredis_a_SOURCES) $(libsettings_a_SOURCES) $(libtasks_a_SOURCES) \
		src/incident/sentence.c src/incident/window.c $(libsend_a_SOURCES) \
		src/mqtt/packet.c src/mqtt/properties.c src/run/job.c src/run/log.c src/run/user.c $(nodist_libtasks_a_SOURCES) $(nodist_libredis_a_SOURCES) $(nodist_libcontrol_a_SOURCES)
