/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput(); libFuzzer drives it in `make fuzz`,
 * replay.c in `make check`. A target keeps nothing of an input for the next one.
 */
#ifndef HW_FUZZ_H
#define HW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What has to be true of every input. Not assert(): it holds in every build. */
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
