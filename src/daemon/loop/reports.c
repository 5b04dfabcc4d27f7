/* SPDX-License-Identifier: MIT */
#include "reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/cluster.h"
#include "http/attempts.h"
#include "http/server.h"
#include "run/manager.h"

#define QUIET_S 10      /* between two lines of a kind */
#define CUT_OFF "$size" /* intake.c in core counts this fault if a payload is too long to be kept as a whole */

struct hw_app_reports {
	uint64_t refused_logged[HW_REFUSED_KINDS];
	int refused_quiet_s[HW_REFUSED_KINDS]; /* seconds until the next log line of the kind */
	/* The first device whose record in the store was corrected since the last log line; "": none. */
	char odd_id[HW_ID_MAX + 1];
	char too_long[384];     /* the last message that was refused as HW_REFUSED_PROPERTIES */
	uint64_t faults_logged; /* payload errors */
	int faults_quiet_s;
	int left_out_quiet_s;     /* see report_left_out() */
	uint64_t closings_logged; /* blocks of addresses that guessed API tokens */
	char manager_text[128];   /* the last status that was sent to the service manager */
};

int hw_app_reports_new(struct hw_app *a)
{
	a->reports = calloc(1, sizeof(*a->reports));
	return a->reports ? 0 : -ENOMEM;
}

void hw_app_reports_resume(struct hw_app *a)
{
	a->reports->closings_logged = hw_control_refused(a->control).closings;
}

void hw_app_reports_stored(struct hw_app *a, const char *id, size_t id_len, uint64_t refused_before)
{
	struct hw_app_reports *r = a->reports;
	if (r->refused_logged[HW_REFUSED_STORED] == refused_before &&
	    hw_monitor_stats(a->monitor)->refused[HW_REFUSED_STORED] > refused_before)
		snprintf(r->odd_id, sizeof(r->odd_id), "%.*s", (int)id_len, id);
}

void hw_app_reports_too_long(struct hw_app *a, const char *text)
{
	hw_monitor_count_refused(a->monitor, HW_REFUSED_PROPERTIES, 1);
	snprintf(a->reports->too_long, sizeof(a->reports->too_long), "%s", text);
}

/* Explains why messages were refused. Returns false if nothing is to be logged: the messages came from a node that was
 * no member of the cluster then, and is a member now. */
static bool explain_refused(const struct hw_app *a, enum hw_refused k, char *text, size_t cap)
{
	const char *stranger = k == HW_REFUSED_STRANGER ? hw_app_cluster_stranger(a) : NULL;
	text[0] = '\0';
	if (k == HW_REFUSED_MAX_DEVICES)
		snprintf(text, cap, ": the table is full; raise [monitor] max_devices");
	else if (stranger)
		snprintf(text, cap,
		         ": '%.64s' is not a member of the nodes, and its presence is ignored; allow only the nodes to "
		         "write heartwheel/#",
		         stranger);
	else if (k == HW_REFUSED_STORED)
		snprintf(text, cap,
		         ": values in Redis are out of bounds%s%s%s; heartwheeld has replaced them; check the programs "
		         "that write there, and their clocks",
		         *a->reports->odd_id ? ", the first of '" : "", a->reports->odd_id,
		         *a->reports->odd_id ? "'" : "");
	else if (k == HW_REFUSED_PARENT)
		snprintf(text, cap,
		         ": a parent of device '%s' is ignored: %s; check `parent` in its group and in the inventory",
		         hw_monitor_stats(a->monitor)->parent_of, hw_monitor_stats(a->monitor)->parent_fault);
	else if (k == HW_REFUSED_EPOCH)
		snprintf(text, cap,
		         ": the epoch of a fencing token is more than a day ahead of Redis' clock; the token is "
		         "ignored");
	else if (k == HW_REFUSED_PROPERTIES)
		snprintf(text, cap, ": %s", a->reports->too_long);
	else if (k == HW_REFUSED_STATUS)
		snprintf(
			text, cap,
			": a retained status of '%s' names this node and is newer than the device's, but this node has "
			"not published it, or the broker delivered it after the start; it changes nothing; allow only "
			"heartwheeld to write the status topics",
			hw_monitor_stats(a->monitor)->status_id);
	return k != HW_REFUSED_STRANGER || stranger;
}

/* Warns only once about heartbeats with the retain flag. Devices may send one message with this flag when they
 * connect, but no heartbeats. */
static void report_flagged(struct hw_app *a, uint64_t fresh, bool first)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	const char *group = hw_monitor_groups(a->monitor)->all[s->flagged_group]->name;
	hw_log(a->log, first ? HW_LOG_WARNING : HW_LOG_DEBUG,
	       "group '%s': ignored %llu message%s with the retain flag; if the devices set the flag on each "
	       "heartbeat, set retained = count in that group",
	       group, (unsigned long long)fresh, fresh == 1 ? "" : "s");
}

