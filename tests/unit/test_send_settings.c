/* SPDX-License-Identifier: MIT */
/* [receiver NAME]: which sections are right, what a wrong one is answered with, and the files that they name. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../suite.h"
#include "alert/send/secret.h"
#include "alert/send/settings.h"
#include "alert/settings.h"
#include "conf_rig.h"

struct some {
	struct hw_conf_head head;
	struct hw_receiver_settings *receivers;
	size_t n;
};

static void judge(struct hw_conf_draft *d)
{
	struct some *c = (struct some *)d->conf;
	for (size_t i = 0; i < c->n; i++) {
		hw_conf_draft_defaults(d, &d->table->named[0], &c->receivers[i], d->named[0][i]);
		hw_receiver_judge(d, &c->receivers[i], d->named[0][i]);
	}
}

static const struct hw_conf_option options[] = {HW_RECEIVER_ROWS};
static const struct hw_conf_table table = {.options = options,
                                           .n_options = sizeof(options) / sizeof(*options),
                                           .size = sizeof(struct some),
                                           .named = {{.kind = "receiver",
                                                      .list = offsetof(struct some, receivers),
                                                      .count = offsetof(struct some, n),
                                                      .size = sizeof(struct hw_receiver_settings),
                                                      .line = offsetof(struct hw_receiver_settings, line),
                                                      .max = HW_INCIDENT_RECEIVERS}},
                                           .judge = judge};

#define REFUSED(text, ...) REFUSE_OF(&table, text, __VA_ARGS__)

/* One of each type, as the manual has them. */
START_TEST(every_type)
{
	struct some *c = rig_load(
		&table,
		"[receiver program]\ntype = exec\nprogram = /usr/local/bin/alert\ntemplate = mail\n"
		"mail_from = Hub <hub@example.org>\nmail_to = a@example.org, b@example.org\n"
		"[receiver hook]\ntype = webhook\nurl = https://example.org/x?y=z\nkey_file = /etc/k\n"
		"[receiver am]\ntype = alertmanager\nurl = http://a:9093, https://b/prefix\nusername = u\n"
		"password_file = /etc/p\n"
		"[receiver pager]\ntype = pagerduty\nkey_file = /etc/k\nkinds = mass, blind\nremind = 1h\n"
		"[receiver phone]\ntype = ntfy\nurl = https://ntfy.example.org/topic\nmatch = group:pumps id:w-*\n"
		"match = label:site=north\n"
		"[receiver chat]\ntype = slack\nkey_file = /etc/k\ninterval = 1m\nnotify_after = 5m\n"
		"[receiver post]\ntype = smtp\nurl = smtp://mail.example.org:587\nmail_from = hub@example.org\n"
		"mail_to = ops@example.org\nusername = hub\npassword_file = /etc/p\n");
	char wrong[32];
	ck_assert_uint_eq(c->n, 7);
	ck_assert_int_eq(c->receivers[0].template, HW_NOTIFY_MAIL);
	ck_assert_str_eq(c->receivers[1].text, "{list}");
	ck_assert_uint_eq(hw_receiver_kinds(c->receivers[0].kinds, wrong, sizeof(wrong)), 31);
	ck_assert_uint_eq(hw_receiver_kinds(c->receivers[3].kinds, wrong, sizeof(wrong)),
	                  1u << HW_INCIDENT_MASS | 1u << HW_INCIDENT_BLIND);
	ck_assert_uint_eq(c->receivers[4].n_match, 2);
	ck_assert_int_eq(c->receivers[5].notify_after_ms, 300000);
	ck_assert(hw_receiver_type_is_each(HW_RECEIVER_PAGERDUTY) &&
	          hw_receiver_type_is_each(HW_RECEIVER_ALERTMANAGER));
	ck_assert(!hw_receiver_type_is_each(HW_RECEIVER_SMTP));
	ck_assert_uint_eq(hw_receiver_type_parallel(HW_RECEIVER_PAGERDUTY), 8);
	ck_assert_uint_eq(hw_receiver_type_parallel(HW_RECEIVER_ALERTMANAGER), 1);
	hw_conf_free(c);
}
END_TEST

