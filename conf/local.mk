# SPDX-License-Identifier: MIT
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	conf/grafana-heartwheel.json \
	conf/heartwheel-alerts.yml \
	conf/heartwheel.logrotate \
	conf/monitor.conf.example \
	conf/mosquitto-heartwheel.acl \
	conf/mosquitto-heartwheel.conf \
	conf/redis-heartwheel.acl

# What systemd reads, with the directories that configure was told.
systemd_files = conf/heartwheel-alert.service conf/heartwheel-history.service conf/heartwheel-tasks.service conf/heartwheel.sysusers conf/heartwheel.tmpfiles conf/heartwheeld.service
if INSTALL_UNIT
systemdsystemunit_DATA = systemd/heartwheeld.service systemd/heartwheel-alert.service systemd/heartwheel-tasks.service
if HAVE_SQLITE
systemdsystemunit_DATA += systemd/heartwheel-history.service
endif
sysusersdir = $(prefix)/lib/sysusers.d
sysusers_DATA = systemd/sysusers.d/heartwheel.conf
tmpfilesdir = $(prefix)/lib/tmpfiles.d
tmpfiles_DATA = systemd/tmpfiles.d/heartwheel.conf
endif
CLEANFILES += systemd/heartwheel-alert.service systemd/heartwheel-history.service systemd/heartwheel-tasks.service systemd/heartwheeld.service systemd/sysusers.d/heartwheel.conf systemd/tmpfiles.d/heartwheel.conf
in_place = $(AM_V_GEN)$(MKDIR_P) '$(@D)' && $(SED) -e 's|/usr/sbin/|$(sbindir)/|g' \
	-e 's|/etc/heartwheel|$(pkgsysconfdir)|g' -e 's|/run/heartwheel|$(runstatedir)/heartwheel|g'

systemd/heartwheel-history.service: conf/heartwheel-history.service Makefile
	$(in_place) '$(srcdir)/conf/heartwheel-history.service' >$@

systemd/heartwheel-alert.service: conf/heartwheel-alert.service Makefile
	$(in_place) '$(srcdir)/conf/heartwheel-alert.service' >$@

systemd/heartwheel-tasks.service: conf/heartwheel-tasks.service Makefile
	$(in_place) '$(srcdir)/conf/heartwheel-tasks.service' >$@

systemd/heartwheeld.service: conf/heartwheeld.service Makefile
	$(in_place) '$(srcdir)/conf/heartwheeld.service' >$@

systemd/sysusers.d/heartwheel.conf: conf/heartwheel.sysusers Makefile
	$(in_place) '$(srcdir)/conf/heartwheel.sysusers' >$@

systemd/tmpfiles.d/heartwheel.conf: conf/heartwheel.tmpfiles Makefile
	$(in_place) '$(srcdir)/conf/heartwheel.tmpfiles' >$@

# monitor.conf belongs to the operator once it is there: an installed one is never written over, and an uninstall takes
# it away only if nobody has changed it.
pkgsysconfdir = $(sysconfdir)/heartwheel

# The pages' links to ../conf lead to the examples.
install-data-hook:
	rm -f '$(DESTDIR)$(docdir)/conf'
	ln -s examples '$(DESTDIR)$(docdir)/conf'
	$(MKDIR_P) '$(DESTDIR)$(pkgsysconfdir)'
	@conf='$(DESTDIR)$(pkgsysconfdir)/monitor.conf'; \
	if test -e "$$conf"; then echo "$$conf is there already: left as it is"; \
	else echo "$(INSTALL_DATA) $(srcdir)/conf/monitor.conf $$conf"; \
		$(INSTALL_DATA) '$(srcdir)/conf/monitor.conf' "$$conf"; fi
# The pages link to ../conf/FILE, as it is in the tree.
	rm -f '$(DESTDIR)$(docdir)/conf' && ln -s examples '$(DESTDIR)$(docdir)/conf'

uninstall-hook:
	rm -f '$(DESTDIR)$(docdir)/conf'
	@conf='$(DESTDIR)$(pkgsysconfdir)/monitor.conf'; \
	if cmp -s '$(srcdir)/conf/monitor.conf' "$$conf"; then rm -f "$$conf"; fi; \
	rmdir '$(DESTDIR)$(pkgsysconfdir)' 2>/dev/null || :
