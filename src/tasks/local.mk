# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libtasks.a
TASKS_LIBS = libtasks.a $(LINK_LIBS) $(CORE_LIBS) $(CRYPTO_LIBS)

# libtasks.a is what tests link: it knows nothing of the daemon. Each folder adds its files to it and to the daemon.
libtasks_a_SOURCES = \
	src/tasks/allow.c \
	src/tasks/task.c \
	src/tasks/task_id.c
sbin_PROGRAMS += heartwheel-tasks
heartwheel_tasks_SOURCES = \
	src/tasks/app.c \
	src/tasks/counts.c \
	src/tasks/main.c \
	src/tasks/settings.c
heartwheel_tasks_LDADD = $(TASKS_LIBS) $(MQTT_LIBS) $(HTTP_LIBS) $(RUN_LIBS) $(CONF_LIBS) $(CORE_LIBS)

include src/tasks/api/local.mk
include src/tasks/follow/local.mk
include src/tasks/mqtt/local.mk
include src/tasks/queue/local.mk
include src/tasks/schedule/local.mk
include src/tasks/watch/local.mk