START_TEST(a_copy_is_whole)
{
	struct hw_receiver_settings copy;
	struct some *c = rig_load(&table, "[receiver a]\ntype = exec\nprogram = /p\nmatch = id:a\nmatch = id:b\n");
	ck_assert_int_eq(hw_receiver_copy(&copy, &c->receivers[0]), 0);
	hw_conf_free(c);
	ck_assert_str_eq(copy.name, "a");
	ck_assert_str_eq(copy.program, "/p");
	ck_assert_uint_eq(copy.n_match, 2);
	ck_assert_str_eq(copy.match[1], "id:b");
	hw_receiver_fini(&copy);
	ck_assert_ptr_null(copy.name);
}
END_TEST

START_TEST(wrong_sections)
{
	REFUSED("[receiver a]\nurl = http://x\n", ":1: section 'receiver a': needs type");
	REFUSED("[receiver a b]\ntype = exec\nprogram = /p\n", ":1: section 'a b': a receiver's name may have");
	REFUSED("[receiver a]\ntype = pager\n", ":2: key 'type'");
	REFUSED("[receiver a]\ntype = exec\n", ":1: section 'receiver a': needs program");
	REFUSED("[receiver a]\ntype = exec\nprogram = /p\nurl = http://x\n",
	        ":4: key 'url': is not for type = exec: remove this line");
	REFUSED("[receiver a]\ntype = smtp\nurl = smtp://x\nmail_from = a@b\nmail_to = c@d\ntemplate = json\n",
	        ":6: key 'template': is not for type = smtp");
	REFUSED("[receiver a]\ntype = exec\nprogram = /p\ntitle = {devise}\n",
	        ":4: key 'title': there is no field {devise}; did you mean {device}?");
	REFUSED("[receiver a]\ntype = exec\nprogram = /p\ntemplate = ntfy\n",
	        ":4: key 'template': ntfy is for webhook");
	REFUSED("[receiver a]\ntype = webhook\nurl = http://x\ntemplate = mail\n",
	        ":4: key 'template': mail is for exec");
	REFUSED("[receiver a]\ntype = exec\nprogram = /p\nkinds = devices\n",
	        ":4: key 'kinds': there is no kind 'devices'; there are device, mass, blind, unseen, task");
	REFUSED("[receiver a]\ntype = exec\nprogram = /p\nremind = 30s\n", ":4: key 'remind': must be 0");
}
END_TEST

START_TEST(wrong_addresses)
{
	REFUSED("[receiver a]\ntype = webhook\n", ":1: section 'receiver a': needs url; or, if the URL is a secret");
	REFUSED("[receiver a]\ntype = webhook\nurl = ftp://x\n", ":3: key 'url': must be an http:// or https:// URL");
	REFUSED("[receiver a]\ntype = webhook\nurl = http://x/a b\n", ":3: key 'url': must be printable ASCII");
	REFUSED("[receiver a]\ntype = webhook\nurl = https://u:secret@x/\n",
	        ":3: key 'url': has a password in it, which everyone reads who may read this file: write the password");
	REFUSED("[receiver a]\ntype = webhook\nurl = https://u@x/\n", ":3: key 'url': has a user name in it");
	REFUSED("[receiver a]\ntype = slack\nurl = https://hooks.slack.com/services/T/B/x\n",
	        ":3: key 'url': is a secret, because whoever has it can post");
	REFUSED("[receiver a]\ntype = slack\nurl = https://chat.example.org/x\nkey_file = /k\n",
	        ":3: key 'url': key_file has the whole URL");
	REFUSED("[receiver a]\ntype = alertmanager\nurl = http://a, http://u:p@b\n", ":3: key 'url': has a password");
	REFUSED("[receiver a]\ntype = alertmanager\nurl = http://a,,http://b\n", ":3: key 'url': must be an http");
	REFUSED("[receiver a]\ntype = alertmanager\nurl = "
	        "http://1,http://2,http://3,http://4,http://5,http://6,http://7,"
	        "http://8,http://9\n",
	        ":3: key 'url': has more than 8 servers");
	REFUSED("[receiver a]\ntype = alertmanager\n", ":1: section 'receiver a': needs url");
	REFUSED("[receiver a]\ntype = smtp\nurl = https://x\nmail_from = a@b\nmail_to = c@d\n",
	        ":3: key 'url': must be smtp://HOST:PORT");
	REFUSED("[receiver a]\ntype = smtp\nurl = smtp://x/y\nmail_from = a@b\nmail_to = c@d\n",
	        ":3: key 'url': must be smtp://HOST:PORT without a path");
	REFUSED("[receiver a]\ntype = smtp\nurl = smtp://x\n", ":1: section 'receiver a': needs mail_from",
	        ":1: section 'receiver a': needs mail_to");
	REFUSED("[receiver a]\ntype = smtp\nurl = smtp://x\nmail_from = W\xc3\xa4@b\nmail_to = c@d\n",
	        ":4: key 'mail_from': must be printable ASCII");
}
END_TEST

