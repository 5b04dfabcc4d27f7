/* SPDX-License-Identifier: MIT */
/*
 * Shared by the fuzz targets. A target is one file with LLVMFuzzerTestOneInput(). libFuzzer calls it in `make fuzz`,
 * and replay.c in `make check`. A target keeps no state between two inputs.
 */
#ifndef HW_FUZZ_H
#define HW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that every input must satisfy. Not assert(), because it must hold in every build. */
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
