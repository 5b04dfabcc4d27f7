# SPDX-License-Identifier: MIT
heartwheel_tasks_SOURCES += \
	src/tasks/api/api.c \
	src/tasks/api/api_post.c \
	src/tasks/api/api_read.c \
	src/tasks/api/call.c \
	src/tasks/api/feed.c
