# SPDX-License-Identifier: BSD-2-Clause
"""`python3 -m verbs_abi.oracle …`, short for `verbs-abi oracle …`."""

import sys

from verbs_abi import cli

sys.exit(cli.main(["oracle", *sys.argv[1:]]))
