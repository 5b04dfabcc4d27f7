# SPDX-License-Identifier: MIT
libalert_a_SOURCES += \
	src/alert/follow/fields.c
heartwheel_alert_SOURCES += \
	src/alert/follow/follow.c \
	src/alert/follow/watch.c
