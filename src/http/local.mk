# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libhttp.a
HTTP_LIBS = libhttp.a libconf.a $(EVENT_SSL_LIBS) $(EVENT_EXTRA_LIBS) $(EVENT_LIBS) $(SSL_LIBS) $(CRYPTO_LIBS) $(CURL_LIBS)
libhttp_a_SOURCES = \
	src/http/access.c \
	src/http/accounts.c \
	src/http/ask.c \
	src/http/attempts.c \
	src/http/buffer.c \
	src/http/capacity.c \
	src/http/fetch.c \
	src/http/ip.c \
	src/http/json.c \
	src/http/metrics.c \
	src/http/multi.c \
	src/http/origin.c \
	src/http/pending.c \
	src/http/proxies.c \
	src/http/proxy.c \
	src/http/query.c \
	src/http/refusal.c \
	src/http/reply.c \
	src/http/router.c \
	src/http/server.c \
	src/http/socket.c \
	src/http/stream.c \
	src/http/tls.c \
	src/http/usage.c
