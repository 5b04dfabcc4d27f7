# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libmqtt.a
MQTT_LIBS = libmqtt.a $(MOSQUITTO_LIBS) -lpthread
libmqtt_a_SOURCES = \
	src/mqtt/acks.c \
	src/mqtt/ahead.c \
	src/mqtt/backoff.c \
	src/mqtt/barrier.c \
	src/mqtt/copies.c \
	src/mqtt/echoes.c \
	src/mqtt/evict.c \
	src/mqtt/filters.c \
	src/mqtt/guard.c \
	src/mqtt/handover.c \
	src/mqtt/limits.c \
	src/mqtt/link.c \
	src/mqtt/low_water.c \
	src/mqtt/outlet.c \
	src/mqtt/packet.c \
	src/mqtt/port_protocol.c \
	src/mqtt/properties.c \
	src/mqtt/publisher.c \
	src/mqtt/reader.c \
	src/mqtt/receive.c \
	src/mqtt/records.c \
	src/mqtt/refused_topics.c \
	src/mqtt/ring.c \
	src/mqtt/sender.c \
	src/mqtt/statuses.c \
	src/mqtt/thread.c \
	src/mqtt/why.c
