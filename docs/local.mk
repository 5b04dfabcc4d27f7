# SPDX-License-Identifier: MIT
# Devices that take tasks, which docs/tasks.md speaks of.
samplesdir = $(docdir)/docs/examples
dist_samples_DATA = docs/examples/device.c docs/examples/device.mjs docs/examples/device.py

# Beside README, whose links go there.
pagesdir = $(docdir)/docs
dist_pages_DATA = \
	docs/architecture.md \
	docs/brokers.md \
	docs/dashboard.md \
	docs/dashboard.png \
	docs/devices.md \
	docs/events.md \
	docs/glossary.md \
	docs/guarantees.md \
	docs/history.md \
	docs/homeassistant.md \
	docs/install.md \
	docs/keyspace.md \
	docs/nodes.md \
	docs/notify.md \
	docs/openapi.json \
	docs/performance.md \
	docs/redis.md \
	docs/security.md \
	docs/tasks.md \
	docs/troubleshooting.md \
	docs/tuning.md
