/* SPDX-License-Identifier: MIT */
/* See turn.h. A turn visits at most STEPS x HW_INCIDENT_STEP devices and incidents; the next turn visits the others. */
#include "alert/turn.h"

#include <event2/event.h>
#include <stdlib.h>

#include "alert/app.h"
#include "alert/follow/follow.h"
#include "alert/follow/watch.h"
#include "alert/state/commit.h"
#include "alert/state/message.h"
#include "alert/state/outbox.h"

#define STEPS     10
#define PAUSE_MAX 60000 /* ms */

struct hw_alert_turn {
	struct hw_alert_app *app;
	struct event *event;
};

/* Adds the messages that are due to the outbox, until they have HW_ALERT_NEWS_MOST news. Returns 0 or -ENOMEM. */
static int make_messages(struct hw_alert_app *a, struct hw_now now)
{
	const struct hw_alert_writer w = hw_alert_writer_of(a);
	struct hw_incident_message m;
	size_t n = 0;
	int rc = 0;
	while (rc == 0 && n < HW_ALERT_NEWS_MOST && hw_incidents_message(a->engine, now, &m)) {
		rc = hw_alert_outbox_add(a->outbox, m.name, m.number, hw_alert_message_text(&w, &m), false);
		n += hw_incidents_message_news(&m);
	}
	return rc;
}

/* Handles a turn without Redis: nothing can be stored then, so only news of blindness is sent. */
static int work_without_redis(struct hw_alert_app *a, struct hw_now now)
{
	size_t before = hw_alert_outbox_count(a->outbox);
	int rc = make_messages(a, now);
	if (hw_alert_outbox_count(a->outbox) > before) {
		a->away_news = true;
		hw_alert_outbox_send_unstored(a->outbox);
		hw_senders_wake(a->senders);
	}
	return rc;
}

static int work(struct hw_alert_app *a, struct hw_now now)
{
	if (!hw_alert_store_is_up(a->store))
		return work_without_redis(a, now);
	if (hw_alert_commit_is_busy(a->commit) || !hw_alert_holder_is(a->holder) || a->reload)
		return 0;
	int rc = hw_alert_commit_begin(a->commit);
	if (rc > 0)
		rc = make_messages(a, now);
	return rc ? rc : hw_alert_commit_send(a->commit);
}

static void arm(struct hw_alert_turn *t, int64_t ms)
{
	struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
	(void)event_add(t->event, &tv); /* if there is no memory the tick runs it */
}

static void run(struct hw_alert_turn *t)
{
	struct hw_alert_app *a = t->app;
	struct hw_now now = hw_alert_now(a);
	bool up = hw_alert_store_is_up(a->store), more = true;
	if (!a->engine)
		return;
	int64_t lag = hw_alert_follow_lag_ms(a->follow, hw_alert_holder_redis_ms(a->holder));
	hw_incidents_redis(a->engine, now, up);
	hw_incidents_behind(a->engine, !up || lag > HW_INCIDENT_BEHIND);
	for (int k = 0; k < STEPS && more; k++)
		more = hw_incidents_step(a->engine, now);
	if (more) {
		arm(t, 0);
		return;
	}
	if (work(a, now) != 0) {
		hw_alert_on_no_memory(a);
		return;
	}
	int64_t ms = (hw_incidents_due(a->engine).ns - now.mono.ns + HW_NS_PER_MS - 1) / HW_NS_PER_MS;
	arm(t, ms < 1 ? 1 : ms > PAUSE_MAX ? PAUSE_MAX : ms);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	run(arg);
}

void hw_alert_turn_schedule(struct hw_alert_turn *t)
{
	arm(t, 0);
}

struct hw_alert_turn *hw_alert_turn_new(struct hw_alert_app *app)
{
	struct hw_alert_turn *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->app = app;
	t->event = event_new(app->loop.base, -1, 0, on_event, t);
	if (t->event)
		return t;
	free(t);
	return NULL;
}

void hw_alert_turn_free(struct hw_alert_turn *t)
{
	if (!t)
		return;
	event_free(t->event);
	free(t);
}
