/* SPDX-License-Identifier: MIT */
/* Models heartwheel-alert around the engine, its data in Redis, and the servers of the receivers. */
#include <stdlib.h>
#include <string.h>

#include "incident_world.h"

static int64_t between(struct iw_world *w, int64_t lo, int64_t hi)
{
	return sim_between(&w->random, lo, hi);
}

static bool chance(struct iw_world *w, double p)
{
	return sim_chance(&w->random, p);
}

/* The host's monotonic clock begins at 1 s. */
struct hw_now iw_now(const struct iw_world *w)
{
	return (struct hw_now){{(w->now + 1000) * HW_NS_PER_MS}, IW_BEGIN_MS + w->now};
}

static void must(int rc)
{
	if (rc != 0)
		abort();
}

/* --- Redis ----------------------------------------------------------------------------------------------------------
 */

struct iw_incident *iw_find(struct iw_world *w, const char *id)
{
	for (size_t k = w->redis.n_incidents; k > 0; k--)
		if (strcmp(w->redis.incidents[k - 1].view.id, id) == 0)
			return &w->redis.incidents[k - 1];
	return NULL;
}

static struct iw_incident *find_or_add(struct iw_world *w, const char *id)
{
	struct iw_incident *i = iw_find(w, id);
	if (i)
		return i;
	if (w->redis.n_incidents == IW_INCIDENTS)
		abort();
	i = &w->redis.incidents[w->redis.n_incidents++];
	memset(i, 0, sizeof(*i));
	snprintf(i->view.id, sizeof(i->view.id), "%s", id);
	return i;
}

static int receiver_of(const struct iw_world *w, const char *name)
{
	for (unsigned k = 0; k < w->n_receivers; k++)
		if (strcmp(w->receivers[k].name, name) == 0)
			return (int)k;
	abort();
}

static struct iw_member *member_of(struct iw_world *w, const char *device)
{
	for (unsigned k = 0; k < w->n_devices; k++)
		if (strcmp(w->devices[k].id, device) == 0)
			return &w->redis.members[k];
	abort();
}

static const char *copy(char *to, size_t cap, const char *from)
{
	snprintf(to, cap, "%s", from ? from : "");
	return from ? to : NULL;
}

static void write_incident(struct iw_world *w, const struct hw_change *c)
{
	struct iw_incident *i = find_or_add(w, c->id);
	i->view = c->incident;
	i->view.group = copy(i->group, sizeof(i->group), c->incident.group);
	i->view.device = copy(i->device, sizeof(i->device), c->incident.device);
	i->view.cause = copy(i->cause, sizeof(i->cause), c->incident.cause);
	i->view.labels = copy(i->labels, sizeof(i->labels), c->incident.labels);
	i->view.ack_by = i->view.note = NULL;
	i->exists = true;
}

static void write_sent(struct iw_world *w, const struct hw_change *c)
{
	find_or_add(w, c->id)->sent[receiver_of(w, c->receiver)] =
		(struct iw_stored_sent){true, c->acknowledged, c->flapping, c->last, c->count, c->at_ms};
}

static void write_silence(struct iw_world *w, const struct hw_change *c)
{
	size_t k = 0;
	while (k < w->redis.n_silences && strcmp(w->redis.silences[k].id, c->id) != 0)
		k++;
	if (c->kind == HW_CHANGE_UNSILENCE) {
		if (k < w->redis.n_silences)
			w->redis.silences[k].id[0] = '\0';
		return;
	}
	if (k == IW_SILENCES)
		abort();
	w->redis.n_silences += k == w->redis.n_silences;
	w->redis.silences[k] = c->silence;
	w->redis.silences[k].match = copy(w->redis.silence_match[k], sizeof(*w->redis.silence_match), c->silence.match);
	w->redis.silences[k].reason = w->redis.silences[k].by = NULL;
}

