/* SPDX-License-Identifier: MIT */
/*
 * The last hour: a sample every ten seconds, for the dashboard's charts if there is no Prometheus. Cost: 360 samples of
 * 64 bytes.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "control/parts.h"
#include "http/json.h"
#include "http/proxy.h"

#define PERIOD_S 10
#define SAMPLES  360
#define RATE_S   10 /* smoothing time of the heartbeat rate */

struct sample {
	int64_t time_ms; /* wall clock at its end */
	uint32_t online, offline;
	uint64_t heartbeats, transitions; /* since the sample before */
	uint32_t detected;
	int64_t delay_sum_ns, delay_max_ns;
	bool blind;                      /* blind at some time in it */
	int64_t blind_from_ms, blind_ms; /* wall clock at the begin of the blindness; its duration in whole seconds,
	                                  * exact after its end */
};

struct hw_samples {
	struct sample samples[SAMPLES];
	uint64_t n;
	struct sample now; /* the sample in progress */
	struct hw_mono last, tick;
	int64_t blind_ns; /* total at the last tick */
	uint64_t heartbeats, heartbeats_at_tick, transitions;
	double rate;
	bool begun;
};

struct hw_samples *hw_samples_new(void)
{
	return calloc(1, sizeof(struct hw_samples));
}

void hw_samples_free(struct hw_samples *s)
{
	free(s);
}

double hw_samples_rate(const struct hw_samples *s)
{
	return s->rate;
}

void hw_control_detected(struct hw_control *c, int64_t delay_ns)
{
	struct sample *now = &c->samples->now;
	now->detected++;
	now->delay_sum_ns += delay_ns;
	if (delay_ns > now->delay_max_ns)
		now->delay_max_ns = delay_ns;
}

static void update_rate(struct hw_samples *s, struct hw_now now, uint64_t heartbeats)
{
	double seconds = (double)(now.mono.ns - s->tick.ns) / 1e9;
	if (s->begun && seconds > 0) {
		double fresh = (double)(heartbeats - s->heartbeats_at_tick) / seconds;
		double weight = seconds < RATE_S ? seconds / RATE_S : 1;
		s->rate += (fresh - s->rate) * weight;
	}
	s->tick = now.mono;
	s->heartbeats_at_tick = heartbeats;
}

/* Adds the blindness since the last tick. */
static void note_blind(struct hw_samples *s, const struct hw_monitor *m, struct hw_now now)
{
	struct hw_blindness is = hw_monitor_blindness(m);
	int64_t blind_ns = now.mono.ns - hw_blind_seen(hw_monitor_blind(m), now.mono).ns;
	int64_t ms = (blind_ns - s->blind_ns) / HW_NS_PER_MS, since_ms = (now.mono.ns - s->tick.ns) / HW_NS_PER_MS;
	if (is.blind && !hw_blind_now(hw_monitor_blind(m))) /* only groups are blind */
		ms = (now.mono.ns - is.since.ns) / HW_NS_PER_MS;
	s->blind_ns = blind_ns;
	if (!s->begun || ms > since_ms)
		ms = s->begun ? since_ms
		              : 0; /* If a blindness was detected late, it began before the last tick. Only its part
		                      since the last tick belongs to this sample; the log has the whole blindness. */
	s->now.blind |= is.blind || ms > 0;
	if (ms <= 0)
		return;
	if (s->now.blind_ms == 0)
		s->now.blind_from_ms = now.wall_ms - ms;
	s->now.blind_ms += ms;
}

/*
 * Whether samples have not begun. Before the devices of the store are loaded, a sample would show none. If Redis cannot
 * be reached at the start, samples begin after the grace.
 */
static bool is_loading(const struct hw_control *c)
{
	struct hw_control_status status;
	c->ops->status(c->arg, &status);
	return status.loading || (hw_is_starting(c) && status.store != HW_REDIS_OFF && strcmp(status.redis, "up") != 0);
}

void hw_control_tick(struct hw_control *c, struct hw_now now)
{
	struct hw_samples *s = c->samples;
	const struct hw_monitor_stats *stats = hw_monitor_stats(c->monitor);
	uint64_t transitions = 0;
	hw_http_tick(&c->http);
	if (hw_http_api_token_expired(&c->http))
		hw_close_unadmitted(c);
	hw_hub_tick(c->hub);
	for (int i = 0; i < HW_REASONS; i++)
		transitions += stats->transitions[i];
	note_blind(s, c->monitor, now);
	update_rate(s, now, stats->heartbeats);
	/* The first sample is taken at once, so that a chart is not empty. */
	if (s->begun && now.mono.ns - s->last.ns < PERIOD_S * HW_NS_PER_S)
		return;
	if (!s->begun && is_loading(c))
		return;
	s->now.time_ms = now.wall_ms;
	s->now.online = stats->count[HW_STATE_ONLINE];
	s->now.offline = stats->count[HW_STATE_OFFLINE];
	s->now.heartbeats = stats->heartbeats - s->heartbeats;
	s->now.transitions = transitions - s->transitions;
	s->samples[s->n++ % SAMPLES] = s->now;
	s->now = (struct sample){0};
	s->heartbeats = stats->heartbeats;
	s->transitions = transitions;
	s->last = now.mono;
	s->begun = true;
}

static void write_sample(struct hw_json *j, const struct sample *one)
{
	hw_json_open(j, '{');
	hw_json_int(j, "time_ms", one->time_ms);
	hw_json_uint(j, "online", one->online);
	hw_json_uint(j, "offline", one->offline);
	hw_json_uint(j, "heartbeats", one->heartbeats);
	hw_json_uint(j, "transitions", one->transitions);
	hw_json_uint(j, "detected", one->detected);
	if (one->detected > 0) {
		hw_json_number(j, "delay_mean_ms", (double)(one->delay_sum_ns / one->detected / 1000) / 1e3);
		hw_json_number(j, "delay_max_ms", (double)(one->delay_max_ns / 1000) / 1e3);
	} else {
		hw_json_null(j, "delay_mean_ms");
		hw_json_null(j, "delay_max_ms");
	}
	hw_json_bool(j, "blind", one->blind);
	if (one->blind_ms > 0)
		hw_json_int(j, "blind_from_ms", one->blind_from_ms);
	else
		hw_json_null(j, "blind_from_ms");
	hw_json_int(j, "blind_ms", one->blind_ms);
	hw_json_close(j, '}');
}

void hw_serve_samples(void *arg, struct evhttp_request *req, const char *rest)
{
	struct hw_control *c = arg;
	const struct hw_samples *s = c->samples;
	struct hw_json j;
	struct evbuffer *body = hw_answer_begin(req, &j);
	(void)rest;
	if (!body)
		return;
	hw_json_int(&j, "period_s", PERIOD_S);
	hw_json_bool(&j, "history", c->durable && hw_proxy_is_there(c->durable));
	hw_json_open_member(&j, "samples", '[');
	for (uint64_t i = s->n > SAMPLES ? s->n - SAMPLES : 0; i < s->n; i++)
		write_sample(&j, &s->samples[i % SAMPLES]);
	hw_json_close(&j, ']');
	hw_answer_end(req, &j, body);
}
