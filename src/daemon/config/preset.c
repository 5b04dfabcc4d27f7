/* SPDX-License-Identifier: MIT */
/* See preset.h. */
#include "preset.h"

#include <errno.h>

#include "conf/presets.h"

/* Applies a line of a preset. If the file already has this value of a list, the line is refused as a duplicate, and
 * the file's line counts. */
static int apply_line(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins,
                      const struct hw_preset_line *l, unsigned line)
{
	int at = hw_conf_option_find(d->table, "group", l->key);
	struct hw_conf_origin *origin = &origins->key[at];
	char why[512];
	bool adds = d->table->options[at].type == HW_CONF_TOPICS && strcmp(l->key, "while") != 0;
	if (!adds && origin->line)
		return 0;
	int rc = hw_conf_draft_set(d, g, origins, at, l->value, line, why, sizeof(why));
	if (rc == 0 && !origin->line)
		origin->line = line;
	return rc == -ENOMEM ? rc : 0;
}

int hw_preset_apply(struct hw_conf_draft *d, struct hw_settings_group *g, struct hw_conf_origins *origins)
{
	unsigned line = hw_conf_draft_origin(d, origins, "group", "preset")->line;
	int rc = 0;
	if (g->preset == HW_PRESET_NONE || g->batch)
		return 0;
	for (size_t i = 0; rc == 0 && i < hw_preset_n_lines; i++)
		if (hw_preset_lines[i].preset == g->preset)
			rc = apply_line(d, g, origins, &hw_preset_lines[i], line);
	return rc;
}
