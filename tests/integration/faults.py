#!/usr/bin/env python3
"""Lists every fault of a fleet with its stated terms and the figures that the tests measured.

    tests/integration/faults.py --headgate build/dev/bin/headgate            # runs these tests, prints the table
    tests/integration/faults.py --headgate … --write docs/guides/fleet.md    # and puts it there

A test calls `record`, which fails if a figure exceeds its term. test_fleet_terms.py compares the
page with this table.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

RECORDS = "FAULT_RECORDS"  # the file to which `record` appends a line; if unset, nothing is written
# Seconds that a busy machine may add. The bounds on admitted requests have no such slack.
SLACK_SECONDS = 1.5

# `rows`: the rows of the table in docs/internals/leases.md that cover the fault. `tests`: the tests
# that produce it.
Fault = collections.namedtuple("Fault", "happens on_top refused rows tests")

OUTAGE = "the store cannot be asked for D, `local`"
FLUSH = "FLUSHALL, DEL or eviction of a live key, each time"
STOPS = "an instance dies, is paused or loses the store"
FAILOVER = "a replica that lacks the last writes takes over"
OF_A_LOST_END = "two capacities and rate · D′"
OF_AN_OUTAGE = "one capacity and rate · D; at most two and rate · D′"
NOTHING, NOT_AT_ALL, CAPACITY = "nothing", "not at all", "one capacity"
LEARNING = "2 s after an instance sees the new primary"
RESTART = "2 to 3 s after the start of the process"

FAULTS = {
    "idle": Fault(
        "an instance holds leases and gets no more requests", NOTHING,
        "2 s, for the tokens it holds; 20 s for a tiny lease, at most 1/1024 of the rest", [],
        ["test_fleet_silent.Silent.test_requests_held_by_an_idle_instance"],
    ),
    "killed": Fault(
        "an instance is killed", NOTHING, "until its leases or the window end, for the tokens it held", [STOPS],
        ["test_fleet_silent.Silent.test_requests_held_by_a_killed_instance", "test_fleet_faults.Faults.test_an_instance_is_killed"],
    ),
    "paused": Fault(
        "an instance is paused for longer than a lease lives",
        NOTHING, "until it speaks to the store again, for the tokens it held", [STOPS],
        ["test_fleet_silent.Silent.test_requests_held_by_a_paused_instance", "test_fleet_faults.Faults.test_an_instance_is_paused"],
    ),
    "shutdown": Fault(
        "an instance is shut down", NOTHING, NOT_AT_ALL, ["an instance shuts down in good order"],
        ["test_fleet_faults.Faults.test_an_instance_is_shut_down"],
    ),
    "cut_off": Fault(
        "an instance loses its network for D", "its share of one capacity and rate · D", NOT_AT_ALL, [STOPS, OUTAGE],
        [
            "test_fleet_partition.Partition.test_the_cable_is_pulled_at_the_store",
            "test_fleet_partition.Partition.test_the_cable_is_pulled_at_the_instance",
        ],
    ),
    "clock_missed": Fault(
        "an instance is paused, and its clock does not count the pause", "what it held, at most one capacity", NOT_AT_ALL, [STOPS],
        ["test_fleet_clock.ShiftedClocks.test_a_pause_that_the_clock_missed"],
    ),
    "store_paused": Fault(
        "the store stands still for D, `local`", OF_AN_OUTAGE, NOT_AT_ALL, [OUTAGE],
        ["test_fleet_faults.Faults.test_the_store_stands_still"],
    ),
    "store_paused_deny": Fault(
        "the same, `deny`", NOTHING, "D, plus 6.25 s until the store is used again", ["the store cannot be asked, `deny`"],
        ["test_fleet_faults.Faults.test_the_store_stands_still_and_requests_are_refused"],
    ),
    "store_paused_allow": Fault(
        "the same, `allow`", "everything", NOT_AT_ALL, ["the store cannot be asked, `allow`"],
        ["test_fleet_faults.Faults.test_the_store_stands_still_and_requests_are_allowed"],
    ),
    "unreachable": Fault(
        "nobody reaches the store for D, `local`", OF_AN_OUTAGE, NOT_AT_ALL, [OUTAGE],
        ["test_fleet_partition.Partition.test_nobody_reaches_the_store"],
    ),
    "connections_cut": Fault(
        "connections are cut again and again, `local`", OF_AN_OUTAGE, NOT_AT_ALL, [OUTAGE],
        ["test_fleet_faults.Faults.test_connections_are_cut"],
    ),
    "flapping": Fault(
        "the store stalls for 100 ms in each second, `local`", OF_AN_OUTAGE, NOT_AT_ALL, [OUTAGE],
        ["test_fleet_burst.Burst.test_the_store_flaps"],
    ),
    "new_keys": Fault(
        "a burst of new keys, more than the store answers in time", OF_AN_OUTAGE, NOT_AT_ALL, [OUTAGE],
        ["test_fleet_burst.Burst.test_many_new_keys_at_once_do_not_open_the_breaker"],
    ),
    "replica_attached": Fault(
        "a first replica is attached, and lost again", NOTHING, NOT_AT_ALL,
        ["a primary gets a new replication id because its first replica is attached"],
        ["test_fleet_history.HistoryOfAServer.test_a_first_replica_is_attached_and_lost"],
    ),
    "slots_moved": Fault(
        "slots move between live primaries", NOTHING, NOT_AT_ALL, ["a slot moves between live primaries"],
        ["test_fleet_history.HistoryOfACluster.test_slots_move_between_live_primaries"],
    ),
    "ring_grown": Fault(
        "a ring gets one more server: one key of N + 1 moves; for D′ instances use different lists",
        "one capacity and rate · D′ for a key that moves", NOT_AT_ALL, [],
        ["test_fleet_ring.Ring.test_a_server_is_added"],
    ),
    "handed_over": Fault(
        "a primary hands over (`CLUSTER FAILOVER`), `deny`", CAPACITY, LEARNING, [FAILOVER],
        ["test_fleet_history.HistoryOfACluster.test_a_primary_hands_over"],
    ),
    "failover": Fault(
        "a primary dies, its replica takes over, `deny`", CAPACITY, "the same, after the time without a primary", [FAILOVER],
        ["test_fleet_history.HistoryOfACluster.test_a_primary_dies_and_its_replica_takes_over"],
    ),
    "failover_local": Fault(
        "the same, `local`; D lasts to the end of the 2 s", OF_A_LOST_END, NOT_AT_ALL, [FAILOVER, OUTAGE],
        ["test_fleet_cluster.FleetOnACluster.test_the_primary_dies"],
    ),
    "silent_primary": Fault(
        "a primary falls silent, its replica takes over, `local`", OF_A_LOST_END, NOT_AT_ALL, [FAILOVER, OUTAGE],
        ["test_fleet_cluster.FleetOnACluster.test_the_primary_falls_silent"],
    ),
    "partition": Fault(
        "a cluster's network splits; the primary on the smaller side continues to answer for D",
        "two capacities and rate · D; afterwards as an instance without network", NOT_AT_ALL,
        ["a replaced primary goes on answering some instances for D"],
        ["test_fleet_cluster_partition.ClusterPartition.test_the_isolated_primary_is_replaced"],
    ),
    "restart_from_file": Fault(
        "the store restarts from a file, `deny`", CAPACITY, RESTART, ["the store restarts from a file"],
        ["test_fleet_history.HistoryOfAServer.test_it_restarts_from_a_file"],
    ),
    "restart_empty": Fault(
        "the store restarts empty, `deny`", CAPACITY, RESTART, ["the store restarts empty"],
        ["test_fleet_history.HistoryOfAServer.test_it_restarts_empty"],
    ),
    "restart_local": Fault(
        "the same, `local`; D lasts to the end of the learning", OF_A_LOST_END, NOT_AT_ALL, ["the store restarts empty", OUTAGE],
        ["test_fleet_faults.Faults.test_the_store_restarts_empty"],
    ),
    "flushed": Fault(
        "FLUSHALL", CAPACITY, NOT_AT_ALL, [FLUSH], ["test_fleet_history.HistoryOfAServer.test_all_keys_are_flushed"],
    ),
    "deleted": Fault(
        "DEL of a live key, three times", "three capacities", NOT_AT_ALL, [FLUSH],
        ["test_fleet_faults.Faults.test_a_live_key_is_deleted"],
    ),
    "evicted": Fault(
        "eviction of live keys; for a moment the server is full and refuses writes", CAPACITY, "2 s", [FLUSH],
        ["test_fleet_history.HistoryOfAServer.test_live_keys_are_evicted"],
    ),
    "reset": Fault(
        "a reset, three times", "three capacities", NOT_AT_ALL, ["a reset, each time"],
        ["test_fleet_faults.Faults.test_a_key_is_reset"],
    ),
    "scripts_lost": Fault(
        "scripts are flushed all the time", NOTHING, NOT_AT_ALL, [],
        ["test_fleet_faults.Faults.test_scripts_are_flushed_all_the_time"],
    ),
    "clock_forward": Fault(
        "the store's clock is set forward by 0.25 s", "rate · δ", NOT_AT_ALL, ["the store's clock is set forward by δ"],
        ["test_fleet_clock.ShiftedClocks.test_the_clock_of_the_store_is_set_forward"],
    ),
    "clock_far_forward": Fault(
        "… by a minute", CAPACITY, NOT_AT_ALL, ["the store's clock is set forward by δ"],
        ["test_fleet_clock.ShiftedClocks.test_the_clock_of_the_store_is_set_far_forward"],
    ),
    "clock_back": Fault(
        "the store's clock is set back by 1 s", NOTHING, NOT_AT_ALL, ["the store's clock is set back"],
        ["test_fleet_clock.ShiftedClocks.test_the_clock_of_the_store_is_set_back"],
    ),
    "limit_changed": Fault(
        "a limit changes from bucket to window and back", "nothing beyond the larger of both limits", NOT_AT_ALL,
        ["a limit changes, even into another kind"], ["test_fleet_faults.Faults.test_a_limit_changes"],
    ),
    "permits_restart": Fault(
        "the store restarts empty, or FLUSHALL: permits", "as many permits as were held, at most one limit", NOT_AT_ALL, [],
        ["test_fleet_permits.Permits.test_the_store_restarts_empty"],
    ),
    "permits_failover": Fault(
        "a replica takes over that lacks the last permits", "as many permits as it lacks, at most one limit", NOT_AT_ALL, [],
        ["test_fleet_permits.Permits.test_a_replica_that_lacks_the_last_permits_takes_over"],
    ),
    "permits_clock_forward": Fault(
        "the store's clock is set forward by δ: permits", "as many permits as would have ended within δ, at most one limit",
        NOT_AT_ALL, [], ["test_fleet_permits.Permits.test_the_clock_of_the_store_is_set_forward"],
    ),
    "permits_clock_back": Fault(
        "the store's clock is set back by δ: permits", NOTHING, "δ, for permits that nobody gives back", [],
        ["test_fleet_permits.Permits.test_the_clock_of_the_store_is_set_back"],
    ),
}


def record(test, name, over, term, refused, refused_most):
    """`over`: capacities admitted beyond the bound of one bucket; `term`: the stated maximum, or
    None if everything may pass. `refused`: seconds for which a client with room was refused, and
    the stated maximum."""
    assert name in FAULTS, name
    over, refused = max(0, over), max(0, refused)
    of_term = "" if term is None else f" of {term:.2f}"
    print(f"\n{name}: {over:.2f}{of_term} capacities besides; refused for {refused:.2f} s of {refused_most:.2f}")
    if path := os.environ.get(RECORDS):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": name, "over": over, "term": term, "refused": refused, "most": refused_most}) + "\n")
    if term is not None:
        test.assertLessEqual(over, term + 1e-9, f"{name}: more was admitted than is stated")
    test.assertLessEqual(refused, refused_most + SLACK_SECONDS, f"{name}: a client with room was refused for too long")


HEAD = "| fault | on top, stated | measured | refused at most, stated | measured |\n| --- | --- | --- | --- | --- |\n"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def number(value):
    """The number with two digits, as short as possible."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rows_of(page):
    """A row of the table in the page: the fault, the stated and measured excess, the stated and
    measured refusal."""
    begin = page.index(HEAD) + len(HEAD)
    return ROW.findall(page[begin : page.index("\n\n", begin) + 1])


