# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libnotify.a
NOTIFY_LIBS = libnotify.a $(HTTP_LIBS)
libnotify_a_SOURCES = \
	src/notify/devices.c \
	src/notify/digest.c \
	src/notify/exec.c \
	src/notify/gather.c \
	src/notify/note.c \
	src/notify/notify.c \
	src/notify/settings.c \
	src/notify/show.c \
	src/notify/notification.c \
	src/notify/template.c \
	src/notify/webhook.c \
	src/notify/words.c