static void write_change(struct iw_world *w, const struct hw_change *c)
{
	switch (c->kind) {
	case HW_CHANGE_INCIDENT:
		write_incident(w, c);
		break;
	case HW_CHANGE_DROPPED:
		find_or_add(w, c->id)->exists = false;
		break;
	case HW_CHANGE_SENT:
		write_sent(w, c);
		break;
	case HW_CHANGE_JOINED:
		*member_of(w, c->device) =
			(struct iw_member){.class = c->class, .since_ms = c->since_ms, .seq = c->seq};
		snprintf(member_of(w, c->device)->incident, HW_INCIDENT_ID + 1, "%s", c->id);
		break;
	case HW_CHANGE_LEFT:
		if (strcmp(member_of(w, c->device)->incident, c->id) == 0)
			member_of(w, c->device)->incident[0] = '\0';
		break;
	case HW_CHANGE_RECEIVER:
		w->redis.numbers[receiver_of(w, c->receiver)] = c->number;
		w->redis.from_ms[receiver_of(w, c->receiver)] = c->from_ms;
		w->redis.receiver_is[receiver_of(w, c->receiver)] = true;
		break;
	case HW_CHANGE_SILENCE:
	case HW_CHANGE_UNSILENCE:
		write_silence(w, c);
		break;
	case HW_CHANGE_PLANNED:
		w->redis.planned++;
		if (c->from_ms > c->to_ms)
			iw_breach(w, "planned outage of %s ends before it begins", c->device);
		break;
	default:
		break;
	}
}

static void commit(struct iw_world *w)
{
	struct hw_change c;
	while (hw_incidents_change(w->engine, &c))
		write_change(w, &c);
	w->redis.offset = w->read;
	w->redis.holder = true;
}

/* --- a start --------------------------------------------------------------------------------------------------------
 */

static void load_incidents(struct iw_world *w)
{
	for (size_t k = 0; k < w->redis.n_incidents; k++) {
		struct iw_incident *i = &w->redis.incidents[k];
		bool waits = false;
		for (unsigned r = 0; r < w->n_receivers; r++)
			waits = waits || (i->sent[r].is && i->sent[r].last < HW_NEWS_CLOSED);
		if (!i->exists || (i->view.state != HW_INCIDENT_OPEN && !waits))
			continue;
		must(hw_incidents_load(w->engine, &i->view));
		for (unsigned r = 0; r < w->n_receivers; r++)
			if (i->sent[r].is && w->lie != IW_LIE_FORGET)
				must(hw_incidents_load_sent(w->engine, i->view.id, w->receivers[r].name,
				                            i->sent[r].last, i->sent[r].acknowledged,
				                            i->sent[r].flapping, i->sent[r].count, i->sent[r].at_ms));
	}
}

static void load_devices(struct iw_world *w)
{
	for (unsigned k = 0; k < w->n_devices; k++) {
		const struct iw_device *d = &w->devices[k];
		int64_t wait = 0;
		for (unsigned p = 0; p < d->n_parents; p++)
			if (w->devices[d->parents[p]].timeout > wait)
				wait = w->devices[d->parents[p]].timeout;
		struct hw_incident_entry entry = {.id = d->id,
		                                  .group = d->group,
		                                  .labels = d->labels,
		                                  .node = IW_NODE,
		                                  .parents = d->parents_text,
		                                  .fact = d->unseen ? HW_FACT_UNSEEN : HW_FACT_OFFLINE,
		                                  .time_ms = d->since_ms,
		                                  .timeout_ms = d->timeout,
		                                  .wait_ms = d->n_parents ? wait : -1,
		                                  .seq = d->seq};
		if (iw_is_away(d))
			must(hw_incidents_load_device(w->engine, &entry));
	}
	for (unsigned k = 0; k < w->n_devices; k++)
		if (w->redis.members[k].incident[0])
			must(hw_incidents_load_member(w->engine, w->redis.members[k].incident, w->devices[k].id,
			                              w->redis.members[k].class, w->redis.members[k].since_ms,
			                              w->redis.members[k].seq));
}

static void load_receivers(struct iw_world *w)
{
	for (unsigned r = 0; r < w->n_receivers; r++) {
		if (!w->redis.receiver_is[r])
			continue;
		must(hw_incidents_load_receiver(w->engine, w->receivers[r].name, w->redis.numbers[r],
		                                w->redis.from_ms[r]));
		for (unsigned k = 0; k < IW_MESSAGES; k++)
			if (w->redis.sending[r][k].is)
				must(hw_incidents_load_sending(w->engine, w->receivers[r].name,
				                               w->redis.sending[r][k].number,
				                               w->redis.sending[r][k].each));
	}
}

