/* SPDX-License-Identifier: MIT */
/* See secret.h. */
#include "alert/send/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/file.h"
#include "conf/shared.h"

#define PAGERDUTY_URL "https://events.pagerduty.com/v2/enqueue"

static void forget(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void hw_receiver_secrets_fini(struct hw_receiver_secrets *s)
{
	forget(&s->key);
	forget(&s->password);
}

/* Whether each character is printable. A blank or a control character in a key would end a header. `least`: the
 * lowest character allowed. */
static bool is_printable(const char *text, char least)
{
	for (; *text; text++)
		if (*text < least || *text > '~')
			return false;
	return true;
}

static int read_one(char **out, const char *path, char least, char *why, size_t cap)
{
	struct stat st;
	*out = NULL;
	if (!*path)
		return 0;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & (S_IROTH | S_IWOTH)) {
		snprintf(why, cap, "every user of this machine may read or write %s: chmod o= %s", path, path);
		return -EPERM;
	}
	*out = hw_conf_read_secret(path);
	if (!*out) {
		int error = errno ? errno : EIO;
		snprintf(why, cap, "cannot read %s: %s", path, hw_file_error(error));
		return -error;
	}
	if (**out && is_printable(*out, least))
		return 0;
	snprintf(why, cap, "the first line of %s %s", path,
	         !**out        ? "is empty"
	         : least > ' ' ? "must be printable ASCII without blanks"
	                       : "must be printable ASCII");
	forget(out);
	return -EINVAL;
}

int hw_receiver_secrets_read(struct hw_receiver_secrets *out, const struct hw_receiver_settings *r, const char **key,
                             char *why, size_t cap)
{
	*out = (struct hw_receiver_secrets){0};
	*key = "key_file";
	int rc = read_one(&out->key, r->key_file, '!', why, cap);
	if (rc == 0 && out->key && !*r->url && r->type != HW_RECEIVER_PAGERDUTY && !hw_conf_is_url(out->key)) {
		snprintf(why, cap, "there is no url, so the first line of %s must be an http:// or https:// URL",
		         r->key_file);
		rc = -EINVAL;
	}
	if (rc == 0) {
		*key = "password_file";
		rc = read_one(&out->password, r->password_file, ' ', why, cap);
	}
	if (rc)
		hw_receiver_secrets_fini(out);
	return rc;
}

int hw_receiver_check_files(const struct hw_receiver_settings *r, const char **key, char *why, size_t cap)
{
	struct hw_receiver_secrets s;
	int rc = hw_receiver_secrets_read(&s, r, key, why, cap);
	hw_receiver_secrets_fini(&s);
	if (rc == 0 && *r->program && access(r->program, X_OK) != 0) {
		rc = -errno;
		*key = "program";
		snprintf(why, cap, "cannot run %s: %s", r->program, strerror(errno));
	}
	return rc;
}

const char *hw_receiver_url(const struct hw_receiver_settings *r, const struct hw_receiver_secrets *s)
{
	if (*r->url)
		return r->url;
	return r->type == HW_RECEIVER_PAGERDUTY ? PAGERDUTY_URL : s->key ? s->key : "";
}
