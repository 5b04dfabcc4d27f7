/* SPDX-License-Identifier: MIT */
/* The names of tasks: what they are made of, and as text. */
#include <check.h>
#include <string.h>

#include "../suite.h"
#include "tasks/task.h"

static const unsigned char secret[HW_TASKS_SECRET_LEN] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                          11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static void expect_name(const char *sender, const char *msg_id, const char *want)
{
	struct hw_task_id id, again;
	char text[HW_TASK_TEXT + 1];
	ck_assert_int_eq(hw_task_name(&id, secret, (struct hw_text){sender, strlen(sender)},
	                              (struct hw_text){msg_id, strlen(msg_id)}),
	                 0);
	hw_task_id_text(&id, text);
	ck_assert_str_eq(text, want);
	ck_assert(hw_task_id_parse(&again, text, strlen(text)));
	ck_assert_mem_eq(&id, &again, sizeof(id));
}

/* As another implementation of HMAC-SHA256 has them. */
START_TEST(test_a_name_is_made_of_sender_and_msg_id)
{
	expect_name("ann", "m-1", "1319bfc6-d78a-8c08-8e7c-47a8e8961c58");
	expect_name("annm", "-1", "82aa61e7-3672-8951-ac05-fe59a934d3c5");
}
END_TEST

START_TEST(test_what_is_no_name)
{
	struct hw_task_id id;
	static const char *const wrong[] = {"",
	                                    "0f1e2d3c-4b5a-8978-8695-a4b3c2d1e0f",
	                                    "0f1e2d3c-4b5a-8978-8695-a4b3c2d1e0fff",
	                                    "0f1e2d3c04b5a-8978-8695-a4b3c2d1e0ff",
	                                    "0f1e2d3c-4b5a-8978-8695-a4b3c2d1e0fg",
	                                    "0f1e2d3c-4b5a-8978-8695-a4b3c2d1e0FF"};
	for (size_t k = 0; k < sizeof(wrong) / sizeof(*wrong); k++)
		ck_assert(!hw_task_id_parse(&id, wrong[k], strlen(wrong[k])));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("names of tasks");
	TCase *tc = tcase_create("names");
	tcase_add_test(tc, test_a_name_is_made_of_sender_and_msg_id);
	tcase_add_test(tc, test_what_is_no_name);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
