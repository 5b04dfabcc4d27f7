/* SPDX-License-Identifier: MIT */
#include "specs.h"

#include <stdlib.h>

/* Nodes notice at different times that a group is blind. For example, a node without a suspect sends no canary. A
 * device is handed over only after this time, so that each node then knows whether it is blind too. */
#define BLIND_MORE_MS 2000

struct hw_group_spec *hw_app_group_specs(const struct hw_settings *c)
{
	struct hw_group_spec *specs = calloc(c->n_groups, sizeof(*specs));
	for (size_t k = 0; specs && k < c->n_groups; k++) {
		const struct hw_settings_group *g = &c->groups[k];
		specs[k] = (struct hw_group_spec){.name = g->name,
		                                  .heartbeat = (const char *const *)g->heartbeat,
		                                  .n_heartbeat = g->n_heartbeat,
		                                  .goodbye = (const char *const *)g->goodbye,
		                                  .n_goodbye = g->n_goodbye,
		                                  .ignore = (const char *const *)g->ignore,
		                                  .n_ignore = g->n_ignore,
		                                  .whiles = (const char *const *)g->whiles,
		                                  .n_whiles = hw_settings_no_whiles(g) ? 0 : g->n_whiles,
		                                  .field = (const char *const *)g->field,
		                                  .n_field = g->n_field,
		                                  .status = g->status,
		                                  .id = g->id,
		                                  .id_prefix = g->id_prefix,
		                                  .timeout_ms = g->timeout_ms,
		                                  .timeout_max_ms = g->timeout_max_ms,
		                                  .first_within_ms = g->first_within_ms,
		                                  .learn = (enum hw_learn)g->learn,
		                                  .timeout_min_ms = g->timeout_min_ms,
		                                  .mistakes = g->n_mistakes,
		                                  .mistakes_per_ms = g->mistakes_per_ms,
		                                  .learn_gaps = (unsigned)g->learn_gaps,
		                                  .goodbye_delay_ms = g->goodbye_delay_ms,
		                                  .max_age_ms = g->max_age_ms,
		                                  .max_offline_rate = (unsigned)g->max_offline_rate,
		                                  .parents = (const char *const *)g->parents,
		                                  .n_parents = g->n_parents,
		                                  .labels = (const char *const *)g->labels,
		                                  .n_labels = g->n_labels,
		                                  .parent_death = (enum hw_parent_death)g->parent_death,
		                                  .child_proves = g->child_proves,
		                                  .online_after = (unsigned)g->online_after,
		                                  .probe = g->probe,
		                                  .probe_after_ms = hw_settings_probe_after_ms(g),
		                                  .probes = (unsigned)g->probes,
		                                  .format = (enum hw_format)g->payload,
		                                  .retained = g->retained,
		                                  .batch = g->batch,
		                                  .canary = g->canary};
	}
	return specs;
}

/* Whether a group has probes over MQTT. Answers then arrive on their topic. */
static bool asks_by_mqtt(const struct hw_settings *c)
{
	for (size_t k = 0; k < c->n_groups; k++)
		if (*c->groups[k].probe && !hw_settings_is_url(c->groups[k].probe))
			return true;
	return false;
}

struct hw_monitor_conf hw_app_monitor_conf(const struct hw_settings *c, const char *probe_answers)
{
	return (struct hw_monitor_conf){.max_devices = (uint32_t)c->max_devices,
	                                .forget_after_ms = c->forget_after_ms,
	                                .forget_once_after_ms = c->forget_once_after_ms,
	                                .grace_ms = c->mqtt.reconnect_grace_ms,
	                                .barrier_slow_ms = c->mqtt.barrier_slow_ms,
	                                .barrier_timeout_ms = c->mqtt.barrier_timeout_ms,
	                                .readers = (unsigned)c->mqtt.readers,
	                                .qos = (unsigned)c->mqtt.qos,
	                                .ttl_factor = (int)c->redis.ttl_factor,
	                                .node = c->node_id,
	                                .blind_lasts_ms = c->cluster_lease_ms + BLIND_MORE_MS,
	                                .several = c->cluster_mode != HW_CLUSTER_OFF,
	                                .canaries = true,
	                                .as_published = c->mqtt.protocol == 5,
	                                .adopt_by = c->store == HW_STORE_MEMORY ? c->node_id : NULL,
	                                .loading = c->store == HW_STORE_REDIS,
	                                .probe_rate = (unsigned)c->mqtt.probe_rate,
	                                .probe_answers = asks_by_mqtt(c) ? probe_answers : NULL,
	                                .key_group = c->keyspace_enabled ? c->keyspace_group : NULL};
}
