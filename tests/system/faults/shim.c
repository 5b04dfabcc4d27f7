/* SPDX-License-Identifier: MIT */
/*
 * The shim of the fault suite, between the daemon and its libraries (LD_PRELOAD): named points at which the daemon is
 * killed by SIGKILL, allocations that fail, and a wall clock that steps. The daemon does not know the shim.
 *
 * HW_SHIM names a file that is mapped and shared with the test, which can arm the shim at any moment. struct control is
 * its layout, and shim.py writes it. Without the variable the shim does nothing.
 *
 * WITHOUT_ALLOCATIONS leaves malloc() and related functions to a sanitizer, which has its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
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
	POINT_P_BEFORE,       /* P is about to be handed to hiredis */
	POINT_P_SENT,
	POINT_P_REPLY,
	/* heartwheel-tasks: of each of three scripts the same four */
	POINT_SUBMIT_BEFORE,
	POINT_SUBMIT_SENT,
	POINT_SUBMIT_REPLY,
	POINT_SUBMIT_DONE,
	POINT_CLAIM_BEFORE,
	POINT_CLAIM_SENT,
	POINT_CLAIM_REPLY, /* the tasks are claimed, and not sent */
	POINT_CLAIM_DONE,
	POINT_ANSWER_BEFORE, /* a device's answer is acknowledged at the broker, and about to be handed to hiredis */
	POINT_ANSWER_SENT,
	POINT_ANSWER_REPLY,
	POINT_ANSWER_DONE,
	POINT_TASK_BEFORE, /* a task's message is about to be handed to libmosquitto */
	POINT_TASK_AFTER,
	POINT_TASK_PUBACK_BEFORE,
	POINT_TASK_PUBACK_AFTER,
	POINT_NOTICE_BEFORE, /* so is what is told to a submitter */
	POINT_NOTICE_AFTER,
	POINT_NOTICE_PUBACK_BEFORE,
	POINT_NOTICE_PUBACK_AFTER,
	POINT_GROUP_REPLY, /* ends that must be reported are read, for this consumer, and not handled */
	POINT_TOLD_BEFORE, /* the note that they were reported is about to be handed to hiredis */
	POINT_TOLD_SENT,
	POINT_TOLD_REPLY
};

enum alloc_mode { ALLOC_OFF, ALLOC_ONCE, ALLOC_EVERY };

