/* SPDX-License-Identifier: MIT */
/* The secrets of a receiver, which it reads from files. Internal to src/alert/send. */
#ifndef HW_ALERT_SEND_SECRET_H
#define HW_ALERT_SEND_SECRET_H

#include <stddef.h>

#include "alert/send/settings.h"

/* Owned; NULL: none. The key and a URL are printable ASCII without blanks, the password is printable. */
struct hw_receiver_secrets {
	char *key, *password;
};

/* Reads the files of a receiver. Returns 0; or -errno with nothing in `out`, the key of the wrong file in *key, and
 * the reason in `why`. */
int hw_receiver_secrets_read(struct hw_receiver_secrets *out, const struct hw_receiver_settings *r, const char **key,
                             char *why, size_t cap);
/* Wipes them. Zeroed storage is allowed. */
void hw_receiver_secrets_fini(struct hw_receiver_secrets *s);

/* Returns the address of a receiver: its url, the URL in its key file, or PagerDuty's own. */
const char *hw_receiver_url(const struct hw_receiver_settings *r, const struct hw_receiver_secrets *s);

#endif
