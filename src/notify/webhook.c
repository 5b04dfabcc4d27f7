/* SPDX-License-Identifier: MIT */
/* Sends a message to a web server: one POST at a time. A status 2xx is success; see hw_multi_outward() for the rest. */
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/multi.h"
#include "notify/carrier.h"
#include "notify/note.h"

struct hw_webhook {
	hw_carrier_done *done;
	void *arg;
	struct hw_multi multi;
	CURL *easy;
	struct curl_slist *headers;
	size_t header_bytes;
	bool busy;
	char error[CURL_ERROR_SIZE];
};

/* The transfer has ended: reports the result. */
static void on_done(void *arg, CURL *easy, CURLcode code)
{
	struct hw_webhook *w = arg;
	char why[CURL_ERROR_SIZE + 32] = "";
	long status = hw_multi_status(easy, code);
	w->busy = false;
	if (w->header_bytes > HW_MULTI_HEADERS_MAX)
		snprintf(why, sizeof(why), "the headers and trailers of the answer are longer than 300 KiB");
	else if (code != CURLE_OK)
		snprintf(why, sizeof(why), "%s", w->error[0] ? w->error : curl_easy_strerror(code));
	else if (status < 200 || status > 299)
		snprintf(why, sizeof(why), "the server answered with status %ld", status);
	w->done(w->arg, status ? (int)status : HW_CARRIER_NO_CODE, why[0] ? why : NULL);
}

/* --- making and ending -------------------------------------------------------- */

struct hw_webhook *hw_webhook_new(struct event_base *base, hw_carrier_done *done, void *arg)
{
	struct hw_webhook *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->done = done;
	w->arg = arg;
	int rc = hw_multi_init(&w->multi, base, on_done, w);
	w->easy = rc == 0 ? hw_multi_outward(&w->header_bytes) : NULL;
	if (w->easy) {
		curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->error);
		return w;
	}
	hw_webhook_free(w);
	return NULL;
}

void hw_webhook_free(struct hw_webhook *w)
{
	if (!w)
		return;
	if (w->busy)
		hw_multi_remove(&w->multi, w->easy);
	if (w->easy)
		curl_easy_cleanup(w->easy);
	curl_slist_free_all(w->headers);
	hw_multi_fini(&w->multi);
	free(w);
}

/* --- sending ------------------------------------------------------------------ */

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *more = curl_slist_append(*list, line);
	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

/* Replaces the headers by those of a note. */
static int set_headers(struct hw_webhook *w, const struct hw_note *note)
{
	char type[96];
	curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(w->headers);
	w->headers = NULL;
	snprintf(type, sizeof(type), "Content-Type: %s", note->type);
	int rc = add_header(&w->headers, type);
	if (!rc)
		rc = add_header(&w->headers, "Expect:");
	char *own = note->headers ? strdup(note->headers) : NULL, *rest = own, *line;
	if (note->headers && !own)
		return -ENOMEM;
	while (!rc && (line = strsep(&rest, "\n")))
		rc = *line ? add_header(&w->headers, line) : 0;
	free(own);
	curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, w->headers);
	return rc;
}

int hw_webhook_start(struct hw_webhook *w, const char *url, const struct hw_note *note, int64_t timeout_ms)
{
	w->error[0] = '\0';
	w->header_bytes = 0;
	if (curl_easy_setopt(w->easy, CURLOPT_URL, url) || set_headers(w, note))
		return -ENOMEM;
	curl_easy_setopt(w->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(w->easy, CURLOPT_POSTFIELDS, (const char *)note->text);
	curl_easy_setopt(w->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)note->len);
	curl_easy_setopt(w->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	if (hw_multi_add(&w->multi, w->easy))
		return -ENOMEM;
	w->busy = true;
	return 0;
}
