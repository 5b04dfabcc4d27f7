# SPDX-License-Identifier: MIT
# The pure files are in the core's library, because an event has the id of its entry. entries.c parses
# Redis' answers, so it is in the link's library.
libheartwheel_a_SOURCES += \
	src/stream/gap.c \
	src/stream/id.c
liblink_a_SOURCES += \
	src/stream/commands.c \
	src/stream/entries.c \
	src/stream/group.c \
	src/stream/reader.c