START_TEST(wrong_secrets)
{
	REFUSED("[receiver a]\ntype = pagerduty\n", ":1: section 'receiver a': needs key_file");
	REFUSED("[receiver a]\ntype = ntfy\nurl = http://x\nusername = u\n", ":4: key 'username': needs password_file");
	REFUSED("[receiver a]\ntype = ntfy\nurl = http://x\npassword_file = /p\n",
	        ":4: key 'password_file': needs username");
	REFUSED("[receiver a]\ntype = ntfy\nurl = http://x\nusername = u\npassword_file = /p\nkey_file = /k\n",
	        ":6: key 'key_file': a server gets either a key or a username");
}
END_TEST

/* --- files */

static char path[64];

/* Writes a secret file with these rights, and reads it as a receiver of that type. Returns what went wrong. */
static const char *reads(const char *type, const char *text, mode_t mode, const char *more)
{
	static char why[512];
	char conf[512];
	const char *key = "";
	struct hw_receiver_secrets s;
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
	chmod(path, mode);
	snprintf(conf, sizeof(conf), "[receiver a]\ntype = %s\nkey_file = %s\n%s", type, path, more);
	struct some *c = rig_load(&table, conf);
	why[0] = '\0';
	int rc = hw_receiver_secrets_read(&s, &c->receivers[0], &key, why, sizeof(why));
	if (rc == 0) {
		snprintf(why, sizeof(why), "%s|%s", s.key, hw_receiver_url(&c->receivers[0], &s));
		hw_receiver_secrets_fini(&s);
	} else {
		ck_assert_str_eq(key, "key_file");
		ck_assert_ptr_null(s.key);
	}
	hw_conf_free(c);
	return why;
}

START_TEST(files)
{
	snprintf(path, sizeof(path), "/tmp/hw-secret-XXXXXX");
	close(mkstemp(path));
	ck_assert_str_eq(reads("pagerduty", "R1\nmore\n", 0600, ""), "R1|https://events.pagerduty.com/v2/enqueue");
	ck_assert_str_eq(reads("pagerduty", "R1", 0640, "url = http://x\n"), "R1|http://x");
	ck_assert_str_eq(reads("slack", "https://hooks.slack.com/services/x\r\n", 0600, ""),
	                 "https://hooks.slack.com/services/x|https://hooks.slack.com/services/x");
	ck_assert_ptr_nonnull(strstr(reads("slack", "token\n", 0600, ""), "must be an http:// or https:// URL"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "R1\n", 0604, ""), "every user of this machine may read"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "R1\n", 0602, ""), "chmod o= /tmp/hw-secret-"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "\n", 0600, ""), "is empty"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "a b\n", 0600, ""), "printable ASCII without blanks"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "a\rb\n", 0600, ""), "printable ASCII without blanks"));
	ck_assert_ptr_nonnull(strstr(reads("pagerduty", "\xc3\xa4\n", 0600, ""), "printable ASCII without blanks"));
	unlink(path);
}
END_TEST

