/* SPDX-License-Identifier: MIT */
/*
 * Slows the disk of a program into which this library is preloaded. When HW_STALL_EVERY_MS have passed since the last
 * slow call, the next call of fsync() or fdatasync() takes HW_STALL_MS longer.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t setting(const char *name)
{
	const char *text = getenv(name);
	return text ? atoll(text) : 0;
}

static void stall(void)
{
	static atomic_int_least64_t next_ms;
	int64_t ms = setting("HW_STALL_MS"), now = now_ms(), due = atomic_load(&next_ms);
	if (ms <= 0 || now < due || !atomic_compare_exchange_strong(&next_ms, &due, now + setting("HW_STALL_EVERY_MS")))
		return;
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

int fsync(int fd)
{
	stall();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	stall();
	return (int)syscall(SYS_fdatasync, fd);
}
