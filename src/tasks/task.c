/* SPDX-License-Identifier: MIT */
/* The names of states, and the names of tasks. A task's name is the hash of a text that begins with the length of
 * the sender. So no two pairs of sender and msg_id give the same text. */
#include "tasks/task.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[HW_TASK_STATES] = {
	[HW_TASK_SCHEDULED] = "scheduled", [HW_TASK_HELD] = "held",          [HW_TASK_SENT] = "sent",
	[HW_TASK_ACKED] = "acked",         [HW_TASK_COMPLETE] = "complete",  [HW_TASK_FAILED] = "failed",
	[HW_TASK_EXPIRED] = "expired",     [HW_TASK_CANCELLED] = "cancelled"};

const char *hw_task_state_name(enum hw_task_state s)
{
	return s < HW_TASK_STATES ? state_names[s] : "unknown";
}

enum hw_task_state hw_task_state_of(const char *name, size_t len)
{
	enum hw_task_state s = HW_TASK_SCHEDULED;
	while (s < HW_TASK_STATES && (strlen(state_names[s]) != len || memcmp(name, state_names[s], len) != 0))
		s++;
	return s;
}

/* Makes a UUID of a digest. By RFC 9562, section 5.8, all bits except those of version and variant, 122 bits, may be
 * chosen freely. */
static void make_uuid(struct hw_task_id *id, const unsigned char *digest)
{
	memcpy(id->bytes, digest, sizeof(id->bytes));
	id->bytes[6] = (uint8_t)((id->bytes[6] & 0x0f) | 0x80);
	id->bytes[8] = (uint8_t)((id->bytes[8] & 0x3f) | 0x80);
}

int hw_task_name(struct hw_task_id *id, const unsigned char secret[HW_TASKS_SECRET_LEN], struct hw_text sender,
                 struct hw_text msg_id)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	size_t len = 8 + sender.len + msg_id.len;
	unsigned char *text = malloc(len);
	if (!text)
		return -ENOMEM;
	for (unsigned k = 0; k < 8; k++)
		text[k] = (unsigned char)((uint64_t)sender.len >> 8 * k);
	if (sender.len)
		memcpy(text + 8, sender.at, sender.len);
	if (msg_id.len)
		memcpy(text + 8 + sender.len, msg_id.at, msg_id.len);
	bool done = HMAC(EVP_sha256(), secret, HW_TASKS_SECRET_LEN, text, len, digest, &digest_len) != NULL;
	free(text);
	if (!done || digest_len < sizeof(id->bytes))
		return -ENOMEM;
	make_uuid(id, digest);
	return 0;
}
