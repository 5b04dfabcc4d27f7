# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libheartwheel.a
CORE_LIBS = libheartwheel.a $(CJSON_LIBS) -lm

# The pure core: no socket, no clock, no log, no thread.
libheartwheel_a_SOURCES = \
	src/core/arm.c \
	src/core/batch.c \
	src/core/beat.c \
	src/core/blind.c \
	src/core/bounds.c \
	src/core/canary.c \
	src/core/door.c \
	src/core/due.c \
	src/core/entry.c \
	src/core/evidence.c \
	src/core/expected.c \
	src/core/field.c \
	src/core/filter_index.c \
	src/core/follow.c \
	src/core/form.c \
	src/core/gate.c \
	src/core/goodbye.c \
	src/core/group.c \
	src/core/group_compile.c \
	src/core/hearing.c \
	src/core/hearing_table.c \
	src/core/idstore.c \
	src/core/inflow.c \
	src/core/intake.c \
	src/core/json_writer.c \
	src/core/key.c \
	src/core/key_intake.c \
	src/core/left_out.c \
	src/core/label.c \
	src/core/learn.c \
	src/core/learning.c \
	src/core/load.c \
	src/core/match.c \
	src/core/monitor.c \
	src/core/object.c \
	src/core/out.c \
	src/core/pace.c \
	src/core/pages.c \
	src/core/parent_death.c \
	src/core/parent_intake.c \
	src/core/parent_peers.c \
	src/core/parent_wait.c \
	src/core/parents.c \
	src/core/partition.c \
	src/core/pattern.c \
	src/core/payload.c \
	src/core/probe.c \
	src/core/probe_time.c \
	src/core/registry.c \
	src/core/report.c \
	src/core/retained_intake.c \
	src/core/sight.c \
	src/core/takers.c \
	src/core/timeout.c \
	src/core/topic.c \
	src/core/transition.c \
	src/core/unseen.c \
	src/core/upstream.c \
	src/core/verdict.c \
	src/core/wheel.c
