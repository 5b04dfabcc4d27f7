/* SPDX-License-Identifier: MIT */
/*
 * What the fault suite puts between the daemon and its libraries (LD_PRELOAD): named points at which it dies by
 * SIGKILL, allocations that fail, and a wall clock that steps. The product knows nothing of it.
 *
 * HW_SHIM names a file that is mapped and shared with the test, which can so arm it at any moment; struct control is
 * its layout, and shim.py writes it. Without the variable the shim does nothing.
 *
 * WITHOUT_ALLOCATIONS leaves malloc() and its kin to a sanitizer, which has its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum point {
	POINT_NONE,
	POINT_SCRIPT_BEFORE,  /* a transition is about to be handed to hiredis */
	POINT_SCRIPT_SENT,    /* it is written to the socket, Redis will run it */
	POINT_SCRIPT_REPLY,   /* the reply is here, and not looked at */
	POINT_SCRIPT_DONE,    /* it was looked at */
	POINT_PUBLISH_BEFORE, /* a status is about to be handed to libmosquitto */
	POINT_PUBLISH_AFTER,  /* it was handed over */
	POINT_PUBACK_BEFORE,  /* its PUBACK is here, and not looked at */
	POINT_PUBACK_AFTER,   /* it was looked at */
	POINT_OUTBOX_BEFORE,  /* the removal of outbox entries is about to be handed to hiredis */
	POINT_OUTBOX_SENT,
	POINT_OUTBOX_REPLY
};

enum alloc_mode { ALLOC_OFF, ALLOC_ONCE, ALLOC_EVERY };

struct control {
	_Atomic int64_t wall_offset_ns;
	_Atomic int64_t point, countdown; /* die the countdown-th time this point is passed */
	_Atomic int64_t alloc_mode, alloc_n;
	_Atomic int64_t alloc_calls, alloc_failed;
	_Atomic int64_t loaded;         /* set by the shim: the test can see that it is there */
	_Atomic int64_t boot_offset_ns; /* how long the machine has slept, says CLOCK_BOOTTIME */
};

static struct control *control;

/* --- allocations that fail -------------------------------------------------------------------------------------- */

#ifdef WITHOUT_ALLOCATIONS
static void *own_malloc(size_t size)
{
	return malloc(size);
}

