/* SPDX-License-Identifier: MIT */
#include "mqtt/low_water.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#define PUBACK_BYTES 4  /* at least; a PUBACK may be longer */
#define VAIN_MOST    2  /* after this many waits in a row in which no byte arrived, the first byte wakes the thread */
#define WEIGHT       16 /* a wait that ends with too few bytes adds this to `failed`; a successful wait subtracts 1 */
/* when `failed` reaches this, the thread no longer waits for several acknowledgements on this connection */
#define FAILED_MOST 48

void hw_low_water_begin(struct hw_low_water *w)
{
	w->bytes = 1;
	w->gathers = false;
	w->failed = 0;
}

void hw_low_water_answered(struct hw_low_water *w)
{
	w->vain = 0;
}

void hw_low_water_set(struct hw_low_water *w, int fd, unsigned acks, size_t least)
{
	w->gathers = acks > 0 && w->failed < FAILED_MOST && w->vain < VAIN_MOST;
	int bytes = w->gathers ? (int)acks * PUBACK_BYTES : 1;
	if (bytes < (int)least)
		bytes = (int)least;
	if (bytes == w->bytes)
		return;
	w->bytes = bytes;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

void hw_low_water_judge(struct hw_low_water *w, int fd, bool came)
{
	int some = 0;
	if (!w->gathers || w->failed >= FAILED_MOST)
		return;
	if (came)
		w->failed -= w->failed > 0;
	else if (ioctl(fd, FIONREAD, &some) == 0 && some > 0)
		w->failed += WEIGHT;
	else
		w->vain++;
}
