/* SPDX-License-Identifier: MIT */
/* See discover_write.h. */
#include "ctl/discover_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/text.h"
#include "heartwheel/utf8.h"

#define SHOWN_MAX 200 /* bytes of a topic in a comment */

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Writes a text from the broker into a comment: shortened, and on one line. */
static void show(FILE *out, const char *text)
{
	char shown[SHOWN_MAX * 6 + 1];
	size_t len = strlen(text), most = len > SHOWN_MAX ? SHOWN_MAX : len;
	/* not in the middle of a character */
	while (most < len && most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	hw_utf8_show(text, most, shown, sizeof(shown));
	fprintf(out, "%s%s", shown, most < len ? "..." : "");
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

static void write_filters(FILE *out, const struct hw_listen *how, const bool *which, const char *before,
                          const char *after)
{
	bool any = false;
	for (size_t i = 0; i < how->n_subscribed; i++)
		if (which[i]) {
			fputs(any ? ", " : before, out);
			show(out, how->subscribed[i]);
			any = true;
		}
	if (any)
		fputs(after, out);
}

static void write_limits(FILE *out, const struct hw_topics_counts *c)
{
	if (c->many)
		fprintf(out,
		        "# %" PRIu64
		        " messages of further topics are left out: at most %d topics are kept. Use --filter.\n",
		        c->many, HW_TOPICS_MAX);
	if (c->deep || c->long_)
		fprintf(out, "# %" PRIu64 " messages are left out: their topics have over %d levels or %d bytes.\n",
		        c->deep + c->long_, HW_TOPIC_LEVELS, HW_TOPIC_KEPT);
	if (c->past_log)
		fprintf(out, "# The intervals are those of the first %d messages.\n", HW_TOPICS_LOG);
}

static void write_head(FILE *out, const struct hw_topics *t, const struct hw_listen *how, int64_t wall_ms)
{
	struct hw_topics_counts c = hw_topics_counts(t);
	char clock[HW_SPAN_MAX], span[HW_SPAN_MAX], n[2][HW_SPAN_MAX];
	fprintf(out, "# Found by heartwheelctl discover on %s, in %s at %s:%d", hw_text_clock(wall_ms, clock),
	        hw_text_span(how->listened_ms, span), how->conf.host, how->conf.port);
	fputs(how->conf.username[0] ? " as user " : "", out);
	show(out, how->conf.username);
	fprintf(out, ".\n# %s messages on %s topics.", hw_text_count((int64_t)c.messages, n[0]),
	        hw_text_count((int64_t)hw_topics_n(t), n[1]));
	fputs(" A broker with rights (ACL) shows what this user may read, and no more.\n", out);
	if (how->all_refused)
		fputs("# The broker refuses '#': topics of 1 to 10 levels were read instead.\n", out);
	write_filters(out, how, how->refused, "# Refused by the broker: ", ".\n");
	write_filters(out, how, how->silent, "# Nothing came on: ", ".\n");
	if (how->failed) {
		fprintf(out, "# The connection was lost after %s: ", hw_text_span(how->listened_ms, span));
		show(out, how->why);
		fputs("\n", out);
	}
	write_limits(out, &c);
	fputs("# Check each group. Put the file after the other sections of monitor.conf; see monitor.conf(5).\n", out);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static void write_evidence(FILE *out, const struct hw_found_group *g)
{
	char n[HW_SPAN_MAX], span[2][HW_SPAN_MAX];
	fprintf(out, "\n# %s device%s like ", hw_text_count(g->devices, n), plural(g->devices));
	show(out, g->example);
	if (g->median_ms > 0 && g->median_ms < 2000)
		fputs(", every second or more often", out); /* shorter gaps are not measured */
	else if (g->median_ms)
		fprintf(out, ", every %s (p90 %s)", hw_text_span(g->median_ms, span[0]),
		        hw_text_span(g->p90_ms, span[1]));
	if (g->goodbyes && g->goodbye) {
		fprintf(out, "; %s goodbye%s on ", hw_text_count(g->goodbyes, n), plural(g->goodbyes));
		show(out, g->goodbye);
	}
	fputs("\n", out);
}

static void write_group(FILE *out, const struct hw_found_group *g)
{
	char n[HW_SPAN_MAX], span[HW_SPAN_MAX];
	write_evidence(out, g);
	if (g->twice * 2 < g->devices)
		fprintf(out, "# %s of them %s heard twice: --for was too short to see their interval.\n",
		        g->twice ? hw_text_count(g->twice, n) : "None", g->twice > 1 ? "were" : "was");
	for (size_t i = 0; i < g->notes.n; i++)
		fprintf(out, "# %s\n", g->notes.at[i]);
	fprintf(out, "[group %s]\n", g->name);
	for (size_t i = 0; i < g->lines.n; i++)
		fprintf(out, "%s\n", g->lines.at[i]);
	if (g->timeout_ms)
		fprintf(out, "timeout = %s\n", hw_text_span(g->timeout_ms, span));
}

static void write_rest(FILE *out, const struct hw_found *found)
{
	char n[HW_SPAN_MAX];
	if (found->n_rest == 0)
		return;
	fputs("\n# Not placed:\n", out);
	for (size_t i = 0; i < found->n_rest; i++) {
		const struct hw_found_rest *r = &found->rest[i];
		fprintf(out, "#   %s topic%s like ", hw_text_count(r->topics, n), plural(r->topics));
		show(out, r->prefix);
		fputs("/...", out);
		if (r->commands)
			fprintf(out, "; %s to devices, or answers", hw_text_count(r->commands, n));
		if (r->retained)
			fprintf(out, "; %s retained only", hw_text_count(r->retained, n));
		fputs("\n", out);
	}
	if (found->more)
		fprintf(out, "#   %s topics with other first levels\n", hw_text_count(found->more, n));
}

void hw_discover_write(FILE *out, const struct hw_found *found, const struct hw_topics *topics,
                       const struct hw_listen *how, int64_t wall_ms)
{
	write_head(out, topics, how, wall_ms);
	if (found->n == 0)
		fputs("\n# No group was found: it needs two devices that publish while discover listens.\n", out);
	for (size_t i = 0; i < found->n; i++)
		write_group(out, &found->groups[i]);
	write_rest(out, found);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int write_whole(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) ? -errno : 0;
}

int hw_discover_save(const char *path, bool force, const char *text, size_t len)
{
	char *temporary;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	int fd = mkostemp(temporary, O_CLOEXEC), rc = fd < 0 ? -errno : 0;
	if (rc < 0) {
		free(temporary);
		return rc;
	}
	mode_t mask = umask(0);
	umask(mask);
	rc = write_whole(fd, text, len);
	if (rc == 0 && fchmod(fd, 0644 & ~mask))
		rc = -errno;
	if (close(fd) && rc == 0)
		rc = -errno;
	/* link() never replaces a file, not even one that was created a moment ago */
	if (rc == 0 && (force ? rename(temporary, path) : link(temporary, path)))
		rc = -errno;
	if (rc || !force)
		unlink(temporary);
	free(temporary);
	return rc;
}
