/* SPDX-License-Identifier: MIT */
/* A device that takes tasks of heartwheel-tasks: device NAME [HOST [PORT]].
 *
 *     cc -o device device.c -lmosquitto -lcjson
 *
 * It remembers the last TASKS of them; a real device keeps them over a restart, until their exp. */
#include <cjson/cJSON.h>
#include <mosquitto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASKS = 64 };

static struct done {
	char msg_id[64];
	const char *word;
	char *said; /* the whole answer */
} done[TASKS];
static unsigned n_done;
static const char *name;

static struct done *find(const char *msg_id)
{
	for (unsigned i = 0; i < TASKS; i++)
		if (strcmp(done[i].msg_id, msg_id) == 0)
			return &done[i];
	return NULL;
}

static void say(struct mosquitto *m, const char *sender, const struct done *d)
{
	char topic[512];
	snprintf(topic, sizeof(topic), "nodes/%s/%s/%s", sender, d->word, name);
	mosquitto_publish(m, NULL, topic, (int)strlen(d->said), d->said, 1, false);
}

static void answer(struct mosquitto *m, const char *sender, struct done *d, const char *word, const char *member,
                   cJSON *what)
{
	cJSON *body = cJSON_CreateObject();
	cJSON_AddStringToObject(body, "msg_id", d->msg_id);
	if (what)
		cJSON_AddItemToObject(body, member, what);
	free(d->said);
	d->word = word;
	d->said = cJSON_PrintUnformatted(body);
	cJSON_Delete(body);
	if (d->said)
		say(m, sender, d);
}

/* What the device is there for. Returns what it tells, or NULL. */
static cJSON *carry_out(const char *action, const cJSON *payload)
{
	const cJSON *number;
	double sum = 0;
	if (strcmp(action, "add") != 0)
		return NULL;
	cJSON_ArrayForEach(number, payload) sum += number->valuedouble;
	cJSON *value = cJSON_CreateObject();
	cJSON_AddNumberToObject(value, "sum", sum);
	return value;
}

static void take(struct mosquitto *m, const cJSON *task)
{
	const char *sender = cJSON_GetStringValue(cJSON_GetObjectItem(task, "sender"));
	const char *msg_id = cJSON_GetStringValue(cJSON_GetObjectItem(task, "msg_id"));
	const char *action = cJSON_GetStringValue(cJSON_GetObjectItem(task, "action"));
	const cJSON *exp = cJSON_GetObjectItem(task, "exp");
	if (!sender || !msg_id || !action || strlen(msg_id) >= sizeof(done->msg_id) ||
	    (cJSON_IsNumber(exp) && exp->valuedouble < (double)time(NULL)))
		return;
	struct done *d = find(msg_id);
	if (d) { /* again: our answer was lost */
		say(m, sender, d);
		return;
	}
	d = &done[n_done++ % TASKS];
	snprintf(d->msg_id, sizeof(d->msg_id), "%s", msg_id);
	answer(m, sender, d, "ack", NULL, NULL);
	cJSON *value = carry_out(action, cJSON_GetObjectItem(task, "payload"));
	if (value)
		answer(m, sender, d, "complete", "value", value);
	else
		answer(m, sender, d, "failed", "error", cJSON_CreateString("no such action"));
}

static void on_message(struct mosquitto *m, void *arg, const struct mosquitto_message *message)
{
	(void)arg;
	cJSON *task = cJSON_ParseWithLength(message->payload, (size_t)message->payloadlen);
	if (task)
		take(m, task);
	cJSON_Delete(task);
}

static void on_subscribe(struct mosquitto *m, void *arg, int mid, int n, const int *granted)
{
	(void)m, (void)arg, (void)mid, (void)n, (void)granted;
	puts("ready");
	fflush(stdout);
}

static void on_connect(struct mosquitto *m, void *arg, int rc)
{
	char topic[512];
	(void)arg;
	snprintf(topic, sizeof(topic), "nodes/%s/pending", name);
	if (rc == 0)
		mosquitto_subscribe(m, NULL, topic, 1);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	name = argv[1];
	mosquitto_lib_init();
	struct mosquitto *m = mosquitto_new(name, false, NULL);
	if (!m)
		return 1;
	mosquitto_connect_callback_set(m, on_connect);
	mosquitto_subscribe_callback_set(m, on_subscribe);
	mosquitto_message_callback_set(m, on_message);
	if (mosquitto_connect(m, argc > 2 ? argv[2] : "127.0.0.1", argc > 3 ? atoi(argv[3]) : 1883, 30))
		return 1;
	return mosquitto_loop_forever(m, -1, 1) ? 1 : 0;
}
