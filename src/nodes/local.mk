# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libnodes.a

# A node of a cluster. Pure, like the core.
libnodes_a_SOURCES = \
	src/nodes/claims.c \
	src/nodes/exclusive.c \
	src/nodes/fence.c \
	src/nodes/fencing_tokens.c \
	src/nodes/judging.c \
	src/nodes/members.c \
	src/nodes/nodes.c \
	src/nodes/orders.c \
	src/nodes/owners.c \
	src/nodes/place.c \
	src/nodes/renewal.c
