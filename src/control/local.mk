# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libcontrol.a
CONTROL_LIBS = libcontrol.a libinventory.a $(RUN_LIBS) $(CONF_LIBS) $(CORE_LIBS)
libcontrol_a_SOURCES = \
	src/control/control.c \
	src/control/devices.c \
	src/control/events.c \
	src/control/forget.c \
	src/control/history.c \
	src/control/importer.c \
	src/control/inventory.c \
	src/control/labels.c \
	src/control/levels.c \
	src/control/list.c \
	src/control/list_query.c \
	src/control/nodes.c \
	src/control/observe.c \
	src/control/passes.c \
	src/control/rank.c \
	src/control/samples.c \
	src/control/web.c

# The dashboard's files, put into the program; Chart.js comes from where configure has found it.
web_files = \
	src/control/web/app.js \
	src/control/web/banner.js \
	src/control/web/bars.js \
	src/control/web/charts.js \
	src/control/web/device.js \
	src/control/web/gaps.js \
	src/control/web/groups.js \
	src/control/web/icon.svg \
	src/control/web/index.html \
	src/control/web/feed.js \
	src/control/web/incidents.js \
	src/control/web/icon-blind.svg \
	src/control/web/icon-offline.svg \
	src/control/web/nodes.js \
	src/control/web/notify.js \
	src/control/web/past.js \
	src/control/web/pages.js \
	src/control/web/places.js \
	src/control/web/route.js \
	src/control/web/style.css \
	src/control/web/table.js \
	src/control/web/tasks.js \
	src/control/web/text.js \
	src/control/web/token.js \
	src/control/web/wheel.js
nodist_libcontrol_a_SOURCES = src/control/webfiles.c

src/control/webfiles.c: src/control/web/embed.sh $(web_files) $(CHARTJS) Makefile
	$(AM_V_GEN)$(MKDIR_P) src/control && cd '$(srcdir)' && \
		sh src/control/web/embed.sh '$(abs_builddir)/$@' $(web_files) 'chart.js=$(CHARTJS)'
BUILT_SOURCES += src/control/webfiles.c
CLEANFILES += src/control/webfiles.c
