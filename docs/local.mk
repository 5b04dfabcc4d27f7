# SPDX-License-Identifier: MIT
# The files of docs/containers.md.
containersdir = $(docdir)/containers
dist_containers_DATA = containers/Containerfile containers/compose.yaml containers/monitor.conf containers/mosquitto.conf

# Devices that take tasks, for docs/tasks.md.
samplesdir = $(docdir)/docs/examples
dist_samples_DATA = docs/examples/device.c docs/examples/device.mjs docs/examples/device.py

# A site of README, docs and the manuals, in BUILD/site; it needs mkdocs and mandoc.
.PHONY: site
site:
	python3 '$(srcdir)/docs/site.py' '$(srcdir)' '$(abs_builddir)'

# Beside README, whose links go there.
pagesdir = $(docdir)/docs
dist_pages_DATA = \
	docs/architecture.md \
	docs/brokers.md \
	docs/coming-from.md \
	docs/containers.md \
	docs/dashboard.md \
	docs/dashboard.png \
	docs/devices.md \
	docs/events.md \
	docs/faq.md \
	docs/glossary.md \
	docs/guarantees.md \
	docs/history.md \
	docs/homeassistant.md \
	docs/incidents.md \
	docs/inventory.md \
	docs/install.md \
	docs/keyspace.md \
	docs/nodes.md \
	docs/notify.md \
	docs/openapi.json \
	docs/operate.md \
	docs/performance.md \
	docs/recipes.md \
	docs/redis.md \
	docs/runbook.md \
	docs/security.md \
	docs/sizing.md \
	docs/start.md \
	docs/tasks.md \
	docs/troubleshooting.md \
	docs/tuning.md \
	docs/why-not.md
