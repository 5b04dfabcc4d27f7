/* SPDX-License-Identifier: MIT */
/*
 * Who may come in over an address: the file that [http] users names, a line for each user,
 *
 *     NAME:ROLE:SHA256[:EXPIRES]
 *
 * where SHA256 is that of the user's token in hexadecimal digits, and EXPIRES a time in Unix seconds. Empty lines, and
 * those that begin with '#' or ';', say nothing. A token has 256 random bits: whoever reads the file cannot find it.
 */
#ifndef HW_HTTP_ACCOUNTS_H
#define HW_HTTP_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_ACCOUNT_NAME_MAX 64 /* bytes: letters, digits, '.', '_' and '-' */
#define HW_ACCOUNTS_MAX     10000
#define HW_TOKEN_HASH       32  /* bytes */
#define HW_TOKEN_MAX        512 /* bytes of a token that is looked at at all */

enum hw_role { HW_ROLE_READ, HW_ROLE_OPERATE };

struct hw_account {
	char name[HW_ACCOUNT_NAME_MAX + 1];
	enum hw_role role;
	unsigned char hash[HW_TOKEN_HASH];
	int64_t expires_s; /* Unix time; 0: never */
};

struct hw_accounts {
	struct hw_account *at; /* owned; ordered by hash */
	size_t n;
};

/* Told of each wrong line: its number, from 1, and what is wrong with it. */
typedef void hw_accounts_wrong(void *arg, unsigned line, const char *what);

/* Reads the file into caller's storage. 0; -EINVAL if a line was wrong, all of which were told; or -errno if it could
 * not be read. */
int hw_accounts_load(struct hw_accounts *a, const char *path, hw_accounts_wrong *wrong, void *arg);
void hw_accounts_fini(struct hw_accounts *a);
/* Writes the users who differ: "+eve -otto ~ann", where ann has another role, token or expiry; "" if none does. What
 * does not fit is counted: "and 3 more". Either may be NULL: no users. `cap`: at least 32 bytes. */
void hw_accounts_diff(const struct hw_accounts *from, const struct hw_accounts *to, char *text, size_t cap);
/* Whether a token expires after `from_s`, and not after `to_s`. */
bool hw_accounts_expire(const struct hw_accounts *a, int64_t from_s, int64_t to_s);

/* One line without its line feed. 0, 1 if it says nothing, or -EINVAL with the reason in `*what`. */
int hw_account_parse(struct hw_account *account, const char *line, const char **what);
bool hw_account_name_is_right(const char *name);
const char *hw_role_name(enum hw_role role);
/* Whether `text` names a role. */
bool hw_role_parse(const char *text, enum hw_role *role);

/* SHA-256 of a token's text (FIPS 180-4). False: libcrypto has no memory. */
bool hw_token_hash(const char *token, size_t len, unsigned char hash[HW_TOKEN_HASH]);
/* Whose token it is, whether it has expired or not; `name` of `name_len` bytes (NULL: any) must be theirs. NULL:
 * nobody's. Cost: a hash and a binary search. */
const struct hw_account *hw_accounts_find(const struct hw_accounts *a, const char *name, size_t name_len,
                                          const char *token, size_t len);

#endif
