# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libsend.a
SEND_LIBS = libsend.a $(INCIDENT_LIBS) $(CONF_LIBS) $(HTTP_LIBS)
libsend_a_SOURCES = \
	src/alert/send/alertmanager.c \
	src/alert/send/alerts.c \
	src/alert/send/exec.c \
	src/alert/send/form.c \
	src/alert/send/job.c \
	src/alert/send/message.c \
	src/alert/send/note.c \
	src/alert/send/notify.c \
	src/alert/send/pagerduty.c \
	src/alert/send/past.c \
	src/alert/send/posts.c \
	src/alert/send/secret.c \
	src/alert/send/senders.c \
	src/alert/send/settings.c \
	src/alert/send/template.c \
	src/alert/send/transfer.c \
	src/alert/send/words.c
