/* SPDX-License-Identifier: MIT */
/*
 * The control API over its real socket and a real event base, in this process. Input: one byte that gives the number of
 * pieces into which the rest is cut; the rest is what a client sends before it ends. Afterwards the server must answer
 * a correct client, and the devices that are left must be consistent.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"
#include "fuzz.h"
#include "http/json.h"

static char dir[] = "/tmp/hw-fuzz-http-XXXXXX";

struct world {
	char path[64];
	struct event_base *base;
	struct hw_monitor *monitor;
	struct hw_control *control;
	struct hw_now now;
};

static struct hw_now op_now(void *arg)
{
	return ((struct world *)arg)->now;
}

static void op_status(void *arg, struct hw_control_status *out)
{
	(void)arg;
	*out = (struct hw_control_status){
		.node = "n", .version = "0", .uptime_s = 1, .mqtt_up = true, .mqtt = "up", .redis = "off"};
}

static enum hw_forgotten op_forget(void *arg, uint64_t ticket, const char *id, size_t len)
{
	struct world *w = arg;
	(void)ticket;
	return hw_monitor_forget(w->monitor, w->now, id, len) ? HW_FORGOTTEN : HW_FORGOTTEN_UNKNOWN;
}

static int op_reload(void *arg, struct evbuffer *body)
{
	(void)arg;
	evbuffer_add_printf(body, "{\"changed\":[],\"restart_needed\":[]}");
	return 200;
}

static void op_metrics(void *arg, struct evbuffer *body)
{
	(void)arg;
	evbuffer_add_printf(body, "# TYPE heartwheel_more gauge\nheartwheel_more 1\n");
}

static const struct hw_control_ops ops = {
	.now = op_now, .status = op_status, .forget = op_forget, .reload = op_reload, .metrics = op_metrics};

static void start(struct world *w)
{
	static const char *const heartbeat[] = {"nodes/{id}/heartbeat"};
	static const char *const ids[] = {"a", "a/b", "pump 7", "\xc3\xa4", "z%"};
	const struct hw_group_spec group = {.name = "default",
	                                    .heartbeat = heartbeat,
	                                    .n_heartbeat = 1,
	                                    .timeout_ms = 30000,
	                                    .timeout_max_ms = 86400000};
	const struct hw_monitor_conf conf = {
		.max_devices = 100, .barrier_slow_ms = 250, .barrier_timeout_ms = 5000, .readers = 1, .ttl_factor = 3};
	const uint8_t key[16] = "sixteen bytes..";
	struct hw_out out;
	unsigned budget = 1000;
	w->now = (struct hw_now){.mono = {1000 * HW_NS_PER_S}, .wall_ms = INT64_C(1700000000000)};
	w->base = event_base_new();
	w->monitor = hw_monitor_new(&conf, &group, 1, key, w->now);
	MUST(w->base && w->monitor);
	snprintf(w->path, sizeof(w->path), "%s/s", dir);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		hw_monitor_heartbeat(w->monitor, w->now, 0, ids[i], strlen(ids[i]), NULL);
	while (hw_monitor_next(w->monitor, w->now, &budget, &out))
		;
	MUST(hw_control_new(&w->control, w->base, w->path, "", w->monitor, &ops, w) == 0);
}

static void stop(struct world *w)
{
	hw_control_free(w->control);
	hw_monitor_free(w->monitor);
	event_base_free(w->base);
}

static void turn(struct world *w)
{
	event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static int connect_to(const struct world *w)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(sa.sun_path, w->path, strlen(w->path) + 1);
	MUST(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

/* What has come, up to `cap`; false once the server has closed. */
static bool drain(int fd, char *to, size_t *len, size_t cap)
{
	char bytes[16384];
	for (;;) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		size_t room = cap - *len, take = (size_t)n < room ? (size_t)n : room;
		memcpy(to + *len, bytes, take);
		*len += take;
	}
}

/* Sends in `pieces`, turning the loop after each, and takes what comes back. */
static size_t talk(struct world *w, const char *bytes, size_t size, size_t pieces, char *answer, size_t cap)
{
	int fd = connect_to(w);
	size_t len = 0, piece = size / pieces + 1;
	bool open = true;
	for (size_t sent = 0; sent < size && open;) {
		size_t want = size - sent < piece ? size - sent : piece;
		ssize_t n = send(fd, bytes + sent, want, MSG_NOSIGNAL);
		open = n > 0 || errno == EAGAIN;
		sent += n > 0 ? (size_t)n : 0;
		turn(w);
		open = drain(fd, answer, &len, cap) && open;
	}
	shutdown(fd, SHUT_WR);
	size_t before = len + 1;
	for (int idle = 0; open && idle < 8; idle = before == len ? idle + 1 : 0) {
		before = len;
		turn(w);
		open = drain(fd, answer, &len, cap);
	}
	close(fd);
	turn(w);
	return len;
}

static void check_answer(const char *answer, size_t len)
{
	MUST(len == 0 || (len >= 12 && memcmp(answer, "HTTP/", 5) == 0));
	MUST(!memmem(answer, len, "</HTML>", 7)); /* all errors are JSON */
}

static void check_devices(const struct world *w)
{
	struct hw_registry *r = hw_monitor_registry(w->monitor);
	for (uint32_t i = 0; i < hw_registry_bound(r); i++) {
		const struct hw_device *d = hw_registry_at(r, i);
		if (!d)
			continue;
		struct hw_id id = hw_device_id(d);
		MUST(hw_registry_find(r, id.text, id.len) == i);
	}
}

static void remove_dir(void)
{
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char polite[] = "GET /v1/devices?limit=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	static char answer[65536];
	static bool ready; /* of the process, not of an input */
	struct world w;
	if (!ready) {
		signal(SIGPIPE, SIG_IGN);
		MUST(mkdtemp(dir) && atexit(remove_dir) == 0);
		ready = true;
	}
	if (size == 0)
		return 0;
	start(&w);
	size_t len = talk(&w, (const char *)data + 1, size - 1, (size_t)data[0] % 8 + 1, answer, sizeof(answer));
	check_answer(answer, len);
	check_devices(&w);
	len = talk(&w, polite, sizeof(polite) - 1, 1, answer, sizeof(answer));
	MUST(len > 15 && memcmp(answer, "HTTP/1.1 200 OK", 15) == 0);
	stop(&w);
	return 0;
}