static void tell_groups(struct iw_world *w)
{
	static const char *const names[] = {"gates0", "v0", "v1"};
	for (unsigned g = 0; g < 3; g++) {
		uint64_t n[2] = {0, 0};
		for (unsigned k = 0; k < w->n_devices; k++)
			if (strcmp(w->devices[k].group, names[g]) == 0 && !w->devices[k].expected)
				n[w->devices[k].offline]++;
		must(hw_incidents_group(w->engine, iw_now(w), names[g], n[0], n[1], 0));
	}
}

static void recall(struct iw_world *w)
{
	for (size_t k = 0; k < w->redis.offset; k++) {
		const struct iw_entry *n = &w->entries[k];
		if (!n->heard && n->fact != HW_FACT_UNSEEN && w->now - n->at < 4 * w->conf.flap_half_ms)
			must(hw_incidents_recall(w->engine, w->devices[n->device].id, n->time_ms));
	}
}

void iw_host_start(struct iw_world *w)
{
	struct hw_incidents_conf conf = w->conf;
	if (w->lie == IW_LIE_CALM)
		conf.flap_start = 0;
	w->engine = hw_incidents_new(&conf, iw_now(w));
	if (!w->engine)
		abort();
	memset(w->finished, 0, sizeof(w->finished));
	if (!w->redis.holder)
		w->redis.offset = w->n_entries;
	for (unsigned k = 0; k < w->n_devices && !w->redis.holder; k++)
		w->devices[k].listed = iw_is_away(&w->devices[k]);
	w->read = w->redis.offset;
	w->blind_told = false;
	tell_groups(w);
	load_incidents(w);
	load_devices(w);
	for (size_t k = 0; k < w->redis.n_silences; k++)
		if (w->redis.silences[k].id[0])
			must(hw_incidents_silence(w->engine, iw_now(w), &w->redis.silences[k]));
	load_receivers(w);
	recall(w);
	must(hw_incidents_loaded(w->engine, iw_now(w), !w->redis.holder));
}

static void crash(struct iw_world *w, const char *when)
{
	iw_trace(w, "heartwheel-alert dies %s", when);
	hw_incidents_free(w->engine);
	w->engine = NULL;
	w->count.restarts++;
	w->down_until = w->now + (w->seed % 2 ? 0 : between(w, 0, 300) * 1000);
	if (w->down_until == w->now)
		iw_host_start(w);
}

static void empty_redis(struct iw_world *w)
{
	iw_trace(w, "Redis is emptied");
	w->emptied_at = 0;
	memset((char *)&w->redis + offsetof(struct iw_redis, n_incidents), 0,
	       sizeof(w->redis) - offsetof(struct iw_redis, n_incidents));
	hw_incidents_free(w->engine);
	iw_host_start(w);
}

/* --- what is read ---------------------------------------------------------------------------------------------------
 */

static void read_entry(struct iw_world *w, const struct iw_entry *n)
{
	struct iw_device *d = &w->devices[n->device];
	if (n->heard) {
		hw_incidents_parent_heard(w->engine, iw_now(w), d->id, n->seq, n->settle_ms);
		return;
	}
	struct hw_incident_entry entry = {.id = d->id,
	                                  .group = d->group,
	                                  .labels = d->labels,
	                                  .node = IW_NODE,
	                                  .parents = w->lie == IW_LIE_PARENT ? NULL : d->parents_text,
	                                  .fact = n->fact,
	                                  .time_ms = n->time_ms,
	                                  .timeout_ms = d->timeout,
	                                  .wait_ms = w->lie == IW_LIE_WAIT ? -1 : n->wait_ms,
	                                  .seq = n->seq};
	must(hw_incidents_entry(w->engine, iw_now(w), &entry));
}

