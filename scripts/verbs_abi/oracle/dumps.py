# SPDX-License-Identifier: BSD-2-Clause
"""The dumps of netlink and sysfs as answers, so that they are compared like calls."""

import re

# rdma_cm is a misc device: its minor number is given out as it comes.
_RDMA_CM_NUMBER = re.compile(r"^(attr 72 len 8 )..0a000000000000$")

# Counters move with traffic: that the file is there, with which mode, is what is compared.
_COUNTER = re.compile(r"/(hw_counters|counters|cm_[rt]x_[a-z]+)/")


def netlink(text):
    """{"netlink:QUESTION": replies in one line}."""
    answers, question = {}, None
    for line in text.splitlines():
        if line.startswith("netlink "):
            question = f"netlink:{line[8:]}"
            answers[question] = ""
        elif question:
            joined = _RDMA_CM_NUMBER.sub(r"\1[minor]", line.strip())
            answers[question] += ("; " if answers[question] else "") + joined
    return answers


def tree(text):
    """{"sysfs:PATH KIND": mode and contents, or a link's target}."""
    answers = {}
    for line in text.splitlines():
        kind, path, *rest = line.split(" ", 2)
        answer = rest[0] if rest else ""
        if kind == "file" and _COUNTER.search(path):
            answer = answer.split(" ")[0]
        answers[f"sysfs:{path} {kind}"] = answer
    return answers
