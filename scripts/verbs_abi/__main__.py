# SPDX-License-Identifier: BSD-2-Clause
"""`python3 -m verbs_abi`: the command without its launcher, for machines that are set up."""

import sys

from verbs_abi.cli import main

sys.exit(main(sys.argv[1:]))
