/* SPDX-License-Identifier: MIT */
/*
 * monitor.conf: any bytes, in a file that is only memory. Either there is a configuration, or a line for each thing
 * that is wrong; and a configuration that is printed reads back to the same one.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/settings.h"
#include "fuzz.h"

static struct hw_settings *load(const void *bytes, size_t size)
{
	struct hw_conf_errors errors = {0};
	char path[64];
	int fd = memfd_create("monitor.conf", MFD_CLOEXEC);
	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct hw_settings *c = hw_conf_load(&hw_settings_table, path, &errors);
	MUST(!c == (errors.n > 0));
	for (size_t i = 0; i < errors.n; i++)
		MUST(strncmp(errors.lines[i], path, strlen(path)) == 0 && !strchr(errors.lines[i], '\n'));
	hw_conf_errors_fini(&errors);
	close(fd);
	return c;
}

static char *print(const struct hw_settings *c, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	MUST(out);
	hw_conf_print(c, out);
	MUST(fclose(out) == 0);
	return text;
}

static void no_difference(void *arg, const char *key, enum hw_conf_change change, bool live)
{
	(void)arg, (void)change, (void)live;
	fprintf(stderr, "%s\n", key);
	MUST(false && "printed and read, it is the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = 0, len_again = 0;
	struct hw_settings *c = load(data, size);
	if (!c)
		return 0;
	MUST(c->n_groups > 0);
	char *text = print(c, &len);
	struct hw_settings *again = load(text, len);
	MUST(again);
	char *text_again = print(again, &len_again);
	MUST(strcmp(text, text_again) == 0);
	hw_conf_diff(c, again, no_difference, NULL);
	MUST(hw_conf_keep_restart_values(c, again) == 0);
	free(text);
	free(text_again);
	hw_conf_free(c);
	hw_conf_free(again);
	return 0;
}
