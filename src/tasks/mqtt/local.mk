# SPDX-License-Identifier: MIT
libtasks_a_SOURCES += \
	src/tasks/mqtt/message_in.c \
	src/tasks/mqtt/message_out.c
heartwheel_tasks_SOURCES += \
	src/tasks/mqtt/broker.c \
	src/tasks/mqtt/inbox.c
