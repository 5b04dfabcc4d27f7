/* SPDX-License-Identifier: MIT */
/* What the two halves of the followers' sessions share: sessions.c keeps them, session_send.c reads and sends. */
#ifndef HW_TASKS_SESSION_H
#define HW_TASKS_SESSION_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "heartwheel/bounds.h"
#include "heartwheel/json.h"
#include "heartwheel/report.h"
#include "heartwheel/topic.h"
#include "link/clock.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/filter.h"
#include "tasks/followers.h"
#include "tasks/message.h"
#include "tasks/past.h"
#include "tasks/place.h"

#define UNACKED      100
#define MARK_EVERY   10
#define PAGE         100
#define PAGE_TEXT    "100"
#define TAIL         500
#define TAIL_TEXT    "500"
#define SESSION_TTL  "2592000" /* s: 30 days */
#define LIST_S       10        /* with several instances, and when the list could not be read */
#define LIST_ALONE_S 60        /* an instance that is alone: the list, and each session, are read again so often */
#define GLANCES_MAX  32        /* pages that are asked for at a time */
#define LOADS_MAX    256       /* sessions that are loaded at a time */
#define ROOM         (HW_BROKER_WAITING_MAX / 2) /* the other half is left to transitions as they come, and to tasks */
#define SLOW_MS      1000
#define BEHIND_MS    10000 /* so long history may have nothing new of what was trimmed */
#define AHEAD_MS     60000 /* of Redis' clock: no event has such an id */
#define KEY_MAX      (HW_ID_MAX + 8)
#define QUOTED_MAX   (HW_ID_MAX * 6 + 3)
#define PAYLOAD_MAX  8192

/* What is sent and not acknowledged: how many, and the id of each tenth. */
struct window {
	struct hw_place marks[UNACKED / MARK_EVERY], last;
	unsigned n; /* up to nine more than there are, after an ack of a part */
};

struct session {
	struct hw_follower base;
	struct hw_tasks_sessions *all;
	struct hw_place acked;
	struct hw_place read; /* of one that is current: or the tail, if that is later */
	struct window sent;
	struct hw_place oldest;     /* entry of the stream, as it was asked for last */
	struct hw_place asked;      /* of history: what lies behind it */
	int64_t sent_ms, asleep_ms; /* monotonic: the first of `sent`; since when it is known offline, 0: it is not */
	int64_t behind_ms;          /* monotonic: since when history is asked in vain; 0: it is not */
	int64_t ends_ms;            /* Redis' clock: when an unproven one ends; 0: nothing was sent to it */
	unsigned asking;            /* answers that are awaited */
	unsigned timeouts;          /* how often in a row nothing was acknowledged */
	bool known;                 /* its place was read */
	bool unproven;              /* it has acknowledged nothing since it followed */
	bool current;
	bool begins; /* `oldest` was */
	bool later;  /* the next tick goes on */
	bool again, gone, listed;
	bool is_queued, is_loading; /* it waits for its turn in `glances`, in `loads` */
	STAILQ_ENTRY(session) queue, load_queue;
	char client[];
};
STAILQ_HEAD(queue, session);

struct hw_tasks_sessions {
	struct hw_tasks_app *app;
	struct hw_stream_hook hook;
	struct hw_past *past;
	char events[160];
	struct hw_followers table;
	struct queue glances, resends; /* that want a page; the second ones are slow */
	struct queue loads;
	size_t n_glances, n_loads; /* under way */
	size_t n_current;
	size_t n_new;                     /* that have asked to follow and stand in the table soon */
	struct hw_place tail, tail_asked; /* of the current ones */
	bool tail_due, tail_asking;
	int64_t listed_ms, left_out_ms;
	unsigned ticks;
	bool unlisted; /* the list could not be read */
};

static inline int64_t now_ms(void)
{
	return hw_clock_mono().ns / HW_NS_PER_MS;
}

static inline bool is(struct hw_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

static inline const char *key_of(const char *kind, const char *client, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "s:%s:%s", kind, client);
	return key;
}

static inline const char *list_key(const struct hw_tasks_sessions *f, char key[HW_TASKS_KEY_MAX])
{
	return hw_tasks_store_key(f->app->store, "follow", key);
}

static inline int ask(struct hw_tasks_sessions *f, hw_tasks_answer_fn *fn, void *arg, const char *const *words)
{
	return hw_tasks_store_ask(f->app->store, fn, arg, words);
}

static inline const char *new_key(const struct hw_tasks_sessions *f, char key[HW_TASKS_KEY_MAX])
{
	return hw_tasks_store_key(f->app->store, "follow:new", key);
}

static inline struct session *first_of(const struct hw_tasks_sessions *f)
{
	return (struct session *)f->table.first;
}

static inline struct session *next_of(const struct session *s)
{
	return (struct session *)s->base.next;
}

static inline struct session *find(const struct hw_tasks_sessions *f, struct hw_text client)
{
	struct session *s = (struct session *)hw_followers_find(&f->table, client);
	return s && !s->gone ? s : NULL;
}

#define OFFLINE_MAX (HW_ID_MAX + 300)
static inline const char *offline_key(const struct session *s, char key[OFFLINE_MAX])
{
	snprintf(key, OFFLINE_MAX, "%s%s", s->all->app->device_prefix, s->client);
	return key;
}

static inline bool is_ours(const struct session *s)
{
	return hw_schedule_rank(s->all->app->schedule, hw_schedule_receiver(s->client, strlen(s->client))) == 0;
}

static inline void quote(struct hw_text t, char out[QUOTED_MAX])
{
	if (hw_json_quote(t.len ? t.at : "", t.len, out, QUOTED_MAX) >= QUOTED_MAX)
		snprintf(out, QUOTED_MAX, "\"\"");
}

/* An answer has come. Whether it is the last that is awaited, of a session that is not over. */
static inline bool done_asking(struct session *s)
{
	s->asking--;
	return !s->gone && s->asking == 0;
}

/* How far it has read. */
static inline struct hw_place read_of(const struct session *s)
{
	return s->current && hw_place_cmp(s->all->tail, s->read) > 0 ? s->all->tail : s->read;
}

/* Whether it reads the stream with the others. */
void hw_session_set_current(struct session *s, bool current);
/* It is sent again what was not acknowledged. */
void hw_session_rewind(struct session *s);
/* Its client is known offline; not any more. */
void hw_session_sleep(struct session *s);
void hw_session_wake(struct session *s);
/* All up to this place is acknowledged. */
void hw_session_window_ack(struct window *w, struct hw_place place);
/* Asks for its next page, in its turn, if it lags and may be sent something. */
void hw_session_go_on(struct session *s);
/* Asks for pages as long as there is room. */
void hw_sessions_pump(struct hw_tasks_sessions *f);
/* There may be news for those that are current. */
void hw_sessions_read_tail(struct hw_tasks_sessions *f);
/* A transition of a client that is a device itself. */
void hw_sessions_note_client(struct hw_tasks_sessions *f, const struct hw_device_transition *d);

#endif
