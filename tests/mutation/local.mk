# SPDX-License-Identifier: MIT
# Small changes to the code, each of which a test must notice: tests/mutation/mutate.py --help. MUTATE: further options.
.PHONY: mutate

mutate:
	@PYTHONDONTWRITEBYTECODE=1 python3 '$(srcdir)/tests/mutation/mutate.py' --build '$(abs_builddir)' --cc '$(CC)' $(MUTATE)
