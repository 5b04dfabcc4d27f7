# SPDX-License-Identifier: MIT
# What is kept for years. Its parts are a library for the sake of their tests.
libhistory_a_SOURCES = \
	src/history/api.c \
	src/history/ask.c \
	src/history/bars.c \
	src/history/calendar.c \
	src/history/counts.c \
	src/history/importer.c \
	src/history/ledger.c \
	src/history/ledger_gaps.c \
	src/history/ledger_texts.c \
	src/history/outages.c \
	src/history/query_worker.c \
	src/history/read_back.c \
	src/history/report.c \
	src/history/schema.c \
	src/history/seen.c \
	src/history/settings.c \
	src/history/sheet.c \
	src/history/source.c \
	src/history/source_entry.c \
	src/history/spans.c \
	src/history/sql.c \
	src/history/sql_sqlite.c \
	src/history/uptime.c
history_mariadb = src/history/sql_mysql.c
if HAVE_MARIADB
libhistory_a_SOURCES += $(history_mariadb)
endif
HISTORY_LIBS = libhistory.a $(HTTP_LIBS) $(LINK_LIBS) $(RUN_LIBS) $(CONF_LIBS) $(CORE_LIBS) $(SQLITE_LIBS) $(MARIADB_LIBS)
if HAVE_SQLITE
noinst_LIBRARIES += libhistory.a
sbin_PROGRAMS += heartwheel-history
heartwheel_history_SOURCES = src/history/main.c
heartwheel_history_LDADD = $(HISTORY_LIBS)
endif
