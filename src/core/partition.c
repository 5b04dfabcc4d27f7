/* SPDX-License-Identifier: MIT */
/* See partition.h. */
#include "heartwheel/partition.h"

/* CRC16/XMODEM of four bits, the polynomial being x^16 + x^12 + x^5 + 1. */
static const uint16_t crc_of[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

unsigned hw_partition_of(const char *id, size_t len)
{
	unsigned crc = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned byte = (unsigned char)id[i];
		crc = (crc << 4 & 0xffff) ^ crc_of[crc >> 12 ^ byte >> 4];
		crc = (crc << 4 & 0xffff) ^ crc_of[crc >> 12 ^ (byte & 15)];
	}
	return crc % 16384 / 64;
}
