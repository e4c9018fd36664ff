# SPDX-License-Identifier: BSD-2-Clause
"""What has to be there before a command can do its work: packages, the build."""