static void find_ranges(void)
{
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

/* The program's own text, and those of libraries whose callers count as the program. */
#define RANGES 8
static struct {
	uintptr_t from, to;
} range[RANGES];
static int n_ranges;

static int note_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool own = info->dlpi_name[0] == '\0' || strstr(info->dlpi_name, "libcjson");
	(void)size;
	(void)arg;
	for (int k = 0; own && k < info->dlpi_phnum && n_ranges < RANGES; k++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[k];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		range[n_ranges].from = info->dlpi_addr + p->p_vaddr;
		range[n_ranges++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

static bool refuse(const void *caller)
{
	struct control *c = control;
	if (!c || c->alloc_mode == ALLOC_OFF)
		return false;
	bool own = false;
	for (int k = 0; k < n_ranges; k++)
		own |= (uintptr_t)caller >= range[k].from && (uintptr_t)caller < range[k].to;
	if (!own)
		return false;
	int64_t number = atomic_fetch_add(&c->alloc_calls, 1) + 1, n = c->alloc_n;
	bool fails = c->alloc_mode == ALLOC_ONCE ? number == n : number % n == 0;
	if (fails)
		atomic_fetch_add(&c->alloc_failed, 1);
	return fails;
}

EXPORT void *malloc(size_t size)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

EXPORT char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = refuse(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
	return copy ? memcpy(copy, text, size) : NULL;
}

/* Never refused. */
static void *own_malloc(size_t size)
{
	return __libc_malloc(size);
}

static void find_ranges(void)
{
	dl_iterate_phdr(note_range, NULL);
}
#endif

/* --- named points ------------------------------------------------------------------------------------------------ */

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void pass(enum point p)
{
	struct control *c = control;
	if (!c || c->point != p || atomic_fetch_sub(&c->countdown, 1) != 1)
		return;
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* A flag of a command that is on its way. */
enum { EDGE = 1, ACK = 2 };

typedef void redis_fn(void *ac, void *reply, void *arg);

struct waiting {
	redis_fn *fn;
	void *arg;
	int kinds;
};

static _Atomic int buffered; /* kinds that are not written yet */

static void on_reply(void *ac, void *reply, void *arg)
{
	struct waiting w = *(struct waiting *)arg;
	free(arg);
	if (reply && w.kinds & EDGE)
		pass(POINT_SCRIPT_REPLY);
	if (reply && w.kinds & ACK)
		pass(POINT_OUTBOX_REPLY);
	if (w.fn)
		w.fn(ac, reply, w.arg);
	if (reply && w.kinds & EDGE)
		pass(POINT_SCRIPT_DONE);
}

EXPORT int redisAsyncFormattedCommand(void *ac, redis_fn *fn, void *arg, const char *command, size_t len)
{
	int (*real)(void *, redis_fn *, void *, const char *, size_t) = next("redisAsyncFormattedCommand");
	int kinds = memmem(command, len, "\r\n$1\r\nE\r\n", 9) ? EDGE : 0;
	kinds |= memmem(command, len, "\r\n$1\r\nA\r\n", 9) ? ACK : 0;
	struct waiting *w = kinds ? own_malloc(sizeof(*w)) : NULL;
	if (!w)
		return real(ac, fn, arg, command, len);
	*w = (struct waiting){fn, arg, kinds};
	if (kinds & EDGE)
		pass(POINT_SCRIPT_BEFORE);
	if (kinds & ACK)
		pass(POINT_OUTBOX_BEFORE);
	buffered |= kinds;
	int rc = real(ac, on_reply, w, command, len);
	if (rc)
		free(w);
	return rc;
}

EXPORT void redisAsyncHandleWrite(void *ac)
{
	void (*real)(void *) = next("redisAsyncHandleWrite");
	int kinds = buffered;
	buffered = 0;
	real(ac);
	if (kinds & EDGE)
		pass(POINT_SCRIPT_SENT);
	if (kinds & ACK)
		pass(POINT_OUTBOX_SENT);
}

typedef void puback_fn(void *m, void *arg, int mid, int reason, const void *properties);

static puback_fn *_Atomic on_puback;
static _Atomic bool is_status[65536]; /* by message id */

static void puback(void *m, void *arg, int mid, int reason, const void *properties)
{
	bool status = mid > 0 && mid < 65536 && is_status[mid];
	if (status)
		pass(POINT_PUBACK_BEFORE);
	on_puback(m, arg, mid, reason, properties);
	if (status)
		pass(POINT_PUBACK_AFTER);
}

EXPORT void mosquitto_publish_v5_callback_set(void *m, puback_fn *fn)
{
	void (*real)(void *, puback_fn *) = next("mosquitto_publish_v5_callback_set");
	on_puback = fn;
	real(m, fn ? puback : NULL);
}

static void note_status(int mid, bool status)
{
	if (mid > 0 && mid < 65536)
		is_status[mid] = status;
}

EXPORT int mosquitto_publish(void *m, int *mid, const char *topic, int len, const void *payload, int qos, bool retain)
{
	int (*real)(void *, int *, const char *, int, const void *, int, bool) = next("mosquitto_publish");
	int own = 0;
	int rc = real(m, mid ? mid : &own, topic, len, payload, qos, retain);
	note_status(mid ? *mid : own, false);
	return rc;
}

/* Statuses go this way. */
EXPORT int mosquitto_publish_v5(void *m, int *mid, const char *topic, int len, const void *payload, int qos,
                                bool retain, const void *properties)
{
	int (*real)(void *, int *, const char *, int, const void *, int, bool, const void *) =
		next("mosquitto_publish_v5");
	bool status = retain && strncmp(topic, "heartwheel/", 11) != 0;
	int own = 0;
	if (status)
		pass(POINT_PUBLISH_BEFORE);
	int rc = real(m, mid ? mid : &own, topic, len, payload, qos, retain, properties);
	note_status(mid ? *mid : own, status);
	if (status)
		pass(POINT_PUBLISH_AFTER);
	return rc;
}

/* --- the wall clock ---------------------------------------------------------------------------------------------- */

static int64_t offset_ns(clockid_t id)
{
	if (!control)
		return 0;
	return id == CLOCK_BOOTTIME ? control->boot_offset_ns : control->wall_offset_ns;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*_Atomic real)(clockid_t, struct timespec *);
	if (!real)
		real = next("clock_gettime");
	int rc = real(id, t);
	if (rc || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_BOOTTIME))
		return rc;
	int64_t ns = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec + offset_ns(id);
	*t = (struct timespec){ns / 1000000000, ns % 1000000000};
	return 0;
}

EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*tv = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}

EXPORT time_t time(time_t *out)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

__attribute__((constructor)) static void load(void)
{
	const char *path = getenv("HW_SHIM");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	find_ranges();
	void *at = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	control = at;
	control->loaded = 1;
}
