/* SPDX-License-Identifier: MIT */
/* Shared by the files of this folder: struct hw_app_cluster. Each file has one member of the struct, which only that
 * file changes. */
#ifndef HW_CLUSTER_PRIV_H
#define HW_CLUSTER_PRIV_H

#include "cluster.h"
#include "cluster_broker.h"
#include "cluster_forms.h"
#include "cluster_gate.h"
#include "cluster_redis.h"
#include "cluster_requests.h"
#include "cluster_sentinel.h"
#include "cluster_standby.h"
#include "cluster_strangers.h"
#include "cluster_stream.h"
#include "cluster_view.h"

struct hw_app_cluster {
	struct hw_app *app;
	struct hw_nodes *nodes;
	struct event *due; /* hw_nodes_due() */
	bool stopped;      /* HW_NODES_STOPPED */

	struct hw_cluster_redis redis;
	struct hw_cluster_sentinel sentinel;
	struct hw_cluster_gate gate;
	struct hw_cluster_stream stream;
	struct hw_cluster_broker broker;
	struct hw_cluster_seen seen; /* cluster_view.c's */
	struct hw_cluster_strangers strangers;
	struct hw_cluster_forms forms;
	struct hw_cluster_standby standby;
};

#endif
