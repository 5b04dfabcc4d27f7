# SPDX-License-Identifier: MIT
# The cases of tests/brokers against brokers that others wrote. BROKERS: which (default: all that are installed);
# BROKERS_OPTIONS: further options (tests/brokers/brokers.py --help).
.PHONY: brokers brokers-docs
run_brokers = HW_BUILD='$(abs_builddir)' PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '$(srcdir)/tests/brokers/brokers.py'

brokers: $(sbin_PROGRAMS)
	@$(run_brokers) $(BROKERS:%=--broker %) $(BROKERS_OPTIONS)

# What they found out, into the table of docs/brokers.md.
brokers-docs:
	@$(run_brokers) --docs '$(srcdir)/docs/brokers.md'