struct control {
	_Atomic int64_t wall_offset_ns;
	_Atomic int64_t point, countdown; /* die the countdown-th time this point is passed */
	_Atomic int64_t alloc_mode, alloc_n;
	_Atomic int64_t alloc_calls, alloc_failed;
	_Atomic int64_t loaded;         /* set by the shim: the test can see that the shim is loaded */
	_Atomic int64_t boot_offset_ns; /* how long the machine was suspended, by CLOCK_BOOTTIME */
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
	if (!c || p == POINT_NONE || c->point != p || atomic_fetch_sub(&c->countdown, 1) != 1)
		return;
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* Kinds of commands, flags of what is on its way, and the points of each. */
enum { EDGE = 1, P = 2, SUBMIT = 4, CLAIM = 8, ANSWER = 16, TOLD = 32, GROUP = 64, KINDS = 7 };
enum when { BEFORE, SENT, REPLY, DONE, WHENS };

static const enum point points[KINDS][WHENS] = {
	{POINT_SCRIPT_BEFORE, POINT_SCRIPT_SENT, POINT_SCRIPT_REPLY, POINT_SCRIPT_DONE},
	{POINT_P_BEFORE, POINT_P_SENT, POINT_P_REPLY, POINT_NONE},
	{POINT_SUBMIT_BEFORE, POINT_SUBMIT_SENT, POINT_SUBMIT_REPLY, POINT_SUBMIT_DONE},
	{POINT_CLAIM_BEFORE, POINT_CLAIM_SENT, POINT_CLAIM_REPLY, POINT_CLAIM_DONE},
	{POINT_ANSWER_BEFORE, POINT_ANSWER_SENT, POINT_ANSWER_REPLY, POINT_ANSWER_DONE},
	{POINT_TOLD_BEFORE, POINT_TOLD_SENT, POINT_TOLD_REPLY, POINT_NONE},
	{POINT_NONE, POINT_NONE, POINT_GROUP_REPLY, POINT_NONE},
};

static void pass_all(int kinds, enum when when)
{
	for (int k = 0; k < KINDS; k++)
		if (kinds & 1 << k)
			pass(points[k][when]);
}

typedef void redis_fn(void *ac, void *reply, void *arg);

struct waiting {
	redis_fn *fn;
	void *arg;
	int kinds;
	int script; /* SCRIPT LOAD: the kind of the script; 0: none of ours */
};

static _Atomic int buffered; /* kinds that are not written yet */
static void *_Atomic buffered_on;
static char shas[KINDS][41]; /* of scripts that were loaded, by their kinds' bits */

/* The answer to SCRIPT LOAD. */
static void note_script(int kind, const redisReply *reply)
{
	for (int k = 0; k < KINDS && reply->type == REDIS_REPLY_STRING && reply->len == 40; k++)
		if (kind == 1 << k)
			memcpy(shas[k], reply->str, 41);
}

static void on_reply(void *ac, void *reply, void *arg)
{
	struct waiting w = *(struct waiting *)arg;
	free(arg);
	if (reply && w.script)
		note_script(w.script, reply);
	if (reply)
		pass_all(w.kinds, REPLY);
	if (w.fn)
		w.fn(ac, reply, w.arg);
	if (reply)
		pass_all(w.kinds, DONE);
}

/* The answer that must be observed; NULL: none. */
static struct waiting *begin(void *ac, redis_fn *fn, void *arg, int kinds, int script)
{
	struct waiting *w = kinds || script ? own_malloc(sizeof(*w)) : NULL;
	if (!w)
		return NULL;
	*w = (struct waiting){fn, arg, kinds, script};
	pass_all(kinds, BEFORE);
	if (kinds) {
		buffered_on = ac;
		buffered |= kinds;
	}
	return w;
}

EXPORT int redisAsyncFormattedCommand(void *ac, redis_fn *fn, void *arg, const char *command, size_t len)
{
	int (*real)(void *, redis_fn *, void *, const char *, size_t) = next("redisAsyncFormattedCommand");
	int kinds = memmem(command, len, "\r\n$1\r\nE\r\n", 9) ? EDGE : 0;
	for (int k = 0; k < KINDS; k++)
		kinds |= shas[k][0] && memmem(command, len < 100 ? len : 100, shas[k], 40) ? 1 << k : 0;
	struct waiting *w = begin(ac, fn, arg, kinds, 0);
	int rc = w ? real(ac, on_reply, w, command, len) : real(ac, fn, arg, command, len);
	if (rc)
		free(w);
	return rc;
}

/* By a function that only it has. */
static int kind_of_script(const char *text, size_t len)
{
	if (memmem(text, len, "refused_with", 12))
		return SUBMIT;
	if (memmem(text, len, "is_in_window", 12))
		return CLAIM;
	return memmem(text, len, "of_broker", 9) ? ANSWER : 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

EXPORT int redisAsyncCommandArgv(void *ac, redis_fn *fn, void *arg, int argc, const char **argv, const size_t *len)
{
	int (*real)(void *, redis_fn *, void *, int, const char **, const size_t *) = next("redisAsyncCommandArgv");
	int kinds = 0, script = 0;
	if (argc == 3 && len[0] == 6 && memcmp(argv[0], "SCRIPT", 6) == 0)
		script = kind_of_script(argv[2], len[2]);
	else if (len[0] == 4 && memcmp(argv[0], "XACK", 4) == 0)
		kinds = TOLD;
	else if (argc == 4 && len[0] == 4 && memcmp(argv[0], "HSET", 4) == 0 && ends_with(argv[1], "published"))
		kinds = P;
	else if (len[0] == 10 && memcmp(argv[0], "XREADGROUP", 10) == 0)
		kinds = GROUP;
	struct waiting *w = begin(ac, fn, arg, kinds, script);
	int rc = w ? real(ac, on_reply, w, argc, argv, len) : real(ac, fn, arg, argc, argv, len);
	if (rc)
		free(w);
	return rc;
}

EXPORT void redisAsyncHandleWrite(void *ac)
{
	void (*real)(void *) = next("redisAsyncHandleWrite");
	int kinds = buffered_on == ac ? buffered : 0;
	if (kinds)
		buffered = 0;
	real(ac);
	pass_all(kinds, SENT);
}

/* Messages whose acknowledgement is watched. */
enum message { OTHER, STATUS, TASK, NOTICE };

static const struct {
	enum point before, after, puback_before, puback_after;
} passed[] = {
	[STATUS] = {POINT_PUBLISH_BEFORE, POINT_PUBLISH_AFTER, POINT_PUBACK_BEFORE, POINT_PUBACK_AFTER},
	[TASK] = {POINT_TASK_BEFORE, POINT_TASK_AFTER, POINT_TASK_PUBACK_BEFORE, POINT_TASK_PUBACK_AFTER},
	[NOTICE] = {POINT_NOTICE_BEFORE, POINT_NOTICE_AFTER, POINT_NOTICE_PUBACK_BEFORE, POINT_NOTICE_PUBACK_AFTER},
};

static enum message message_of(const char *topic, bool retain)
{
	if (strncmp(topic, "heartwheel/", 11) == 0)
		return OTHER;
	if (retain)
		return STATUS;
	if (ends_with(topic, "/pending"))
		return TASK;
	return ends_with(topic, "/ack") || ends_with(topic, "/complete") || ends_with(topic, "/failed") ? NOTICE
	                                                                                                : OTHER;
}

typedef void puback_fn(void *m, void *arg, int mid, int reason, const void *properties);

static puback_fn *_Atomic on_puback;
static _Atomic uint8_t sort[65536]; /* enum message, by message id */

static void puback(void *m, void *arg, int mid, int reason, const void *properties)
{
	enum message what = mid > 0 && mid < 65536 ? sort[mid] : OTHER;
	pass(passed[what].puback_before);
	on_puback(m, arg, mid, reason, properties);
	pass(passed[what].puback_after);
}

EXPORT void mosquitto_publish_v5_callback_set(void *m, puback_fn *fn)
{
	void (*real)(void *, puback_fn *) = next("mosquitto_publish_v5_callback_set");
	on_puback = fn;
	real(m, fn ? puback : NULL);
}

static void note(int mid, enum message what)
{
	if (mid > 0 && mid < 65536)
		sort[mid] = (uint8_t)what;
}

EXPORT int mosquitto_publish(void *m, int *mid, const char *topic, int len, const void *payload, int qos, bool retain)
{
	int (*real)(void *, int *, const char *, int, const void *, int, bool) = next("mosquitto_publish");
	int own = 0;
	int rc = real(m, mid ? mid : &own, topic, len, payload, qos, retain);
	note(mid ? *mid : own, OTHER);
	return rc;
}

/* What is watched goes this way. */
EXPORT int mosquitto_publish_v5(void *m, int *mid, const char *topic, int len, const void *payload, int qos,
                                bool retain, const void *properties)
{
	int (*real)(void *, int *, const char *, int, const void *, int, bool, const void *) =
		next("mosquitto_publish_v5");
	enum message what = message_of(topic, retain);
	int own = 0;
	pass(passed[what].before);
	int rc = real(m, mid ? mid : &own, topic, len, payload, qos, retain, properties);
	note(mid ? *mid : own, what);
	pass(passed[what].after);
	return rc;
}

/* --- past libmosquitto: packets as they stand in what is sent and received ---------------------------------------- */

#define PACKETS 1024

/* The size of the whole packet at `p`, *head bytes of it before what has a length; 0: it is not whole. */
static size_t packet_size(const uint8_t *p, size_t n, size_t *head)
{
	size_t length = 0;
	for (*head = 1; *head < n && *head < 5; (*head)++) {
		length |= (size_t)(p[*head] & 0x7f) << 7 * (*head - 1);
		if (!(p[*head] & 0x80)) {
			(*head)++;
			return *head + length <= n ? *head + length : 0;
		}
	}
	return 0;
}

/* What a PUBLISH with QoS 1 is. Noted by its id. */
static enum message take_publish(const uint8_t *p, size_t head, size_t size)
{
	char topic[512];
	size_t len = head + 2 <= size ? (size_t)p[head] << 8 | p[head + 1] : size;
	if ((p[0] & 0xf6) != 0x32 || len >= sizeof(topic) || head + 2 + len + 2 > size)
		return OTHER;
	memcpy(topic, p + head + 2, len);
	topic[len] = '\0';
	enum message what = message_of(topic, p[0] & 1);
	note(p[head + 2 + len] << 8 | p[head + 3 + len], what);
	return what;
}

EXPORT ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int) = next("send");
	const uint8_t *p = bytes;
	enum message sent[PACKETS];
	size_t k = 0, head, size;
	for (size_t at = 0; control && k < PACKETS && at < n && p[at] >> 4 == 3; at += size, k++) {
		size = packet_size(p + at, n - at, &head);
		if (size == 0)
			break;
		sent[k] = take_publish(p + at, head, size);
		pass(passed[sent[k]].before);
	}
	ssize_t rc = real(fd, bytes, n, flags);
	for (size_t i = 0; i < k; i++)
		pass(passed[sent[i]].after);
	return rc;
}

static _Thread_local enum message looked_at[PACKETS];
static _Thread_local size_t n_looked_at;

/* Acknowledgements are looked at where they lie, and then thrown away. */
EXPORT ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	ssize_t (*real)(int, void *, size_t, int) = next("recv");
	if (flags & MSG_TRUNC)
		for (; n_looked_at > 0; n_looked_at--)
			pass(passed[looked_at[n_looked_at - 1]].puback_after);
	ssize_t got = real(fd, bytes, n, flags);
	if (!control || !(flags & MSG_PEEK))
		return got;
	const uint8_t *p = bytes;
	size_t head, size;
	n_looked_at = 0;
	for (ssize_t at = 0; at + 4 <= got && p[at] == 0x40 && n_looked_at < PACKETS; at += (ssize_t)size) {
		size = packet_size(p + at, (size_t)(got - at), &head);
		if (size < 4)
			break;
		looked_at[n_looked_at] = (enum message)sort[p[at + 2] << 8 | p[at + 3]];
		pass(passed[looked_at[n_looked_at++]].puback_before);
	}
	return got;
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
