# SPDX-License-Identifier: BSD-2-Clause
"""The dumps of netlink and sysfs as answers, so that they are compared like calls."""

import re

# rdma_cm is a misc device (major 10): its minor number is given out as it comes.
_RDMA_CM_NUMBER = re.compile(r"^(attr 72 len 8 )..0a....00000000$")

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


def devinfo(userland, text):
    """ibv_devinfo -v line by line: {"program:USERLAND LABEL[~N]": value}."""
    answers, seen = {}, {}
    for line in text.splitlines():
        label, _, value = line.strip().partition(":")
        label = "_".join(label.split())
        if not label:
            continue
        seen[label] = seen.get(label, 0) + 1
        number = f"~{seen[label]}" if seen[label] > 1 else ""
        answers[f"program:{userland} {label}{number}"] = " ".join(value.split())
    return answers


def section(text, title):
    """The part of a userland's recording below "== TITLE", up to the next such line."""
    _, _, rest = f"\n{text}".partition(f"\n== {title}\n")
    return rest.partition("\n== ")[0]
