# SPDX-License-Identifier: MIT
dist_man_MANS = \
	man/heartwheel-alert.8 \
	man/heartwheel-api.7 \
	man/heartwheel-history.8 \
	man/heartwheel-tasks.8 \
	man/heartwheelctl.1 \
	man/heartwheeld.8 \
	man/monitor.conf.5
