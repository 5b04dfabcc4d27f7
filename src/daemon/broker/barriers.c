/* SPDX-License-Identifier: MIT */
/* The connection for the monitor's messages to itself. See struct hw_app_barriers. */
#include <stdio.h>
#include <string.h>

#include "broker_priv.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/turn.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/print.h"

/* how long after a barrier was sent the readers pass on each message at once; if a barrier takes longer, the socket has
 * many messages, and the readers pass them on at once anyway */
#define BARRIER_SOON_NS (5 * HW_NS_PER_MS)
#define CANARY_MAX      512 /* bytes of its payload */

/* --- sent ------------------------------------------------------------------------------------------------------- */

void hw_app_send_barrier(struct hw_app *a, uint64_t number)
{
	hw_publisher_barrier(a->broker->barriers.publisher, a->life.run_id, number);
}

/* Sends a barrier. The readers pass on each message at once until the barrier is back, but at most for
 * BARRIER_SOON_NS. */
void hw_app_barrier(struct hw_app *a, struct hw_now now, uint64_t number)
{
	a->broker->barrier_out = number;
	for (unsigned i = 0; i < a->broker->n_readers; i++)
		if (a->broker->reader[i].reader)
			hw_reader_expect(a->broker->reader[i].reader, now.mono.ns + BARRIER_SOON_NS);
	hw_app_send_barrier(a, number);
}

void hw_app_canary(struct hw_app *a, const struct hw_out *out)
{
	char payload[CANARY_MAX];
	struct hw_json j;
	hw_json_begin_text(&j, payload, sizeof(payload));
	hw_json_open(&j, '{');
	hw_json_text(&j, "by", a->start->node_id);
	hw_json_int(&j, "seq", out->canary.seq);
	hw_json_bool(&j, "canary", true);
	hw_json_close(&j, '}');
	int len = hw_json_end_text(&j);
	uint64_t canary_id = (uint64_t)out->canary.group << 16 | out->canary.filter;
	hw_publisher_canary(a->broker->barriers.publisher, out->canary.topic, payload, (size_t)len, canary_id);
}

void hw_app_reopen_barriers(struct hw_app *a)
{
	if (!hw_blind_now(hw_monitor_blind(a->monitor)))
		hw_log_limited(
			a->log, HW_LIMIT_READER, HW_LOG_WARNING,
			"barriers: the broker does not answer client '%s'; heartwheeld reopens the client's connection",
			a->broker->barriers.client_id);
	hw_publisher_reconnect(a->broker->barriers.publisher);
}

void hw_app_log_denied(struct hw_app *a, struct hw_now now)
{
	static const char *const what[] = {[HW_BARRIERS_UNKNOWN] = "do not come back",
	                                   [HW_BARRIERS_REFUSED] = "are refused by the broker",
	                                   [HW_BARRIERS_TAKEN] = "are accepted by the broker and do not come back"};
	static const char *const right[] = {[HW_BARRIERS_UNKNOWN] = "write and to read",
	                                    [HW_BARRIERS_REFUSED] = "write (and to read)",
	                                    [HW_BARRIERS_TAKEN] = "read"};
	if (!a->broker->barriers.up) {
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (barrier): cannot publish as '%s', so no barrier can prove that messages arrive: %s",
		       a->broker->barriers.client_id,
		       a->broker->barriers.why[0] ? a->broker->barriers.why : "the connection is not up yet");
		return;
	}
	if (hw_monitor_barriers_silent(a->monitor, now)) {
		hw_log(a->log, HW_LOG_ERROR,
		       "blind (barrier): the broker does not answer client '%s', so no barrier can prove that messages "
		       "arrive; heartwheeld reopens that connection",
		       a->broker->barriers.client_id);
		return;
	}
	hw_log(a->log, HW_LOG_ERROR,
	       "blind (barrier): this monitor's barriers on %s %s; allow this monitor's user to %s that topic",
	       a->broker->barrier_topic, what[a->broker->barriers.taken], right[a->broker->barriers.taken]);
}

/* --- received --------------------------------------------------------------------------------------------------- */

/* Reports the answer to a canary to the core. Without a text, the broker has accepted the canary. With a text, it has
 * refused the canary if there is a reason code; otherwise the canary was not sent. */
static void canary_answered(struct hw_app *a, const struct hw_publisher_event *ev)
{
	enum hw_canary_answer refused = ev->reason ? HW_CANARY_REFUSED : HW_CANARY_UNSENT;
	hw_monitor_canary_answer(a->monitor, (uint16_t)(ev->publish_id >> 16), (uint16_t)ev->publish_id,
	                         ev->text[0] ? refused : HW_CANARY_TAKEN);
}

static void barriers_up(struct hw_app *a, struct hw_now now)
{
	struct hw_app_barriers *b = &a->broker->barriers;
	b->up = true;
	b->reconnects += b->ever_up;
	b->ever_up = true;
	b->why[0] = '\0';
	hw_log(a->log, HW_LOG_INFO, "barriers: connected to %s:%d", b->conf.host, b->conf.port);
	hw_monitor_publisher(a->monitor, now, true);
	hw_share_publisher(a, now);
	hw_app_cluster_barriers_up(a, now);
	hw_app_retry_links(a);
}

static void barriers_down(struct hw_app *a, struct hw_now now, const char *text, bool taken)
{
	struct hw_app_barriers *b = &a->broker->barriers;
	b->up = false;
	b->taken = HW_BARRIERS_UNKNOWN;
	hw_app_log_broker(a, text, taken);
	snprintf(b->why, sizeof(b->why), "%s", text);
	hw_monitor_publisher(a->monitor, now, false);
	hw_share_publisher(a, now);
}

void hw_app_on_barriers(int fd, short what, void *arg)
{
	struct hw_app *a = arg;
	(void)fd;
	(void)what;
	struct hw_now now = hw_app_woke(a);
	struct hw_publisher_event ev;
	while (hw_publisher_take(a->broker->barriers.publisher, &ev)) {
		switch (ev.kind) {
		case HW_PUBLISHER_UP:
			barriers_up(a, now);
			break;
		case HW_PUBLISHER_DOWN:
			barriers_down(a, now, ev.text, ev.publish_id != 0);
			break;
		case HW_PUBLISHER_LIMIT: /* the publisher's connection reports the same */
		case HW_PUBLISHER_ACKED:
		case HW_PUBLISHER_REFUSED:
			break;
		case HW_PUBLISHER_BARRIERS:
			a->broker->barriers.taken = ev.publish_id ? HW_BARRIERS_TAKEN : HW_BARRIERS_REFUSED;
			hw_monitor_barriers_refused(a->monitor, !ev.publish_id);
			break;
		case HW_PUBLISHER_CANARY:
			canary_answered(a, &ev);
		}
	}
	hw_app_turn(a);
}
