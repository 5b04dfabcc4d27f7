/* SPDX-License-Identifier: MIT */
/* The fleet's command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

static const char usage[] =
	"usage: fleet --port P [options]\n"
	"  --host H             broker (127.0.0.1)\n"
	"  --script demo|steady demo: some fall silent, come back, say goodbye; steady: as --silent says (steady)\n"
	"  --devices N          how many (12)\n"
	"  --connections N      over how many connections (one each, at most 200)\n"
	"  --interval-ms N      between a device's heartbeats (500)\n"
	"  --timeout-ms N       the monitor's timeout for them: delays are measured from it (2000)\n"
	"  --seconds N          how long; 0: until a signal (0)\n"
	"  --qos 0|1            of heartbeats (0)\n"
	"  --prefix TEXT        of ids (sensor-)\n"
	"  --heartbeat TOPIC    template (nodes/{id}/heartbeat)\n"
	"  --status TOPIC       template (nodes/{id}/status)\n"
	"  --silent N           steady: so many fall silent (0),\n"
	"  --silent-at-ms N       the first of them then (3000),\n"
	"  --silent-spread-ms N   the others over this time (0),\n"
	"  --return-after-ms N    and are silent so long; 0: for good (0)\n"
	"  --verbose            print each transition (demo always does)\n"
	"  --truth FILE         what each device did: ID FIRST-MS END-MS DOWN-MS OUTAGES, and 1 if it was about to "
	"change\n"
	"  --json               the account as one JSON object\n"
	"  --expect-online N, --expect-offline N   exit 1 if fewer different devices were seen so\n"
	"  --max-p99-ms N       exit 1 if detection was slower\n"
	"Exit status: 0 done, 1 an expectation failed or a device was called dead too early, 2 usage, 3 no broker.\n";

enum {
	OPT_HOST = 256,
	OPT_PORT,
	OPT_SCRIPT,
	OPT_DEVICES,
	OPT_CONNS,
	OPT_INTERVAL,
	OPT_TIMEOUT,
	OPT_SECONDS,
	OPT_QOS,
	OPT_PREFIX,
	OPT_HEARTBEAT,
	OPT_STATUS,
	OPT_SILENT,
	OPT_SILENT_AT,
	OPT_SPREAD,
	OPT_RETURN,
	OPT_VERBOSE,
	OPT_TRUTH,
	OPT_JSON,
	OPT_ONLINE,
	OPT_OFFLINE,
	OPT_P99,
	OPT_HELP
};

static const struct option long_options[] = {
	{"host", required_argument, NULL, OPT_HOST},
	{"port", required_argument, NULL, OPT_PORT},
	{"script", required_argument, NULL, OPT_SCRIPT},
	{"devices", required_argument, NULL, OPT_DEVICES},
	{"connections", required_argument, NULL, OPT_CONNS},
	{"interval-ms", required_argument, NULL, OPT_INTERVAL},
	{"timeout-ms", required_argument, NULL, OPT_TIMEOUT},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"qos", required_argument, NULL, OPT_QOS},
	{"prefix", required_argument, NULL, OPT_PREFIX},
	{"heartbeat", required_argument, NULL, OPT_HEARTBEAT},
	{"status", required_argument, NULL, OPT_STATUS},
	{"silent", required_argument, NULL, OPT_SILENT},
	{"silent-at-ms", required_argument, NULL, OPT_SILENT_AT},
	{"silent-spread-ms", required_argument, NULL, OPT_SPREAD},
	{"return-after-ms", required_argument, NULL, OPT_RETURN},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"truth", required_argument, NULL, OPT_TRUTH},
	{"json", no_argument, NULL, OPT_JSON},
	{"expect-online", required_argument, NULL, OPT_ONLINE},
	{"expect-offline", required_argument, NULL, OPT_OFFLINE},
	{"max-p99-ms", required_argument, NULL, OPT_P99},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static bool number(const char *text, int64_t max, int64_t *out)
{
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	*out = n;
	return errno == 0 && end != text && *end == '\0' && n >= 0 && n <= max;
}

static bool set_text(struct fleet_options *o, int key, const char *arg)
{
	switch (key) {
	case OPT_HOST:
		o->host = arg;
		return true;
	case OPT_SCRIPT:
		o->demo = strcmp(arg, "demo") == 0;
		return o->demo || strcmp(arg, "steady") == 0;
	case OPT_PREFIX:
		o->prefix = arg;
		return strlen(arg) < 100;
	case OPT_HEARTBEAT:
		o->heartbeat = arg;
		return strstr(arg, "{id}") && strlen(arg) < 256;
	case OPT_STATUS:
		o->status = arg;
		return strstr(arg, "{id}") && strlen(arg) < 256;
	case OPT_TRUTH:
		o->truth = arg;
		return true;
	case OPT_VERBOSE:
		o->verbose = true;
		return true;
	case OPT_JSON:
		o->json = true;
		return true;
	default:
		return false;
	}
}

static bool set_count(struct fleet_options *o, int key, int64_t n)
{
	unsigned u = (unsigned)n;
	switch (key) {
	case OPT_PORT:
		o->port = (int)n;
		return n > 0 && n < 65536;
	case OPT_QOS:
		o->qos = (int)n;
		return n <= 1;
	case OPT_DEVICES:
		o->devices = u;
		return n > 0;
	case OPT_CONNS:
		o->conns = u;
		return n > 0;
	case OPT_SILENT:
		o->silent = u;
		return true;
	case OPT_ONLINE:
		o->expect_online = u;
		return true;
	case OPT_OFFLINE:
		o->expect_offline = u;
		return true;
	case OPT_P99:
		o->max_p99_ms = (double)n;
		return true;
	default:
		return false;
	}
}

static bool set_time(struct fleet_options *o, int key, int64_t n)
{
	switch (key) {
	case OPT_INTERVAL:
		o->interval_ms = n;
		return n > 0;
	case OPT_TIMEOUT:
		o->timeout_ms = n;
		return n > 0;
	case OPT_SECONDS:
		o->duration_ms = n * 1000;
		return true;
	case OPT_SILENT_AT:
		o->silent_at_ms = n;
		return true;
	case OPT_SPREAD:
		o->silent_spread_ms = n;
		return true;
	case OPT_RETURN:
		o->return_after_ms = n;
		return true;
	default:
		return false;
	}
}

bool fleet_options_parse(struct fleet_options *o, int argc, char **argv)
{
	int key;
	*o = (struct fleet_options){.host = "127.0.0.1",
	                            .prefix = "sensor-",
	                            .heartbeat = "nodes/{id}/heartbeat",
	                            .status = "nodes/{id}/status",
	                            .devices = 12,
	                            .interval_ms = 500,
	                            .timeout_ms = 2000,
	                            .silent_at_ms = 3000};
	while ((key = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int64_t n;
		if (key < OPT_HOST || key == OPT_HELP)
			return false;
		if (set_text(o, key, optarg))
			continue;
		if (!optarg || !number(optarg, 1000000000, &n) || !(set_count(o, key, n) || set_time(o, key, n))) {
			fprintf(stderr, "fleet: wrong value '%s'\n", optarg ? optarg : "");
			return false;
		}
	}
	if (o->conns == 0)
		o->conns = o->devices < 200 ? o->devices : 200;
	if (o->conns > o->devices || o->demo)
		o->conns = o->devices;
	o->verbose |= o->demo;
	return o->port > 0 && optind == argc && o->silent <= o->devices && (!o->demo || o->devices >= 6);
}

void fleet_options_usage(FILE *to)
{
	fputs(usage, to);
}
