# SPDX-License-Identifier: BSD-2-Clause
from verbs_abi.oracle import cli

raise SystemExit(cli.main())
