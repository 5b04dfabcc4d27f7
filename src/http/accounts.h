/* SPDX-License-Identifier: MIT */
/*
 * The users that an address admits: the file of [http] users, with one line for each user: NAME:ROLE:SHA256[:EXPIRES].
 * SHA256 is the hash of the user's API token in hexadecimal digits, and EXPIRES is a Unix time in seconds. Empty lines
 * and lines that begin with '#' or ';' are ignored. A token has 256 random bits, so the file does not reveal the
 * tokens.
 */
#ifndef HW_HTTP_ACCOUNTS_H
#define HW_HTTP_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_ACCOUNT_NAME_MAX 64 /* bytes: letters, digits, '.', '_' and '-' */
#define HW_ACCOUNTS_MAX     10000
#define HW_API_TOKEN_HASH   32  /* bytes */
#define HW_API_TOKEN_MAX    512 /* longest token in bytes; a longer token is wrong */

enum hw_user_role { HW_USER_ROLE_READ, HW_USER_ROLE_OPERATE };

struct hw_account {
	char name[HW_ACCOUNT_NAME_MAX + 1];
	enum hw_user_role role;
	unsigned char hash[HW_API_TOKEN_HASH];
	int64_t expires_s; /* Unix time; 0: never */
};

struct hw_accounts {
	struct hw_account *at; /* owned; sorted by hash */
	size_t n;
};

/* Called for each wrong line, with its number (from 1) and what is wrong. After HW_CONF_ERRORS_MAX lines it is called
 * once more, with 0 and the number of further errors. */
typedef void hw_accounts_wrong(void *arg, unsigned line, const char *what);

/* Reads the file into the caller's storage. Returns 0, -EINVAL if lines were wrong (each was reported to `wrong`), or
 * -errno if the file could not be read. */
int hw_accounts_load(struct hw_accounts *a, const char *path, hw_accounts_wrong *wrong, void *arg);
void hw_accounts_fini(struct hw_accounts *a);
/* Writes which users differ: "+eve -otto ~ann" (added, removed, changed role, token or expiry); "" if none does. Users
 * that do not fit are counted: "and 3 more". NULL is an empty list of users. `cap`: at least 32 bytes. */
void hw_accounts_diff(const struct hw_accounts *from, const struct hw_accounts *to, char *text, size_t cap);
/* Whether a token expires in (from_s, to_s]. */
bool hw_accounts_expire(const struct hw_accounts *a, int64_t from_s, int64_t to_s);

/* Parses a line without its line feed. Returns 0, 1 for an empty line or a comment, or -EINVAL with the reason in
 * *what. */
int hw_account_parse(struct hw_account *account, const char *line, const char **what);
bool hw_account_name_is_right(const char *name);
const char *hw_user_role_name(enum hw_user_role role);
/* False: `text` is not a role. */
bool hw_user_role_parse(const char *text, enum hw_user_role *role);

/* Writes the SHA-256 of a token's text (FIPS 180-4). Returns false if there is no memory. */
bool hw_api_token_hash(const char *token, size_t len, unsigned char hash[HW_API_TOKEN_HASH]);
/* Finds the user of a token, which may be expired. `name`: the user's name, which must match; NULL: any. Returns NULL
 * if the token belongs to no such user. Cost: a hash and a binary search. */
const struct hw_account *hw_accounts_find(const struct hw_accounts *a, const char *name, size_t name_len,
                                          const char *token, size_t len);

#endif
