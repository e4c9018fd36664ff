# SPDX-License-Identifier: BSD-2-Clause
"""Can the suites fail? Deliberate small defects in rdma-core's source, each of which some test must notice.

defects.py  the defects as data, and how a token is swapped
libraries.py  a source tree that is built with one defect after the other; each comes out as a userland
check.py    runs a plan's cells with each and tells what noticed it
report.py   the table
"""
