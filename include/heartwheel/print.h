/* SPDX-License-Identifier: MIT */
/*
 * Formatted text in a buffer of fixed size. snprintf() returns the length of the uncut text. Code that uses this value
 * as a length reads or writes past the buffer. hw_print() returns the length of the text in the buffer. So the result
 * needs no check when it is used as a length, or added to a position.
 */
#ifndef HEARTWHEEL_PRINT_H
#define HEARTWHEEL_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Formats into `cap` bytes, with a NUL, and cuts what does not fit. Returns the length of the text in `buf`: always
 * less than `cap`; 0 if `cap` is 0, which writes nothing. */
__attribute__((format(printf, 3, 0))) static inline size_t hw_vprint(char *buf, size_t cap, const char *format,
                                                                     va_list args)
{
	int n = vsnprintf(buf, cap, format, args);
	if (n < 0 || cap == 0)
		return 0;
	return (size_t)n < cap ? (size_t)n : cap - 1;
}

__attribute__((format(printf, 3, 4))) static inline size_t hw_print(char *buf, size_t cap, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t n = hw_vprint(buf, cap, format, args);
	va_end(args);
	return n;
}

#endif
