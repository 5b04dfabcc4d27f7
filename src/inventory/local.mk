# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libinventory.a
INVENTORY_LIBS = libinventory.a $(CONF_LIBS) $(CORE_LIBS)

# The inventory: its entries, and files of them. Pure, like the core.
libinventory_a_SOURCES = \
	src/inventory/csv.c \
	src/inventory/entry.c \
	src/inventory/import.c \
	src/inventory/labels.c \
	src/inventory/patch.c \
	src/inventory/rows.c \
	src/inventory/value.c
