# SPDX-License-Identifier: MIT
bin_PROGRAMS += heartwheelctl
heartwheelctl_SOURCES = \
	src/ctl/answer.c \
	src/ctl/board.c \
	src/ctl/check.c \
	src/ctl/client.c \
	src/ctl/daemon.c \
	src/ctl/device.c \
	src/ctl/discover.c \
	src/ctl/discover_listen.c \
	src/ctl/discover_write.c \
	src/ctl/events.c \
	src/ctl/history.c \
	src/ctl/history_show.c \
	src/ctl/incident.c \
	src/ctl/inventory.c \
	src/ctl/list.c \
	src/ctl/live.c \
	src/ctl/main.c \
	src/ctl/nodes.c \
	src/ctl/notify.c \
	src/ctl/options.c \
	src/ctl/other.c \
	src/ctl/recent.c \
	src/ctl/status.c \
	src/ctl/task.c \
	src/ctl/task_show.c \
	src/ctl/text.c \
	src/ctl/top.c \
	src/ctl/top_draw.c \
	src/ctl/top_list.c \
	src/ctl/top_view.c \
	src/ctl/user.c \
	src/ctl/watch.c \
	src/ctl/wheel.c \
	src/ctl/words.c
heartwheelctl_LDADD = $(DISCOVER_LIBS) libhttp.a libmqtt.a libconf.a $(CORE_LIBS) $(MOSQUITTO_LIBS) $(CURSES_LIBS) $(CURL_LIBS) $(CJSON_LIBS) $(CRYPTO_LIBS) -lm -lpthread

# What discover finds; a library, so that its tests can link it.
noinst_LIBRARIES += libdiscover.a
DISCOVER_LIBS = libdiscover.a
libdiscover_a_SOURCES = \
	src/ctl/discover_find.c \
	src/ctl/discover_groups.c \
	src/ctl/discover_levels.c \
	src/ctl/discover_lines.c \
	src/ctl/discover_order.c \
	src/ctl/discover_payload.c \
	src/ctl/discover_preset.c \
	src/ctl/discover_templates.c \
	src/ctl/discover_topics.c
