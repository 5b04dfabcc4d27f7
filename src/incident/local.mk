# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libincident.a
INCIDENT_LIBS = libincident.a

# Incidents and their news. Pure, like the core.
libincident_a_SOURCES = \
	src/incident/base.c \
	src/incident/blind.c \
	src/incident/changes.c \
	src/incident/class.c \
	src/incident/device.c \
	src/incident/due.c \
	src/incident/engine.c \
	src/incident/incident.c \
	src/incident/inputs.c \
	src/incident/load.c \
	src/incident/match.c \
	src/incident/message.c \
	src/incident/names.c \
	src/incident/news.c \
	src/incident/sentence.c \
	src/incident/silence.c \
	src/incident/window.c
