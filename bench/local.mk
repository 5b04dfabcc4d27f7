# SPDX-License-Identifier: MIT
# Built by `make bench` alone; bench/run then runs it. Against libev and libuv, too, so their headers have to be there.
bench_programs = \
	bench/blast \
	bench/core \
	bench/counter \
	bench/detect \
	bench/discover \
	bench/flood \
	bench/growth \
	bench/incidents \
	bench/instructions \
	bench/learn \
	bench/lines \
	bench/oldway \
	bench/pace \
	bench/parents \
	bench/publisher \
	bench/script \
	bench/timers_libev \
	bench/timers_libevent \
	bench/timers_libuv
.PHONY: bench
bench_blast_SOURCES = bench/blast.c bench/frames.c
bench_blast_LDADD =
bench_counter_LDADD = $(MOSQUITTO_LIBS) -lpthread
bench_flood_SOURCES = bench/flood.c bench/frames.c
bench_flood_LDADD =
bench_publisher_LDADD = $(MOSQUITTO_LIBS)
bench_script_LDADD = $(REDIS_LIBS)
bench_detect_SOURCES = bench/detect.c bench/common.c
bench_detect_LDADD = $(MOSQUITTO_LIBS) $(HIREDIS_LIBS) -lpthread
bench_discover_SOURCES = bench/discover.c bench/common.c
bench_discover_LDADD = $(DISCOVER_LIBS) $(CONF_LIBS) $(CORE_LIBS)
bench_oldway_LDADD = $(MOSQUITTO_LIBS) $(HIREDIS_LIBS) -lpthread
bench_pace_LDADD =
bench_fleet = bench/common.c bench/fleet.c
bench_parents_SOURCES = bench/parents.c bench/common.c
bench_parents_LDADD = $(CORE_LIBS)
bench_core_SOURCES = bench/core.c $(bench_fleet)
bench_core_LDADD = $(CORE_LIBS)
bench_growth_SOURCES = bench/growth.c $(bench_fleet)
bench_growth_LDADD = $(CORE_LIBS)
bench_incidents_SOURCES = bench/incidents.c bench/common.c
bench_incidents_LDADD = $(INCIDENT_LIBS) -lm
bench_instructions_SOURCES = bench/instructions.c $(bench_fleet)
bench_instructions_LDADD = $(CORE_LIBS)
bench_learn_SOURCES = bench/learn.c bench/common.c
bench_learn_LDADD = $(CORE_LIBS)
bench_lines_SOURCES = bench/lines.c bench/common.c
bench_lines_LDADD =
bench_timers_libev_SOURCES = bench/timers_libev.c bench/common.c
bench_timers_libev_LDADD = $(EV_LIBS)
bench_timers_libevent_SOURCES = bench/timers_libevent.c bench/common.c
bench_timers_libevent_LDADD = $(EVENT_LIBS)
bench_timers_libuv_SOURCES = bench/timers_libuv.c bench/common.c
bench_timers_libuv_CFLAGS = $(AM_CFLAGS) $(UV_CFLAGS)
bench_timers_libuv_LDADD = $(UV_LIBS)
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)
if HAVE_BENCH_LIBS
bench: all $(bench_programs) tests/system/fleet$(EXEEXT)
else
bench:
	@echo 'make bench compares with libev, libuv and uthash: install libev-dev, libuv1-dev and uthash-dev, then configure again' >&2; exit 1
endif
