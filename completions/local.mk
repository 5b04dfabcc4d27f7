# SPDX-License-Identifier: MIT
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/vendor-completions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_zshcompletion_DATA = completions/_heartwheelctl
dist_fishcompletion_DATA = completions/heartwheelctl.fish

install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(bashcompletiondir)'
	$(INSTALL_DATA) '$(srcdir)/completions/heartwheelctl.bash' '$(DESTDIR)$(bashcompletiondir)/heartwheelctl'

uninstall-local:
	rm -f '$(DESTDIR)$(bashcompletiondir)/heartwheelctl'