START_TEST(files_that_are_none)
{
	const char *key;
	char why[256];
	struct some *c = rig_load(&table, "[receiver a]\ntype = pagerduty\nkey_file = /nowhere\n"
	                                  "[receiver b]\ntype = pagerduty\nkey_file = /dev/zero\n"
	                                  "[receiver c]\ntype = exec\nprogram = /etc/passwd\n"
	                                  "[receiver d]\ntype = exec\nprogram = /bin/true\n");
	ck_assert_int_eq(hw_receiver_check_files(&c->receivers[0], &key, why, sizeof(why)), -ENOENT);
	ck_assert_str_eq(why, "cannot read /nowhere: No such file or directory");
	ck_assert_int_eq(hw_receiver_check_files(&c->receivers[1], &key, why, sizeof(why)), -EMEDIUMTYPE);
	ck_assert_int_eq(hw_receiver_check_files(&c->receivers[2], &key, why, sizeof(why)), -EACCES);
	ck_assert_str_eq(key, "program");
	ck_assert_int_eq(hw_receiver_check_files(&c->receivers[3], &key, why, sizeof(why)), 0);
	hw_conf_free(c);
}
END_TEST

/* --- [notify] */

START_TEST(notify_section)
{
	static const char *const bad[] = {"example.org", "ftp://a/b",          "http://",
	                                  "https:///x",  "file:///etc/passwd", "-"};
	char text[64];
	struct hw_alert_settings *c =
		rig_load(&hw_alert_table, "[notify]\nexec = /bin/tell\nwebhook = https://a.example/b?c=d\n");
	ck_assert_str_eq(c->notify.exec, "/bin/tell");
	ck_assert_str_eq(c->notify.webhook, "https://a.example/b?c=d");
	ck_assert_int_eq(c->notify.interval_ms, 10000);
	ck_assert_int_eq(c->notify.blind_after_ms, 5000);
	hw_conf_free(c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[notify]\nwebhook = %s\n", bad[i]);
		REFUSE_OF(&hw_alert_table, text, ":2: key 'webhook': must be an http:// or https:// URL");
	}
	REFUSE_OF(&hw_alert_table, "[notify]\nexec = tell\n", ":2: key 'exec': 'tell' must be an absolute path");
}
END_TEST

START_TEST(notify_templates)
{
	struct hw_alert_settings *c = rig_load(&hw_alert_table, "[notify]\n");
	ck_assert_int_eq(c->notify.exec_template, HW_NOTIFY_JSON);
	ck_assert_int_eq(c->notify.webhook_template, HW_NOTIFY_JSON);
	ck_assert_str_eq(c->notify.title, "{summary}");
	ck_assert_str_eq(c->notify.text, "{list}\\n{now}.");
	hw_conf_free(c);
	c = rig_load(&hw_alert_table,
	             "[notify]\nexec_template = mail\nmail_from = a@b\nmail_to = c@d, e@f\nwebhook_template = ntfy\n"
	             "title = {{{device}}} {status}\\n\ntext =\n");
	ck_assert_int_eq(c->notify.exec_template, HW_NOTIFY_MAIL);
	ck_assert_int_eq(c->notify.webhook_template, HW_NOTIFY_NTFY);
	ck_assert_str_eq(c->notify.mail_to, "c@d, e@f");
	ck_assert_str_eq(c->notify.text, "");
	hw_conf_free(c);
	REFUSE_OF(&hw_alert_table, "[notify]\nexec_template = smail\n", ":2: key 'exec_template': ");
	REFUSE_OF(&hw_alert_table, "[notify]\nexec_template = ntfy\n", ":2: key 'exec_template': ntfy is for webhook");
	REFUSE_OF(&hw_alert_table, "[notify]\nwebhook_template = mail\n",
	          ":2: key 'webhook_template': mail is for exec");
	REFUSE_OF(&hw_alert_table, "[notify]\nexec_template = mail\nmail_to = a@b\n",
	          ":2: key 'exec_template': exec_template = mail needs mail_from");
	REFUSE_OF(&hw_alert_table, "[notify]\nexec_template = mail\nmail_from = a@b\nmail_to = ops\n",
	          ":4: key 'mail_to': exec_template = mail needs mail_to");
	REFUSE_OF(&hw_alert_table, "[notify]\nmail_from = W\u00e4chter <a@b>\n",
	          ":2: key 'mail_from': must be printable ASCII; write a name");
	REFUSE_OF(&hw_alert_table, "[notify]\nmail_to = a@b, c@\u00e4\n", ":2: key 'mail_to': must be printable ASCII");
	REFUSE_OF(&hw_alert_table, "[notify]\n\ntitle = {devcie} is gone\n",
	          ":3: key 'title': there is no field {devcie}; did you mean {device}? there are "
	          "{summary}, {list}, {now}, {node}, {time}, {count}, {device}, {group}, {status}, {silent}");
	REFUSE_OF(&hw_alert_table, "[notify]\ntext = {xyz}\n",
	          ":2: key 'text': there is no field {xyz}; there are {summary}");
	REFUSE_OF(&hw_alert_table, "[notify]\ntext = {device\n", ":2: key 'text': a brace has no partner");
	REFUSE_OF(&hw_alert_table, "[notify]\ntext = device}\n", ":2: key 'text': a brace has no partner");
	REFUSE_OF(&hw_alert_table, "[notify]\ntext = a\\tb\n", ":2: key 'text': after \\ only n");
}
END_TEST

