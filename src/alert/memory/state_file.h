/* SPDX-License-Identifier: MIT */
/*
 * The state file, in lines of JSON: all keys, then the changes of each later write. A write appends its changes, or, if
 * the changes would become more than all keys, makes a new file. When the new file is on the disk, it replaces the old
 * one by a rename. So after a crash, the file has either the whole old state or the whole new one: a last line that is
 * not complete is ignored. A lock on FILE.lock lets only one process use the file.
 */
#ifndef HW_ALERT_STATE_FILE_H
#define HW_ALERT_STATE_FILE_H

#include <stddef.h>

struct hw_keys;
struct hw_state_file;

/* Locks the file and reads it into the keys. If there is no file, the keys stay empty, and a file is made. `path` is
 * borrowed. Returns NULL, with the reason in `why`, if the file cannot be locked, read or written, or has other
 * contents. */
struct hw_state_file *hw_state_file_open(const char *path, struct hw_keys *k, char *why, size_t cap);
/* Stores the keys, and calls hw_keys_stored(). Returns 0; or -errno, with the reason in `why`, and the file has the old
 * state. */
int hw_state_file_write(struct hw_state_file *f, struct hw_keys *k, char *why, size_t cap);
/* Releases the lock. `f` may be NULL. */
void hw_state_file_close(struct hw_state_file *f);

#endif
