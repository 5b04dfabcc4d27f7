/* SPDX-License-Identifier: MIT */
/*
 * The form of a group: whether this node receives the heartbeats of a device, and so may judge the device.
 *
 * Nodes may have different groups, for example during a rolling reload. The form of a group (struct hw_group.form_hash)
 * is a hash of all settings that decide which heartbeats of its devices a node receives. A device's record, and its
 * hash in Redis, contain the form that its group had when a node last received a heartbeat of the device.
 *
 * Rule: a node judges a device only if two conditions hold. The node has the filters of the device's group. And the
 * form in the device's record is the form of that group on this node, or is unknown. If the record has another form,
 * the device's silence proves nothing. A single monitor judges every device of its groups.
 *
 * After a reload that changes a group's form, silence counts from zero, because no message was expected on the new
 * filters before.
 *
 * Cost: one comparison for each judgement. Unjudged devices are counted only while there may be any. Private to the
 * core.
 */
#ifndef HW_FORM_H
#define HW_FORM_H

#include "monitor_priv.h"

/* Whether the device's last heartbeat is older than the last change of the form of its group. */
static inline bool hw_form_is_older(const struct hw_monitor *m, const struct hw_device *d)
{
	return d->last_seen_ns < m->form[d->group].heard_ns;
}

/* Whether the form of the device's last heartbeat is the form of its group on this node. */
static inline bool hw_form_is_ours(const struct hw_monitor *m, const struct hw_device *d)
{
	return (d->form == HW_FORM_OURS || d->form == HW_FORM_MOVED) && !hw_form_is_older(m, d);
}

/* Whether this node may judge the device by its silence. */
static inline bool hw_form_judges(const struct hw_monitor *m, const struct hw_device *d)
{
	if (m->groups.all[d->group]->unheard)
		return false;
	return !m->conf.several || d->form == HW_FORM_UNKNOWN || hw_form_is_ours(m, d);
}

/* Whether a reload may have given the device's filters to other groups, the heirs of its group. */
static inline bool hw_form_may_have_heirs(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->hearing.group[d->group].n_heirs > 0 &&
	       (m->groups.all[d->group]->retired || hw_form_is_older(m, d) || d->form == HW_FORM_OTHER);
}

/* Whether the device's group is only one of several to which the device may belong: see group_of_status() in
 * retained_intake.c. */
static inline bool hw_form_is_guessed(const struct hw_monitor *m, const struct hw_device *d)
{
	return m->conf.adopt_by && d->form == HW_FORM_OTHER;
}

/* Whether both groups are in the file and have the same status topics. */
bool hw_form_are_kin(const struct hw_monitor *m, size_t a, size_t b);
/* Whether one of the group's kin is blind. */
bool hw_form_is_kin_blind(const struct hw_monitor *m, uint16_t group);

/* Whether any of these groups is blind: the device's group; the kin of the group, if the device may belong to one of
 * them (hw_form_is_guessed()); the heirs of the group, if a reload may have given them the device's filters. */
static inline bool hw_form_is_blind(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_hearing_is_blind(&m->hearing, d->group) ||
	       (hw_form_is_guessed(m, d) && hw_form_is_kin_blind(m, d->group)) ||
	       (hw_form_may_have_heirs(m, d) && hw_hearing_is_heir_blind(&m->hearing, d->group));
}

/* Whether the silence of the device proves nothing: its group is blind, or only other nodes receive its heartbeats. */
static inline bool hw_form_is_unheard(const struct hw_monitor *m, const struct hw_device *d)
{
	return hw_form_is_blind(m, d) || !hw_form_judges(m, d);
}

/*
 * Returns the index of the group of a device, from the group's name and form (0: unknown) as another run or node has
 * reported them. A group of the configuration with that form comes first, because its filters deliver the device; the
 * group may have been renamed. Next comes the group with that name. If there is neither, creates a group with that
 * name, whose devices are not judged; if there is no room for it, guesses the group by the id. Returns -EINVAL for an
 * invalid name, or -ENOMEM.
 */
int hw_form_group(struct hw_monitor *m, struct hw_id device, const char *name, size_t len, uint64_t form);
/* Returns the group with that name, or creates one like hw_form_group(); or -EINVAL, -ENOSPC or -ENOMEM. */
int hw_form_named(struct hw_monitor *m, const char *name, size_t len);
/* Returns the group whose id_prefix is the longest that the id begins with. If several prefixes have this length,
 * returns the first group in the file. */
uint16_t hw_form_guess_group(const struct hw_groups *g, struct hw_id device);
/* Called with the form in which the device was heard, as the store or another node has it; 0: unknown. */
void hw_form_learn(struct hw_monitor *m, uint32_t i, uint64_t form);
/* Called before and after a change of the groups. hw_form_begin() stores the forms from before the change, and
 * hw_form_end() applies the difference. The caller frees `was`. hw_form_begin() returns 0 or -ENOMEM. */
struct hw_form_was {
	uint64_t form;
	int64_t timeout_ms, timeout_max_ms;
	uint32_t proves; /* hw_group_proves(); 0 of a retired group */
	bool unheard;
};
int hw_form_begin(const struct hw_monitor *m, struct hw_form_was **was);
void hw_form_end(struct hw_monitor *m, struct hw_now now, const struct hw_form_was *was, size_t n_was);

#endif
