/* SPDX-License-Identifier: MIT */
/*
 * heartwheelctl top: shows the fleet live on the whole terminal. Events keep the lists up to date. The event stream
 * begins where the first answer ended, so no event is missed. The status is requested every second, other data less
 * often. Signals are read from a descriptor, so no signal interrupts drawing. The terminal is restored at the end,
 * except after SIGKILL.
 */
#include <errno.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "ctl/ctl.h"
#include "ctl/events.h"
#include "ctl/live.h"
#include "ctl/top_view.h"

#define DRAW_MS  100 /* minimal time between two drawings */
#define TICK_MS  1000
#define LOST_MS  3000 /* without an answer: the loss is shown */
#define RETRY_MS 1000

enum ask { ASK_STATUS, ASK_GROUPS, ASK_TASKS, ASK_INCIDENTS, ASK_LIST, ASK_TRANSITIONS, ASK_DEVICE, ASK_LATELY, ASKS };
static const int64_t periods_ms[ASKS] = {1000, 1000, 5000, 2000, 1000, 1000, 1000, 2000};

struct top {
	struct hw_ctl *ctl;
	struct hw_live *live;
	struct hw_board board;
	struct hw_top_view view;
	struct hw_event_read event;
	int64_t due_ms[ASKS]; /* earliest time of the next request */
	int64_t answered_ms;  /* time of the last status */
	int64_t follow_ms;    /* time to open the stream again */
	int64_t drawn_ms;
	bool begun;   /* the transitions before the stream were received */
	bool changed; /* the screen must be drawn */
	bool over;
	int signal;  /* the signal that ends the program; 0: none */
	int signals; /* descriptor */
};

static int64_t mono_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- answers */

static void on_device(struct top *t, long code, cJSON *json)
{
	t->view.gone = code == 404;
	/* An answer about a device that is no longer selected is dropped. */
	if (code == 200 && strcmp(hw_member_text(json, "id"), t->view.chosen) == 0)
		hw_board_put(&t->board.device, json);
	else
		cJSON_Delete(json);
}

/* Begins to follow the stream after the newest id of this answer. The stream may repeat transitions of the answer
 * that have no id yet, or that are newer. So all transitions of the answer are remembered. */
static void begin(struct top *t, cJSON *answer)
{
	const cJSON *each;
	cJSON_ArrayForEach(each, cJSON_GetObjectItemCaseSensitive(answer, "transitions"))
	{
		if (!*t->event.last && hw_member_has(each, "event_id"))
			snprintf(t->event.last, sizeof(t->event.last), "%s", hw_member_text(each, "event_id"));
		hw_event_note(&t->event, each);
	}
	hw_board_transitions(&t->board, answer);
	cJSON_Delete(answer);
	t->begun = true;
}

static void on_answer(void *arg, unsigned ask, long code, cJSON *json)
{
	struct top *t = arg;
	bool good = code == 200 && json;
	t->changed = true;
	if (ask == ASK_DEVICE) {
		on_device(t, code, json);
	} else if (ask == ASK_TASKS || ask == ASK_INCIDENTS) {
		hw_board_put(ask == ASK_TASKS ? &t->board.tasks : &t->board.incidents, good ? json : NULL);
		if (!good)
			cJSON_Delete(json);
	} else if (!good) {
		cJSON_Delete(json);
	} else if (ask == ASK_STATUS) {
		t->answered_ms = mono_ms();
		hw_board_status(&t->board, json);
	} else if (ask == ASK_LIST) {
		hw_board_list(&t->board, json);
	} else if (ask == ASK_TRANSITIONS) {
		begin(t, json);
	} else {
		hw_board_put(ask == ASK_GROUPS ? &t->board.groups : &t->board.lately, json);
	}
}

static void on_line(void *arg, const char *line)
{
	struct top *t = arg;
	t->view.feed_lost = false;
	if (!hw_event_read_line(&t->event, line))
		return;
	t->changed = true;
	if (strcmp(t->event.name, "reset") == 0) {
		t->board.stale = true;
		return;
	}
	if (strcmp(t->event.name, "sight") == 0)
		t->due_ms[ASK_STATUS] = 0;
	cJSON *device = hw_event_transition(&t->event);
	if (device)
		hw_board_transition(&t->board, device);
}

static void on_end(void *arg, long code)
{
	struct top *t = arg;
	(void)code;
	hw_event_read_drop(&t->event);
	t->view.feed_lost = true;
	t->follow_ms = mono_ms() + RETRY_MS;
	t->board.stale = true;
}

static const struct hw_live_ops ops = {on_answer, on_line, on_end};

/* --- what it is asked */

static struct hw_path list_path(const struct hw_board *b)
{
	static const char *const states[HW_VIEWS] = {"&state=offline", "", "&state=online"};
	struct hw_path path = {0};
	hw_path_add(&path, "/v1/devices?limit=1000&sort=newest");
	hw_path_add(&path, states[b->view]);
	if (*b->search) {
		hw_path_add(&path, "&search=");
		hw_path_add_encoded(&path, b->search);
	}
	return path;
}