START_TEST(a_url_may_be_long)
{
	char text[4096];
	snprintf(text, sizeof(text), "[notify]\nwebhook = http://127.0.0.1/%02027d?a=b\n", 1);
	struct hw_alert_settings *c = rig_load(&hw_alert_table, text);
	ck_assert_uint_eq(strlen(c->notify.webhook), 2048);
	ck_assert_str_eq(c->notify.webhook + 2040, "0001?a=b");
	hw_conf_free(c);
	snprintf(text, sizeof(text), "[notify]\nwebhook = http://127.0.0.1/%02028d?a=b\n", 1);
	REFUSE_OF(&hw_alert_table, text, ":2: key 'webhook': ");
}
END_TEST

/* Also in a file without [alert] and [receiver NAME]. */
START_TEST(notify_has_receivers)
{
	struct hw_receiver_settings list[HW_INCIDENT_RECEIVERS];
	struct hw_alert_settings *c =
		rig_load(&hw_alert_table, "[notify]\nexec = /bin/tell\nexec_template = text\nnotify_interval = 1s\n");
	ck_assert_uint_eq(hw_alert_receivers(c, list), 1);
	ck_assert_str_eq(list[0].name, "exec");
	ck_assert_str_eq(list[0].program, "/bin/tell");
	ck_assert_int_eq(list[0].template, HW_NOTIFY_TEXT);
	ck_assert_int_eq(list[0].interval_ms, 1000);
	hw_conf_free(c);
	c = rig_load(&hw_alert_table, "[notify]\nexec = /bin/tell\nwebhook = http://a/b\n"
	                              "[receiver ops]\ntype = ntfy\nurl = http://c/d\n");
	ck_assert_uint_eq(hw_alert_receivers(c, list), 3);
	ck_assert_str_eq(list[0].name, "ops");
	ck_assert_str_eq(list[2].name, "webhook");
	ck_assert_int_eq(list[2].type, HW_RECEIVER_WEBHOOK);
	ck_assert_str_eq(list[2].url, "http://a/b");
	hw_conf_free(c);
	c = rig_load(&hw_alert_table, "[notify]\n");
	ck_assert_uint_eq(hw_alert_receivers(c, list), 0);
	hw_conf_free(c);
	REFUSE_OF(&hw_alert_table, "[notify]\nexec = /bin/tell\n[receiver exec]\ntype = exec\nprogram = /bin/other\n",
	          ":3: section 'receiver exec': [notify] exec is a receiver of that name");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("send_settings");
	TCase *t = tcase_create("settings");
	tcase_add_test(t, every_type);
	tcase_add_test(t, a_copy_is_whole);
	tcase_add_test(t, wrong_sections);
	tcase_add_test(t, wrong_addresses);
	tcase_add_test(t, wrong_secrets);
	tcase_add_test(t, files);
	tcase_add_test(t, files_that_are_none);
	tcase_add_test(t, notify_section);
	tcase_add_test(t, notify_templates);
	tcase_add_test(t, a_url_may_be_long);
	tcase_add_test(t, notify_has_receivers);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return suite_run(suite());
}
