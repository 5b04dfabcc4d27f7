/* SPDX-License-Identifier: MIT */
/* See template.h. The core judges: what it can compile is right. */
#include "template.h"

#include "heartwheel/group.h"
#include "heartwheel/topic.h"

int hw_template_check(const char *text, enum hw_template kind, const char **why)
{
	static const enum hw_topic_kind kinds[] = {
		[HW_TEMPLATE_HEARTBEAT] = HW_TOPIC_HEARTBEAT, [HW_TEMPLATE_STATUS] = HW_TOPIC_STATUS,
		[HW_TEMPLATE_BATCH] = HW_TOPIC_BATCH,         [HW_TEMPLATE_FIXED] = HW_TOPIC_ANY,
		[HW_TEMPLATE_IGNORE] = HW_TOPIC_ANY,          [HW_TEMPLATE_ID] = HW_TOPIC_FORM};
	if (kind == HW_TEMPLATE_FIELD) {
		struct hw_field f;
		int wrong = hw_field_compile(&f, text, why);
		hw_field_fini(&f);
		return wrong;
	}
	struct hw_goodbye g = {0};
	int rc = kind == HW_TEMPLATE_GOODBYE ? hw_goodbye_compile(&g, text, why)
	                                     : hw_topic_compile(&g.topic, text, kinds[kind], why);
	hw_goodbye_fini(&g);
	return rc;
}