static void report_refused(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	char why[512];
	for (int k = 0; k < HW_REFUSED_KINDS; k++) {
		uint64_t fresh = s->refused[k] - a->reports->refused_logged[k];
		bool expected = k == HW_REFUSED_RETAINED || k == HW_REFUSED_MONITOR || k == HW_REFUSED_PROBE;
		if (fresh == 0)
			continue;
		if (a->reports->refused_quiet_s[k] > 0) {
			a->reports->refused_quiet_s[k]--;
			continue;
		}
		bool first = a->reports->refused_logged[k] == 0;
		/* one warning suffices, the others are counted */
		expected |= (k == HW_REFUSED_PARENT || k == HW_REFUSED_STATUS) && !first;
		a->reports->refused_logged[k] = s->refused[k];
		if (!explain_refused(a, (enum hw_refused)k, why, sizeof(why)))
			continue;
		if (k == HW_REFUSED_FLAGGED)
			report_flagged(a, fresh, first);
		else
			hw_log(a->log, expected ? HW_LOG_DEBUG : HW_LOG_WARNING, "refused %llu message%s (%s)%s",
			       (unsigned long long)fresh, fresh == 1 ? "" : "s", hw_refused_name((enum hw_refused)k),
			       why);
		a->reports->refused_quiet_s[k] = QUIET_S;
		if (k == HW_REFUSED_STORED)
			a->reports->odd_id[0] = '\0';
	}
}

/* Logs once for each group that messages of a monitor are ignored. Messages of other nodes of this cluster are
 * expected. */
static void report_left_out(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	if (a->reports->left_out_quiet_s > 0) {
		a->reports->left_out_quiet_s--;
		return;
	}
	if (!s->left_out)
		return;
	bool expected = hw_app_cluster_knows(a, s->left_out_by);
	if (!expected) {
		hw_log(a->log, HW_LOG_NOTICE,
		       "group '%s': ignored a message of monitor '%s', which is no heartbeat; if a device sent it, the "
		       "device must not use `by` and `seq` together with `online`, `canary` or `cluster` in its JSON",
		       hw_monitor_groups(a->monitor)->all[s->left_out_group]->name, s->left_out_by);
		a->reports->left_out_quiet_s = QUIET_S;
	}
	hw_monitor_left_out_logged(a->monitor, !expected);
}

static const char *fault_words(const char *fault)
{
	if (!fault)
		return "begins like JSON and is not";
	if (strcmp(fault, CUT_OFF) == 0)
		return "is longer than 64 KiB, counts as a heartbeat, and nothing in it is read";
	return fault[0] == '$' ? " is no state of Homie, and counts as a heartbeat"
	                       : " is of a wrong type or length, and was left out";
}

/* Logs only one of the devices, because usually all of them have the same fault. */
static void report_faults(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	uint64_t fresh = s->payload_errors - a->reports->faults_logged;
	if (a->reports->faults_quiet_s > 0) {
		a->reports->faults_quiet_s--;
		return;
	}
	if (fresh == 0)
		return;
	bool named = s->fault && strcmp(s->fault, CUT_OFF) != 0;
	hw_log(a->log, HW_LOG_WARNING, "%llu payload error%s, the last of %s%s%s: %s%s%s%s", (unsigned long long)fresh,
	       fresh == 1 ? "" : "s", s->fault_id[0] ? "device '" : "an unknown device", s->fault_id,
	       s->fault_id[0] ? "'" : "", named ? "'" : "", named ? s->fault : "", named ? "'" : "",
	       fault_words(s->fault));
	a->reports->faults_logged = s->payload_errors;
	a->reports->faults_quiet_s = QUIET_S;
}

static void report_closings(struct hw_app *a)
{
	struct hw_http_refused r = hw_control_refused(a->control);
	if (r.closings == a->reports->closings_logged)
		return;
	a->reports->closings_logged = r.closings;
	hw_log_limited(a->log, HW_LIMIT_GUESSES, HW_LOG_WARNING,
	               "%d wrong API tokens came from %s; further wrong tokens from there are answered with 429 for a "
	               "minute; see [http] users",
	               HW_ATTEMPTS_MAX, r.last_closed);
}

static void notify_manager(struct hw_app *a)
{
	const struct hw_monitor_stats *s = hw_monitor_stats(a->monitor);
	struct hw_blindness b = hw_monitor_blindness(a->monitor);
	char text[sizeof(a->reports->manager_text)], stands[sizeof(text) - sizeof("STATUS=")];
	snprintf(text, sizeof(text), "STATUS=%u online, %u offline%s%s", s->count[HW_STATE_ONLINE],
	         s->count[HW_STATE_OFFLINE], b.blind ? ", blind: " : "", b.blind ? hw_cause_name(b.cause) : "");
	if (hw_app_stands_by(a)) {
		hw_app_standby_text(a, stands, sizeof(stands));
		snprintf(text, sizeof(text), "STATUS=%s", stands);
	}
	if (strcmp(text, a->reports->manager_text) == 0)
		return;
	memcpy(a->reports->manager_text, text, sizeof(text));
	hw_manager_notify(text);
}

void hw_app_reports_tick(struct hw_app *a)
{
	report_refused(a);
	report_left_out(a);
	report_faults(a);
	report_closings(a);
	notify_manager(a);
}
