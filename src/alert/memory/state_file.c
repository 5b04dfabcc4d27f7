/* SPDX-License-Identifier: MIT */
/* See state_file.h. The file contains the commands that create the keys: for each command an array of words. Cost of a
 * write: its changes, and one fdatasync(); of a new file: all keys, and two fsync(). */
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

#define NAME     "heartwheel_alert_state" /* a member of the file's object: its version */
#define VERSION  1
#define GROWS_BY (1 << 20) /* bytes of changes that a small file may have */

/* The file has fewer bytes. */
#ifndef HW_STATE_FILE_MAX /* a test has a smaller one */
#define HW_STATE_FILE_MAX (1 << 30)
#endif

struct hw_state_file {
	const char *path; /* borrowed */
	int lock;
	/* The file as this process has written it. `whole` and `size`: its bytes without and with the changes; `whole`
	 * 0: not known. */
	ino_t inode;
	size_t whole, size;
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

static bool run_all(struct hw_keys *k, const cJSON *commands)
{
	const cJSON *command;
	bool right = cJSON_IsArray(commands);
	cJSON_ArrayForEach(command, commands) right = right && run(k, command);
	return right;
}

static bool read_keys(struct hw_keys *k, const cJSON *file)
{
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(file, NAME);
	return cJSON_IsNumber(version) && version->valuedouble == VERSION &&
	       run_all(k, cJSON_GetObjectItemCaseSensitive(file, "keys"));
}

/* Reads the lines of a text of `len` bytes and a NUL. If the last line is not whole, its write was never confirmed. */
static bool read_lines(struct hw_keys *k, char *text, size_t len)
{
	bool right = true;
	for (char *line = text, *end; right && line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end && line > text)
			return true;
		end = end ? end : text + len;
		*end = '\0';
		cJSON *j = cJSON_ParseWithOpts(line, NULL, 1);
		if (!j && line > text && end + 1 >= text + len)
			return true;
		right = line == text ? read_keys(k, j) : run_all(k, j);
		cJSON_Delete(j);
	}
	return right && len > 0;
}

/* Returns the file's text with a NUL at its end; NULL with errno. */
static char *read_text(int fd, size_t *size)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return NULL;
	errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
	char *text = S_ISREG(st.st_mode) && st.st_size < HW_STATE_FILE_MAX ? malloc((size_t)st.st_size + 1) : NULL;
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
	*size = len;
	return text;
}

/* Returns 0 or -errno. */
static int load(const char *path, struct hw_keys *k, char *why, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = errno;
	size_t size = 0;
	char *text = fd >= 0 ? read_text(fd, &size) : NULL;
	error = fd >= 0 ? errno : error;
	if (fd >= 0)
		close(fd);
	if (!text) {
		snprintf(why, cap, "%s: %s", path, strerror(error));
		return -error;
	}
	int rc = read_lines(k, text, size) && !hw_keys_failed(k) ? 0 : -EBADMSG;
	if (rc)
		snprintf(
			why, cap,
			"%s is damaged, or no state of heartwheel-alert that this version can read, or larger than the "
			"memory: put a copy back, or move the file away to begin without incidents",
			path);
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

/* Writes the text to the open file, and to the disk. Returns 0 or -errno. */
static int write_text(int fd, struct evbuffer *text)
{
	int rc = 0;
	while (rc == 0 && evbuffer_get_length(text) > 0)
		if (evbuffer_write(text, fd) < 0 && errno != EINTR)
			rc = -errno;
	return rc == 0 && fdatasync(fd) != 0 ? -errno : rc;
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

/* Makes a new file, and stores its inode and its length. Returns 0 or -errno. */
static int write_new(struct hw_state_file *f, const char *path, struct evbuffer *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640),
	    rc = fd < 0 ? -errno : write_text(fd, text);
	struct stat st = {0};
	if (rc == 0 && fstat(fd, &st) != 0)
		rc = -errno;
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = -errno;
	f->inode = st.st_ino;
	f->whole = f->size = rc == 0 ? (size_t)st.st_size : 0;
	return rc;
}

static int write_all(struct hw_state_file *f, const struct hw_keys *k)
{
	char fresh[PATH_MAX];
	struct evbuffer *text = text_of(k);
	snprintf(fresh, sizeof(fresh), "%s.new", f->path);
	int rc = !text ? -ENOMEM : evbuffer_get_length(text) >= HW_STATE_FILE_MAX ? -EFBIG : write_new(f, fresh, text);
	if (text)
		evbuffer_free(text);
	if (rc == 0 && rename(fresh, f->path) != 0)
		rc = -errno;
	if (rc == 0)
		rc = sync_folder(f->path);
	else
		(void)unlink(fresh); /* gives the room back on a full disk */
	if (rc)
		f->whole = 0;
	return rc;
}

/* Appends the changes as a line. Returns false if this fails, or if the file would become too long; the caller
 * then writes a new file. A line of which only a part was written is ignored when the file is read. */
static bool append(struct hw_state_file *f, struct evbuffer *changes)
{
	size_t len = changes ? evbuffer_get_length(changes) + 3 : 0, most = f->whole > GROWS_BY ? f->whole : GROWS_BY;
	struct stat st;
	if (!changes || f->whole == 0 || f->size - f->whole + len > most || f->size + len >= HW_STATE_FILE_MAX)
		return false;
	int fd = open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	bool done = fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == f->inode && (size_t)st.st_size == f->size &&
	            evbuffer_prepend(changes, "[", 1) == 0 && evbuffer_add(changes, "]\n", 2) == 0 &&
	            write_text(fd, changes) == 0;
	if (fd >= 0 && close(fd) != 0)
		done = false;
	f->size += len;
	return done;
}

int hw_state_file_write(struct hw_state_file *f, struct hw_keys *k, char *why, size_t cap)
{
	int rc = append(f, hw_keys_changes(k)) ? 0 : write_all(f, k);
	if (rc)
		snprintf(why, cap, "%s cannot be written: %s", f->path, strerror(-rc));
	else
		hw_keys_stored(k);
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
