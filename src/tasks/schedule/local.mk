# SPDX-License-Identifier: MIT
libtasks_a_SOURCES += \
	src/tasks/schedule/redis_clock.c \
	src/tasks/schedule/schedule.c \
	src/tasks/schedule/task_table.c
