# SPDX-License-Identifier: MIT
# The keys, without the daemon: the test that compares them with Redis links them too.
alert_keys = \
	src/alert/memory/dict.c \
	src/alert/memory/keys.c \
	src/alert/memory/keys_read.c \
	src/alert/memory/keys_script.c
heartwheel_alert_SOURCES += \
	$(alert_keys) \
	src/alert/memory/fleet.c \
	src/alert/memory/memory.c \
	src/alert/memory/state_file.c
