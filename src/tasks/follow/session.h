/* SPDX-License-Identifier: MIT */
/* Shared by the two files about sessions of followers: sessions.c stores the sessions, and session_send.c reads the
 * stream and sends. */
#ifndef HW_TASKS_SESSION_H
#define HW_TASKS_SESSION_H

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "heartwheel/bounds.h"
#include "heartwheel/json.h"
#include "heartwheel/json_writer.h"
#include "heartwheel/topic.h"
#include "link/clock.h"
#include "stream/entries.h"
#include "stream/gap.h"
#include "tasks/allow.h"
#include "tasks/app.h"
#include "tasks/follow/filter.h"
#include "tasks/follow/followers.h"
#include "tasks/follow/past.h"
#include "tasks/mqtt/message.h"

#define UNACKED      100
#define SAMPLE_EVERY 10
#define PAGE         100
#define PAGE_TEXT    "100"
#define TAIL         500
#define TAIL_TEXT    "500"
#define SESSION_TTL  "2592000" /* s: 30 days */
/* How often, in s, the list is read with several instances, or after it could not be read. */
#define LIST_S       10
#define LIST_ALONE_S 60  /* how often, in s, the list and each session are read if there is only one instance */
#define GLANCES_MAX  32  /* pages requested at a time */
#define LOADS_MAX    256 /* sessions loaded at a time */
#define ROOM         (HW_BROKER_WAITING_MAX / 2) /* the other half is left to new transitions and to tasks */
#define SLOW_MS      1000
#define BEHIND_MS    10000 /* ms to wait for history's answer, before a gap is sent */
#define AHEAD_MS     60000 /* ms: no event's id is further ahead of Redis' clock */
#define KEY_MAX      (HW_ID_MAX + 8)
#define QUOTED_MAX   (HW_ID_MAX * 6 + 3)
#define PAYLOAD_MAX  8192

/* The messages that a client has not acknowledged: their number, and the id of each tenth of them. */
struct window {
	struct hw_stream_id samples[UNACKED / SAMPLE_EVERY], last;
	unsigned n; /* after an ack of only some messages, `n` may be too great by up to nine */
};

struct session {
	struct hw_follower base;
	struct hw_tasks_sessions *all;
	struct hw_stream_id acked;
	struct hw_stream_id read; /* the last entry that was read; for a current session, `tail` if it is later */
	struct window sent;
	struct hw_stream_id oldest; /* first entry of the stream, as of the last page */
	struct hw_stream_id asked;  /* offset of the last request to history */
	int64_t sent_ms, asleep_ms; /* monotonic; sent_ms: when the wait for an ack began; asleep_ms: since when the
	                             * client is offline; 0: it is online */
	int64_t behind_ms;          /* monotonic: since when an answer of history is awaited; 0: none is awaited */
	int64_t ends_ms;            /* Redis' clock: when a session without any ack ends; 0: the session was sent
	                             * nothing yet */
	unsigned asking;            /* answers that are awaited */
	unsigned timeouts;          /* waits without an ack, in a row */
	bool known;                 /* its offset is loaded */
	bool unproven;              /* the client has acknowledged no message since it began to follow */
	bool current;
	bool begins; /* `oldest` is known */
	bool later;  /* the next tick continues */
	bool again, gone, listed;
	bool is_queued, is_loading; /* is in `glances` or `resends`; is in `loads` */
	STAILQ_ENTRY(session) queue, load_queue;
	char client[];
};
STAILQ_HEAD(queue, session);

struct hw_tasks_sessions {
	struct hw_tasks_app *app;
	struct hw_device_hook hook;
	struct hw_past *past;
	char events[160];
	struct hw_followers table;
	struct queue glances, resends; /* sessions that want a page; `resends`: the slow ones */
	struct queue loads;
	size_t n_glances, n_loads; /* pages and loads under way */
	size_t n_current;
	size_t n_new;                         /* number of clients that began to follow and are not in the table yet */
	struct hw_stream_id tail, tail_asked; /* tail: the last entry that was read for all current sessions;
	                                         tail_asked: the value of `tail` when the last page was requested */
	bool tail_due, tail_asking;
	int64_t listed_ms, left_out_ms;
	unsigned ticks;
	bool unlisted; /* the last read of the list failed */
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
	snprintf(key, OFFLINE_MAX, "%s%s", s->all->app->rules.device_prefix, s->client);
	return key;
}

static inline bool is_ours(const struct session *s)
{
	return hw_schedule_rank(s->all->app->schedule, hw_schedule_receiver(s->client, strlen(s->client))) == 0;
}

/* Called when an answer has arrived. Returns true if the session awaits no other answer and has not ended. */
static inline bool done_asking(struct session *s)
{
	s->asking--;
	return !s->gone && s->asking == 0;
}

/* Returns the last entry of the stream that was read for this session. */
static inline struct hw_stream_id read_of(const struct session *s)
{
	return s->current && hw_stream_id_compare(s->all->tail, s->read) > 0 ? s->all->tail : s->read;
}

/* Sets whether the session is current: the stream is then read for it together with the other current sessions. */
void hw_session_set_current(struct session *s, bool current);
/* Goes back to the last ack, so that messages without an ack are sent again. */
void hw_session_rewind(struct session *s);
/* hw_session_sleep(): called when the client becomes offline. hw_session_wake(): called when it becomes online. */
void hw_session_sleep(struct session *s);
void hw_session_wake(struct session *s);
/* Removes the messages up to this offset, because they are acknowledged. */
void hw_session_window_ack(struct window *w, struct hw_stream_id offset);
/* Puts a session that lags and may be sent messages into the queue for its next page. */
void hw_session_go_on(struct session *s);
/* Requests pages as long as there is room. */
void hw_sessions_pump(struct hw_tasks_sessions *f);
/* Reads the new entries of the stream for the current sessions. */
void hw_sessions_read_tail(struct hw_tasks_sessions *f);
/* Handles a transition of a device that is a follower itself. */
void hw_sessions_note_client(struct hw_tasks_sessions *f, const struct hw_device_transition *d);

#endif
