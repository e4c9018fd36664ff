# SPDX-License-Identifier: BSD-2-Clause
from verbs_abi.oracle import command

raise SystemExit(command.main())
