/* SPDX-License-Identifier: MIT */
/*
 * For the Python tests: the keys of heartwheel-alert in memory. Reads commands on stdin, as a client of Redis sends
 * them, and writes the answers. With an argument, prints the script of that number instead.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "alert/memory/keys.h"
#include "alert/state/script.h"

static void run(struct hw_keys *k, const redisReply *command)
{
	const char **words = calloc(command->elements + 1, sizeof(*words));
	if (!words)
		exit(1);
	for (size_t i = 0; i < command->elements; i++)
		words[i] = command->element[i]->str;
	hw_keys_run(k, command->elements, words, stdout);
	fflush(stdout);
	free(words);
}

int main(int argc, char **argv)
{
	struct hw_keys *k = hw_keys_new(1);
	redisReader *reader = redisReaderCreate();
	char bytes[65536];
	void *command;
	if (argc > 1)
		return fputs(hw_alert_script_texts[atoi(argv[1])], stdout) < 0;
	for (ssize_t n; (n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0;) {
		redisReaderFeed(reader, bytes, (size_t)n);
		while (redisReaderGetReply(reader, &command) == REDIS_OK && command) {
			run(k, command);
			freeReplyObject(command);
		}
	}
	bool failed = hw_keys_failed(k);
	redisReaderFree(reader);
	hw_keys_free(k);
	return failed;
}