def table(records, known=()):
    """The worst figure measured for each fault. Faults that were not measured keep the rows
    `known`."""
    worst, cells = {}, {happens: (on_top, refused) for happens, _, on_top, _, refused in known}
    for found in records:
        name, key = found["fault"], (found["over"] / (found["term"] or 1), found["refused"])
        if name not in worst or key > worst[name]:
            worst[name] = key
            of_term = f" of {number(found['term'])}" if found["term"] else ""
            cells[FAULTS[name].happens] = (number(found["over"]) + of_term, f"{found['refused']:.1f} s")
    lines = []
    for fault in FAULTS.values():
        on_top, refused = cells.get(fault.happens, ("–", "–"))
        lines.append(f"| {fault.happens} | {fault.on_top} | {on_top} | {fault.refused} | {refused} |\n")
    return HEAD + "".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--headgate", required=True)
    options.add_argument("--write", metavar="PAGE", help="writes the measured figures into this page")
    options.add_argument("faults", nargs="*", help="only these: " + " ".join(FAULTS))
    options = options.parse_args()
    names = options.faults or list(FAULTS)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as records:
        words = [sys.executable, "-B", "-m", "unittest", *(test for name in names for test in FAULTS[name].tests)]
        env = {**os.environ, "HEADGATE_BINARY": os.path.abspath(options.headgate), RECORDS: records.name}
        code = subprocess.run(words, cwd=os.path.dirname(os.path.abspath(__file__)), env=env, stdout=sys.stderr).returncode
        found = list(map(json.loads, records))
    print(table(found), end="")
    if options.write and code == 0:
        with open(options.write, encoding="utf-8") as file:
            page = file.read()
        begin = page.index(HEAD)
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(page[:begin] + table(found, rows_of(page)) + page[page.index("\n\n", begin) + 1 :])
    return code


if __name__ == "__main__":
    sys.exit(main())
