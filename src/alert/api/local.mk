# SPDX-License-Identifier: MIT
heartwheel_alert_SOURCES += \
	src/alert/api/api.c \
	src/alert/api/changes.c \
	src/alert/api/feed.c \
	src/alert/api/incidents.c
