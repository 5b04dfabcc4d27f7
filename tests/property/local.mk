# SPDX-License-Identifier: MIT
VALGRIND_TESTS += \
	tests/property/prop_blind \
	tests/property/prop_discover \
	tests/property/prop_filter_index \
	tests/property/prop_gate \
	tests/property/prop_incident \
	tests/property/prop_intake \
	tests/property/prop_key \
	tests/property/prop_monitor \
	tests/property/prop_nodes \
	tests/property/prop_refresh \
	tests/property/prop_registry \
	tests/property/prop_rows \
	tests/property/prop_schedule \
	tests/property/prop_stream_gap \
	tests/property/prop_topic \
	tests/property/prop_wheel
if HAVE_SQLITE
VALGRIND_TESTS += tests/property/prop_history
endif
tests_property_prop_key_SOURCES = tests/property/prop_key.c $(key_world)
tests_property_prop_discover_SOURCES = tests/property/prop_discover.c src/ctl/discover_write.c src/ctl/text.c $(conf_rig)
tests_property_prop_discover_LDADD = $(DISCOVER_LIBS) $(SETTINGS_LIBS) $(LDADD)
tests_property_prop_history_LDADD = $(HISTORY_LIBS) $(LDADD)
tests_property_prop_incident_LDADD = $(INCIDENT_LIBS) $(CHECK_LIBS) -lm
tests_property_prop_schedule_LDADD = libtasks.a $(LDADD)
tests_property_prop_rows_LDADD = $(INVENTORY_LIBS) $(LDADD)
tests_property_prop_nodes_LDADD = $(NODES_LIBS) $(CHECK_LIBS) -lm
twin_tasks = tests/property/twin_tasks.c
