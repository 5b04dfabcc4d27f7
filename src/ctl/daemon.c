/* SPDX-License-Identifier: MIT */
/* heartwheelctl reload, version. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

static bool contains(const cJSON *array, const char *text)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, array)
	{
		if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

/* Prints the texts of an array, one in a line. `answer` (may be NULL) contains which were added and removed. Returns
 * their number. */
static int print_lines(const struct hw_ctl *ctl, FILE *f, const char *title, const cJSON *array, const cJSON *answer)
{
	const cJSON *item;
	int n = 0;
	cJSON_ArrayForEach(item, array)
	{
		if (!cJSON_IsString(item))
			continue;
		if (n++ == 0 && title)
			fprintf(f, "%s:\n", title);
		fputs(title ? "  " : "", f);
		hw_text_print(f, &ctl->screen, item->valuestring);
		if (contains(cJSON_GetObjectItemCaseSensitive(answer, "added"), item->valuestring))
			fputs(" (added)", f);
		else if (contains(cJSON_GetObjectItemCaseSensitive(answer, "removed"), item->valuestring))
			fputs(" (removed)", f);
		fputc('\n', f);
	}
	return n;
}

int hw_cmd_reload(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	(void)args;
	if (hw_client_ask(ctl->client, "POST", "/v1/reload", &a) < 0)
		return hw_failed(ctl, "%s", hw_client_why(ctl->client));
	int rc = HW_EXIT_DONE;
	if (a.code == 200 && a.json) {
		int n = print_lines(ctl, stdout, "changed", cJSON_GetObjectItemCaseSensitive(a.json, "changed"),
		                    a.json);
		n += print_lines(ctl, stdout, "changed in the file, needs a restart",
		                 cJSON_GetObjectItemCaseSensitive(a.json, "restart_needed"), NULL);
		const char *users = hw_member_text(a.json, "users");
		if (*users) {
			printf("users: ");
			hw_text_print(stdout, &ctl->screen, users);
			putchar('\n');
		}
		if (n == 0)
			puts("nothing changed");
	} else {
		const char *why = hw_member_text(a.json, "error");
		print_lines(ctl, stderr, NULL, cJSON_GetObjectItemCaseSensitive(a.json, "lines"), NULL);
		rc = hw_failed(ctl, "reload refused: %s", *why ? why : "heartwheeld's answer is malformed");
	}
	hw_answer_fini(&a);
	return rc;
}

int hw_cmd_version(struct hw_ctl *ctl, const struct hw_args *args)
{
	struct hw_answer a;
	(void)args;
	puts("heartwheelctl " HW_VERSION);
	fflush(stdout); /* before possible errors on stderr */
	int rc = hw_ask(ctl, "GET", "/v1/status", 200, &a);
	if (rc)
		return rc;
	printf("heartwheeld ");
	hw_text_print(stdout, &ctl->screen, hw_member_text(a.json, "version"));
	fputc('\n', stdout);
	hw_answer_fini(&a);
	return HW_EXIT_DONE;
}
