# SPDX-License-Identifier: MIT
heartwheel_tasks_SOURCES += \
	src/tasks/watch/submitters.c \
	src/tasks/watch/watch.c
