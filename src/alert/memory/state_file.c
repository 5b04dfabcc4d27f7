/* SPDX-License-Identifier: MIT */
/* See state_file.h. The file contains the commands that create the keys: for each command an array of words. Cost of a
 * write: all keys, and two fsync(). */
#include "alert/memory/state_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alert/memory/keys.h"
#include "http/json.h"

#define NAME      "heartwheel_alert_state" /* a member of the file's object: its version */
#define VERSION   1
#define SIZE_MAX_ (1 << 30)

struct hw_state_file {
	const char *path; /* borrowed */
	int lock;
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Carries out a command of the file. Returns false if it is none. */
static bool run(struct hw_keys *k, const cJSON *command)
{
	int n = cJSON_GetArraySize(command), at = 0;
	const char **words = n > 0 ? calloc((size_t)n, sizeof(*words)) : NULL;
	const cJSON *word;
	bool right = words != NULL;
	cJSON_ArrayForEach(word, command)
	{
		right = right && cJSON_IsString(word);
		if (right)
			words[at++] = word->valuestring;
	}
	if (right)
		hw_keys_run(k, (size_t)n, words, NULL);
	free(words);
	return right;
}

static bool read_keys(struct hw_keys *k, const cJSON *file)
{
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(file, NAME), *command;
	const cJSON *keys = cJSON_GetObjectItemCaseSensitive(file, "keys");
	bool right = cJSON_IsNumber(version) && version->valuedouble == VERSION && cJSON_IsArray(keys);
	cJSON_ArrayForEach(command, keys) right = right && run(k, command);
	return right;
}

/* Returns the file's text with a NUL at its end; NULL with errno. */
static char *read_text(int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return NULL;
	errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
	char *text = S_ISREG(st.st_mode) && st.st_size < SIZE_MAX_ ? malloc((size_t)st.st_size + 1) : NULL;
	size_t len = 0;
	for (ssize_t n = 1; text && n != 0; len += n > 0 ? (size_t)n : 0) {
		n = read(fd, text + len, (size_t)st.st_size - len);
		if (n < 0 && errno != EINTR) {
			free(text);
			return NULL;
		}
	}
	if (text)
		text[len] = '\0';
	return text;
}

/* Returns 0 or -errno. */
static int load(const char *path, struct hw_keys *k, char *why, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = errno;
	char *text = fd >= 0 ? read_text(fd) : NULL;
	error = fd >= 0 ? errno : error;
	if (fd >= 0)
		close(fd);
	if (!text) {
		snprintf(why, cap, "%s: %s", path, strerror(error));
		return -error;
	}
	cJSON *file = cJSON_ParseWithOpts(text, NULL, 1);
	int rc = read_keys(k, file) && !hw_keys_failed(k) ? 0 : -EBADMSG;
	if (rc)
		snprintf(
			why, cap,
			"%s is damaged, or no state of heartwheel-alert that this version can read, or larger than the "
			"memory: put a copy back, or move the file away to begin without incidents",
			path);
	cJSON_Delete(file);
	free(text);
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static struct evbuffer *text_of(const struct hw_keys *k)
{
	struct evbuffer *text = evbuffer_new();
	struct hw_json j;
	if (!text)
		return NULL;
	hw_json_begin(&j, text);
	hw_json_open(&j, '{');
	hw_json_int(&j, NAME, VERSION);
	hw_json_open_member(&j, "keys", '[');
	hw_keys_write(k, &j);
	hw_json_close(&j, ']');
	hw_json_close(&j, '}');
	if (hw_json_end(&j) == 0 && evbuffer_add(text, "\n", 1) == 0)
		return text;
	evbuffer_free(text);
	return NULL;
}

/* Returns 0 or -errno. */
static int write_text(const char *path, struct evbuffer *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640), rc = fd < 0 ? -errno : 0;
	while (rc == 0 && evbuffer_get_length(text) > 0)
		if (evbuffer_write(text, fd) < 0 && errno != EINTR)
			rc = -errno;
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

/* Makes the renaming durable. Returns 0 or -errno. */
static int sync_folder(const char *path)
{
	char copy[PATH_MAX];
	snprintf(copy, sizeof(copy), "%s", path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 || fsync(fd) != 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

int hw_state_file_write(struct hw_state_file *f, const struct hw_keys *k, char *why, size_t cap)
{
	char fresh[PATH_MAX];
	struct evbuffer *text = text_of(k);
	snprintf(fresh, sizeof(fresh), "%s.new", f->path);
	int rc = text ? write_text(fresh, text) : -ENOMEM;
	if (text)
		evbuffer_free(text);
	if (rc == 0 && rename(fresh, f->path) != 0)
		rc = -errno;
	if (rc == 0)
		rc = sync_folder(f->path);
	else
		(void)unlink(fresh); /* gives the room back on a full disk */
	if (rc)
		snprintf(why, cap, "%s cannot be written: %s", f->path, strerror(-rc));
	return rc;
}

/* --- open, close -------------------------------------------------------------------------------------------------- */

static int lock(const char *path, char *why, size_t cap)
{
	char name[PATH_MAX];
	snprintf(name, sizeof(name), "%s.lock", path);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		snprintf(why, cap, "another heartwheel-alert uses %s: one instance alone may run without Redis", path);
	else
		snprintf(why, cap, "%s cannot be locked: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

struct hw_state_file *hw_state_file_open(const char *path, struct hw_keys *k, char *why, size_t cap)
{
	struct hw_state_file *f = calloc(1, sizeof(*f));
	snprintf(why, cap, "not enough memory");
	if (!f)
		return NULL;
	f->path = path;
	f->lock = lock(path, why, cap);
	int rc = f->lock < 0 ? -EAGAIN : load(path, k, why, cap);
	if (rc == -ENOENT)
		rc = hw_state_file_write(f, k, why, cap);
	if (rc == 0)
		return f;
	hw_state_file_close(f);
	return NULL;
}

void hw_state_file_close(struct hw_state_file *f)
{
	if (!f)
		return;
	if (f->lock >= 0)
		close(f->lock);
	free(f);
}