static struct hw_path ask_path(const struct top *t, unsigned ask)
{
	static const char *const paths[ASKS] = {[ASK_STATUS] = "/v1/status",
	                                        [ASK_GROUPS] = "/v1/groups",
	                                        [ASK_TASKS] = "/v1/tasks/status",
	                                        [ASK_INCIDENTS] = "/v1/incidents?limit=6",
	                                        [ASK_TRANSITIONS] = "/v1/transitions?limit=1000"};
	struct hw_path path = {0};
	if (ask == ASK_LIST)
		return list_path(&t->board);
	if (ask == ASK_DEVICE || ask == ASK_LATELY)
		path = hw_device_path(t->view.chosen);
	hw_path_add(&path, ask == ASK_LATELY ? "/events?limit=50" : ask == ASK_DEVICE ? "" : paths[ask]);
	return path;
}

static bool is_wanted(const struct top *t, unsigned ask)
{
	switch (ask) {
	case ASK_LIST:
		return t->board.stale;
	case ASK_TRANSITIONS:
		return !t->begun;
	case ASK_DEVICE:
	case ASK_LATELY:
		return t->view.open;
	default:
		return true;
	}
}

/* Sends the requests that are due. Returns in how many ms the next one is due. */
static int64_t ask_all(struct top *t, int64_t now_ms)
{
	int64_t next_ms = TICK_MS;
	for (unsigned ask = 0; ask < ASKS; ask++) {
		if (!is_wanted(t, ask))
			continue;
		if (t->due_ms[ask] <= now_ms) {
			struct hw_path path = ask_path(t, ask);
			t->due_ms[ask] = now_ms + periods_ms[ask];
			/* If something changes while the request is open, the list becomes stale again. */
			if (path.text && hw_live_ask(t->live, ask, t->ctl->socket, path.text) == 0 && ask == ASK_LIST)
				t->board.stale = false;
			hw_path_fini(&path);
		}
		next_ms = t->due_ms[ask] - now_ms < next_ms ? t->due_ms[ask] - now_ms : next_ms;
	}
	if (t->begun && !hw_live_follows(t->live) && t->follow_ms <= now_ms)
		hw_live_follow(t->live, t->ctl->socket, "/v1/events", t->event.last);
	return next_ms;
}

/* --- keys */

static void show(struct top *t, enum hw_board_view view, const char *search)
{
	hw_board_show(&t->board, view, search);
	hw_top_view_home(&t->view);
	t->due_ms[ASK_LIST] = 0;
}

/* Adds a letter to the search, or removes one. */
static void type_search(struct top *t, wint_t c, bool is_key)
{
	char search[HW_BOARD_SEARCH], letter[MB_LEN_MAX];
	size_t n = strlen(strcpy(search, t->board.search)), len;
	mbstate_t state = {0};
	if (is_key ? c == KEY_ENTER : c == '\r' || c == '\n') {
		t->view.typing = false;
		return;
	}
	if (!is_key && c == 27) {
		t->view.typing = false;
		n = 0;
	} else if (is_key ? c == KEY_BACKSPACE : c == 127 || c == 8) {
		while (n > 0 && (search[--n] & 0xc0) == 0x80)
			continue;
	} else if (!is_key && c >= 32 && (len = wcrtomb(letter, (wchar_t)c, &state)) != (size_t)-1 &&
	           n + len < sizeof(search)) {
		memcpy(search + n, letter, len);
		n += len;
	}
	search[n] = '\0';
	show(t, t->board.view, search);
}

static void open_device(struct top *t, bool open)
{
	const struct hw_board *b = &t->board;
	if (open && b->n_rows == 0)
		return;
	hw_top_view_move(&t->view, b, 0); /* opening chooses the first row if none is chosen */
	t->view.open = open;
	t->view.gone = false;
	t->due_ms[ASK_DEVICE] = t->due_ms[ASK_LATELY] = 0;
	hw_board_put(&t->board.device, NULL);
	hw_board_put(&t->board.lately, NULL);
}

static void move_choice(struct top *t, long by)
{
	hw_top_view_move(&t->view, &t->board, by);
	if (t->view.open)
		open_device(t, true);
}

static void on_letter(struct top *t, wint_t c)
{
	switch (c) {
	case 'q':
	case 27:
		if (t->view.open)
			open_device(t, false);
		else if (c == 'q')
			t->over = true;
		else
			show(t, t->board.view, "");
		break;
	case '/':
		t->view.typing = !t->view.open;
		break;
	case 'a':
		if (!t->view.open)
			show(t, (t->board.view + 1) % HW_VIEWS, t->board.search);
		break;
	case 'j':
		move_choice(t, 1);
		break;
	case 'k':
		move_choice(t, -1);
		break;
	case '\r':
	case '\n':
		if (!t->view.open)
			open_device(t, true);
		break;
	case 'L' & 31:
		clearok(stdscr, TRUE);
		break;
	default:
		break;
	}
}

