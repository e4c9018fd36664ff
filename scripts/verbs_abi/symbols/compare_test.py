# SPDX-License-Identifier: BSD-2-Clause
import pytest

from verbs_abi.symbols import compare


def facts(symbols=None, nodes=("V_1.0", "V_1.1"), private="P_1", providers=("a",), libraries=None):
    if libraries is None:
        libraries = {"libx.so.1": {"nodes": list(nodes), "symbols": symbols or {}}}
    return {"name": "u", "private_abi": private, "providers": list(providers), "libraries": libraries}


def kinds(old, new):
    return [(one.kind, one.name) for one in compare.compare(old, new)]


@pytest.mark.parametrize("old, new, kind", [
    ({}, {"f": ["V_1.1@"]}, "added-to-old-node"),
    ({}, {"f": ["V_1.2@"]}, "added-with-new-node"),
    ({"f": ["V_1.0@"]}, {}, "removed"),
    ({"f": ["V_1.0@"]}, {"f": ["V_1.1@"]}, "moved"),
    ({"f": ["V_1.0@"]}, {"f": ["V_1.0", "V_1.2@"]}, "added-with-new-node"),
    ({"f": ["V_1.0", "V_1.1@"]}, {"f": ["V_1.1@"]}, "removed"),
    ({"f": ["V_1.0@", "V_1.1"]}, {"f": ["V_1.0", "V_1.1@"]}, "default-moved"),
    ({}, {"f": ["V_PRIVATE_2@"]}, "private-added"),
    ({"f": ["V_PRIVATE_2@"]}, {}, "private-removed"),
])
def test_each_difference_has_its_class(old, new, kind):
    new_nodes = {"V_1.0", "V_1.1", *(node.rstrip("@") for nodes in new.values() for node in nodes)}
    assert (kind, "f") in kinds(facts(old), facts(new, nodes=sorted(new_nodes)))


def test_equal_facts_differ_in_nothing():
    assert kinds(facts({"f": ["V_1.0", "V_1.1@"]}), facts({"f": ["V_1.0", "V_1.1@"]})) == []


def test_a_symbol_that_only_changes_its_private_number_is_no_news():
    old, new = facts({"f": ["V_PRIVATE_1@"]}), facts({"f": ["V_PRIVATE_2@"]}, private="P_2")
    assert kinds(old, new) == [("private-abi", "private ABI")]


def test_libraries_nodes_and_providers():
    old = facts({"f": ["V_1.0@"]}, providers=("a", "b"))
    assert kinds(old, facts({"f": ["V_1.0@"]}, nodes=("V_1.0",), providers=("a", "c"))) == [
        ("provider-removed", "b"), ("node-removed", "V_1.1"), ("provider-added", "c")]
    assert kinds(old, facts(libraries={}, providers=("a", "b"))) == [("library-removed", "libx.so.1")]
    assert kinds(facts(libraries={}), facts()) == [("library-added", "libx.so.1")]


def test_what_breaks_stands_first():
    found = compare.compare(facts({"f": ["V_1.0@"]}), facts({"a": ["V_1.2@"], "b": ["V_1.1@"]}, private="P_2"))
    assert [one.severity for one in found] == ["breaks", "attention", "attention", "news"]
