# SPDX-License-Identifier: MIT
# The Debian package: built, installed into a tree of its own, upgraded, purged. Needs root; says so where it is skipped.
.PHONY: check-package
check-package:
	@HW_BUILDDIR='$(abs_builddir)' bash '$(srcdir)/tests/package/test_package.sh'

# The image of containers/Containerfile, by buildah; the same.
.PHONY: check-containers
check-containers:
	@HW_BUILDDIR='$(abs_builddir)' bash '$(srcdir)/tests/package/test_containers.sh'