static void read_streams(struct iw_world *w)
{
	bool away = w->now < w->redis_until;
	hw_incidents_redis(w->engine, iw_now(w), !away);
	if (!away && w->now >= w->marks_until)
		hw_incidents_sight_renewed(w->engine, iw_now(w));
	for (; !away && w->now >= w->lag_until && w->read < w->n_entries; w->read++)
		read_entry(w, &w->entries[w->read]);
	bool unread = w->read < w->n_entries && w->now - w->entries[w->read].at > HW_INCIDENT_BEHIND;
	hw_incidents_behind(w->engine, away || unread);
	if (w->blind != w->blind_told && w->lie != IW_LIE_BLIND)
		hw_incidents_sight(w->engine, iw_now(w), IW_NODE, w->blind_told = w->blind);
}

/* --- operators ------------------------------------------------------------------------------------------------------
 */

static bool acknowledge(void *arg, const struct hw_incident_view *v)
{
	struct iw_world *w = arg;
	if (v->state != HW_INCIDENT_OPEN || !chance(w, 0.3))
		return true;
	hw_incidents_acknowledge(w->engine, iw_now(w), v->id, !v->acknowledged, "ann", "on my way");
	return false;
}

static void silence(struct iw_world *w)
{
	static const char *const matches[] = {"group:v0", "id:d1*", "label:site=south", "id:g*", "id:*"};
	char id[24];
	snprintf(id, sizeof(id), "id:%s", w->devices[between(w, 0, w->n_devices - 1)].id);
	struct hw_silence_view s = {.match = chance(w, 0.5) ? id : matches[between(w, 0, 4)],
	                            .until_online = chance(w, 0.3),
	                            .planned = chance(w, 0.3)};
	int64_t left = w->quiet_from - w->now;
	if (!s.until_online || chance(w, 0.5))
		s.until_ms = IW_BEGIN_MS + w->now + between(w, 10, 1200) * 1000;
	if (s.until_online && !s.until_ms)
		s.until_ms = IW_BEGIN_MS + w->now + left + 60000;
	if (hw_incidents_silence(w->engine, iw_now(w), &s) == 0)
		w->count.silences++;
	iw_trace(w, "silence %s until %lld%s", s.match, (long long)(s.until_ms - IW_BEGIN_MS) / 1000,
	         s.until_online ? " or online" : "");
	if (w->lie == IW_LIE_SILENCE && s.until_ms) { /* a lie: the end of the silence is not passed on */
		hw_incidents_unsilence(w->engine, iw_now(w), s.id);
		s.until_ms += INT64_C(86400000);
		s.until_online = false;
		s.id[0] = '\0';
		must(hw_incidents_silence(w->engine, iw_now(w), &s));
	}
}

static void operate(struct iw_world *w)
{
	bool away = w->now < w->redis_until;
	if (w->now >= w->quiet_from || away)
		return;
	if (chance(w, 0.002))
		hw_incidents_list(w->engine, acknowledge, w);
	if (w->silences && chance(w, 0.003) && w->redis.n_silences < IW_SILENCES - 1)
		silence(w);
	if (w->lie == IW_LIE_PHANTOM && chance(w, 0.002)) {
		struct iw_device *d = &w->devices[between(w, 0, w->n_devices - 1)];
		struct iw_entry n = {.device = (unsigned)(d - w->devices),
		                     .fact = HW_FACT_OFFLINE,
		                     .wait_ms = -1,
		                     .time_ms = IW_BEGIN_MS + w->now,
		                     .seq = d->seq + 1000000};
		if (!iw_is_away(d))
			read_entry(w, &n);
	}
}

/* --- messages -------------------------------------------------------------------------------------------------------
 */

static struct iw_message *free_message(struct iw_world *w, unsigned r)
{
	for (unsigned k = 0; k < IW_MESSAGES; k++)
		if (!w->redis.sending[r][k].is)
			return &w->redis.sending[r][k];
	abort();
}

static void keep_message(struct iw_world *w, const struct hw_incident_message *m)
{
	unsigned r = m->receiver;
	struct iw_message *to = free_message(w, r);
	*to = (struct iw_message){.is = true, .number = m->number, .retry_at = w->now};
	for (size_t k = 0; k < m->n; k++) {
		if (w->lie == IW_LIE_SWALLOW && m->news[k].what == HW_NEWS_CLOSED && chance(w, 0.1))
			continue;
		to->news[to->n].what = m->news[k].what;
		to->news[to->n].kind = m->news[k].incident.kind;
		snprintf(to->news[to->n].id, sizeof(to->news->id), "%s", m->news[k].incident.id);
		snprintf(to->news[to->n++].device, sizeof(to->news->device), "%s",
		         m->news[k].incident.device ? m->news[k].incident.device : "");
	}
	if (w->receivers[r].each)
		snprintf(to->each, sizeof(to->each), "%s", m->news[0].incident.id);
	w->count.messages++;
}

