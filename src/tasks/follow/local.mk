# SPDX-License-Identifier: MIT
heartwheel_tasks_SOURCES += \
	src/tasks/follow/device_reader.c \
	src/tasks/follow/filter.c \
	src/tasks/follow/followers.c \
	src/tasks/follow/past.c \
	src/tasks/follow/session_send.c \
	src/tasks/follow/sessions.c \
	src/tasks/follow/transition.c \
	src/tasks/follow/wills.c
