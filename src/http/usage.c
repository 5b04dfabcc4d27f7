/* SPDX-License-Identifier: MIT */
/* The process's resource use. Cost: a scrape reads /proc/self/stat and lists /proc/self/fd. */
#include "http/usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "http/metrics.h"

struct usage {
	double cpu_s, start_s, virtual_bytes, resident_bytes;
};

static double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Parses /proc/self/stat. The second field is a name with any characters, so parsing begins after the last
 * parenthesis. See proc(5). */
static bool parse(const char *stat, struct usage *u)
{
	unsigned long long user, system, start, virtual;
	long long resident;
	const char *at = strrchr(stat, ')');
	double ticks = (double)sysconf(_SC_CLK_TCK);
	if (!at ||
	    sscanf(at + 1,
	           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %llu %lld",
	           &user, &system, &start, &virtual, &resident) != 5)
		return false;
	u->cpu_s = (double)(user + system) / ticks;
	u->start_s = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + (double)start / ticks;
	u->virtual_bytes = (double)virtual;
	u->resident_bytes = (double)resident * (double)sysconf(_SC_PAGESIZE);
	return true;
}

static bool read_usage(struct usage *u)
{
	char text[1024];
	FILE *f = fopen("/proc/self/stat", "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return parse(text, u);
}

/* Counts open descriptors, except that of opendir() itself; -1: unknown. */
static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int n = -1;
	if (!d)
		return -1;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

void hw_usage_metrics(struct evbuffer *b)
{
	struct usage u;
	struct rlimit limit;
	int fds = count_fds();
	if (read_usage(&u)) {
		hw_metric_whole(b, "process_cpu_seconds_total", "counter",
		                "CPU time of the process, in user and system.", u.cpu_s);
		hw_metric_whole(b, "process_start_time_seconds", "gauge", "When the process started, as Unix time.",
		                u.start_s);
		hw_metric_whole(b, "process_virtual_memory_bytes", "gauge", "Address space of the process.",
		                u.virtual_bytes);
		hw_metric_whole(b, "process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM.",
		                u.resident_bytes);
	}
	if (fds >= 0)
		hw_metric_whole(b, "process_open_fds", "gauge", "Open file descriptors.", fds);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		hw_metric_whole(b, "process_max_fds", "gauge", "The limit of open file descriptors.",
		                limit.rlim_cur == RLIM_INFINITY ? -1 : (double)limit.rlim_cur);
}