/* Removes ended messages, to make room. The commit that follows contains this. */
static void forget_finished(struct iw_world *w)
{
	for (unsigned r = 0; r < w->n_receivers; r++)
		for (unsigned k = 0; k < IW_MESSAGES; k++)
			if (w->finished[r][k])
				w->redis.sending[r][k].is = w->finished[r][k] = false;
}

/* The server may already have a message that an earlier run began; the server knows it by its number. */
static void try_message(struct iw_world *w, unsigned r, unsigned k)
{
	struct iw_message *m = &w->redis.sending[r][k];
	bool fails = w->now < w->server_until[r] || (w->failing && w->now < w->quiet_from && chance(w, 0.1));
	m->tries++;
	if (fails && !(m->tries > 3 && chance(w, 0.02))) {
		m->retry_at = w->now + (m->tries < 8 ? 1000 << m->tries : 300000);
		if (!chance(w, 0.1)) /* otherwise the server has the message, and only its answer is lost */
			return;
	} else {
		w->finished[r][k] = true;
	}
	w->count.repeated += m->delivered;
	if (w->lie == IW_LIE_RENUMBER && m->delivered)
		m->delivered = false;
	if (!m->delivered)
		iw_got(w, r, m);
	m->delivered = true;
}

static void send(struct iw_world *w)
{
	for (unsigned r = 0; r < w->n_receivers; r++) {
		if (w->failing && w->now < w->quiet_from && chance(w, 0.001))
			w->server_until[r] = w->now + between(w, 10, 1500) * 1000;
		for (unsigned k = 0; k < IW_MESSAGES; k++) {
			struct iw_message *m = &w->redis.sending[r][k];
			if (!m->is || w->finished[r][k] || w->now < m->retry_at)
				continue;
			try_message(w, r, k);
			if (w->finished[r][k])
				hw_incidents_done(w->engine, iw_now(w), w->receivers[r].name, m->number);
		}
	}
}

/* --- a turn ---------------------------------------------------------------------------------------------------------
 */

static void troubles(struct iw_world *w)
{
	if (w->now >= w->quiet_from)
		return;
	if (w->lags && chance(w, 0.002))
		w->lag_until = w->now + between(w, 1, 40) * 1000;
	if (w->lags && chance(w, 0.0003))
		w->redis_until = w->now + between(w, 1, 240) * 1000;
	if (w->blindness && chance(w, 0.0003))
		w->marks_until = w->now + between(w, 10, 400) * 1000;
}

void iw_host_tick(struct iw_world *w)
{
	struct hw_incident_message m;
	if (!w->engine && w->now < w->down_until)
		return;
	if (!w->engine)
		iw_host_start(w);
	bool dies = w->restarts && w->now < w->quiet_from && chance(w, 0.002) && w->now >= w->redis_until;
	int when = (int)between(w, 0, 2);
	troubles(w);
	if (w->emptied_at && w->now >= w->emptied_at)
		empty_redis(w);
	read_streams(w);
	if (w->now / IW_TICK_MS % 2 == 0)
		tell_groups(w);
	operate(w);
	while (hw_incidents_step(w->engine, iw_now(w)))
		;
	if (w->now < w->redis_until) { /* nothing can be committed, so the host sends no news, not even of blindness */
		if (dies)
			crash(w, "without Redis");
		return;
	}
	if (dies && when == 0) {
		w->count.commits_lost++;
		crash(w, "before a commit");
		return;
	}
	forget_finished(w);
	while (hw_incidents_message(w->engine, iw_now(w), &m))
		keep_message(w, &m);
	commit(w);
	if (dies && when == 1) {
		crash(w, "before it sends");
		return;
	}
	send(w);
	if (dies)
		crash(w, "after it has sent");
}