static void on_key(struct top *t, wint_t c)
{
	long page = t->view.page > 1 ? (long)t->view.page : 1;
	switch (c) {
	case KEY_UP:
		move_choice(t, -1);
		break;
	case KEY_DOWN:
		move_choice(t, 1);
		break;
	case KEY_PPAGE:
		move_choice(t, -page);
		break;
	case KEY_NPAGE:
		move_choice(t, page);
		break;
	case KEY_HOME:
		if (t->view.open)
			move_choice(t, -HW_BOARD_ROWS);
		else
			hw_top_view_home(&t->view);
		break;
	case KEY_END:
		move_choice(t, HW_BOARD_ROWS);
		break;
	case KEY_ENTER:
		on_letter(t, '\r');
		break;
	default:
		break;
	}
}

static void read_keys(struct top *t)
{
	wint_t c;
	int rc;
	while (!t->over && (rc = get_wch(&c)) != ERR) {
		t->changed = true;
		if (t->view.typing)
			type_search(t, c, rc == KEY_CODE_YES);
		else if (rc == KEY_CODE_YES)
			on_key(t, c);
		else
			on_letter(t, c);
	}
}

/* --- signals */

static void signals_of(sigset_t *set)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(set, all[i]);
}

/* Applies the default action of a signal. */
static void obey(int number)
{
	sigset_t one;
	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL); /* continued by SIGCONT */
}

static void resize(struct top *t)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
	t->changed = true;
}

/* Restores the modes and the size of the screen, because another program may have changed them. */
static void resume(struct top *t)
{
	reset_prog_mode();
	curs_set(0);
	resize(t);
}

static void read_signals(struct top *t)
{
	struct signalfd_siginfo info;
	while (read(t->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGTSTP:
			hw_top_view_end();
			obey(SIGTSTP); /* does nothing without a shell that can continue it */
			resume(t);
			break;
		case SIGCONT:
			resume(t);
			break;
		case SIGWINCH:
			resize(t);
			break;
		default:
			t->signal = (int)info.ssi_signo;
			t->over = true;
			break;
		}
	}
}

/* Whether the terminal has hung up. Its descriptor is then always readable, and a read returns nothing. */
static bool terminal_is_gone(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* --- the loop */

static void draw(struct top *t, int64_t now_ms)
{
	int64_t silent_ms = now_ms - t->answered_ms;
	if (now_ms - t->drawn_ms < (t->changed ? DRAW_MS : TICK_MS))
		return;
	t->view.lost_ms = silent_ms >= LOST_MS ? silent_ms : 0;
	hw_top_view_draw(&t->view, &t->board);
	t->drawn_ms = now_ms;
	t->changed = false;
}

static int turn(struct top *t)
{
	const int fds[2] = {STDIN_FILENO, t->signals};
	int64_t now_ms = mono_ms();
	int64_t next_ms = ask_all(t, now_ms), drawing_ms = t->drawn_ms + (t->changed ? DRAW_MS : TICK_MS) - now_ms;
	next_ms = drawing_ms < next_ms ? drawing_ms : next_ms;
	if (hw_live_wait(t->live, fds, next_ms > 0 ? (int)next_ms : 0) < 0)
		return -ENOMEM;
	read_signals(t);
	read_keys(t);
	t->over |= terminal_is_gone();
	if (!t->over)
		draw(t, mono_ms());
	return 0;
}

static int run(struct top *t)
{
	sigset_t set;
	int rc = 0;
	signals_of(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (t->signals < 0 || !(t->live = hw_live_new(&ops, t)))
		return hw_failed(t->ctl, "out of memory");
	if (!hw_top_view_begin(&t->view)) {
		const char *kind = getenv("TERM");
		return hw_failed(t->ctl,
		                 "top cannot draw on a terminal of type '%s' (TERM); status, list and watch work there",
		                 kind ? kind : "");
	}
	t->answered_ms = mono_ms();
	while (!t->over && rc == 0)
		rc = turn(t);
	hw_top_view_end();
	if (t->signal)
		obey(t->signal);
	return rc < 0 ? hw_failed(t->ctl, "%s", strerror(-rc)) : HW_EXIT_DONE;
}

int hw_cmd_top(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	(void)args;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return hw_failed(ctl, "top needs a terminal; status, list and watch work without one");
	struct top *t = calloc(1, sizeof(*t));
	if (!t)
		return hw_failed(ctl, "out of memory");
	/* If the daemon cannot be reached, reports that like other commands, before the screen is cleared. */
	int rc = hw_ask(ctl, "GET", "/v1/status", 200, &a);
	if (rc == 0) {
		t->ctl = ctl;
		t->signals = -1;
		hw_board_init(&t->board);
		t->board.status = a.json;
		rc = run(t);
		hw_live_free(t->live);
		hw_board_fini(&t->board);
		hw_event_read_fini(&t->event);
		if (t->signals >= 0)
			close(t->signals);
	}
	free(t);
	return rc;
}
