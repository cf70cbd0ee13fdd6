"""Puts load on a fleet and records each batch: when it was sent, when it was answered, and how many
requests passed.

The batches that lie within an interval give a lower bound of the requests admitted in the interval.
`excess` compares it with the bound of one bucket, admitted ≤ burst + rate · t.
"""

import bisect
import collections
import threading
import time
import types

from resp import Replies, encode

ANSWER_SECONDS = 30  # seconds; an answer that takes longer is a hang


def throttle(key, burst, rate):
    """CL.THROTTLE with this burst and this rate per second."""
    return encode("CL.THROTTLE", key, str(burst - 1), str(rate), "1")


def check(rule, value, domain="edge"):
    return encode("HG.CHECK", domain, "ENTRIES", "1", rule, value)


def passed(reply):
    """The number of requests that a reply admits, for either command; an error admits none."""
    if not isinstance(reply, list):
        return False
    return reply[1] == 1 if reply[0] == "allowed" else reply[0] == 0


def mode_of(reply):
    """The mode of a reply: exact, leased, local …; for CL.THROTTLE none, for an error `error`."""
    if not isinstance(reply, list):
        return "error"
    if reply[0] != "allowed":
        return None
    decision = reply[3][0]
    return decision[decision.index("mode") + 1]


ALONE = ("local", "open", "closed")  # modes of decisions made without the store

# `alone`: the number of decisions made without the store; `connection`: the number of the
# connection that carried the batch.
Batch = collections.namedtuple("Batch", "sent answered passed alone connection")


class Load:
    """Sends batches of commands to each instance, over its own connections, until it is stopped.

    `commands` maps a name to a command; a batch repeats one of them `batch` times, and the commands
    take turns. The next batch follows `pause` seconds after the answers, or, with `every`, is sent
    at this interval, and skipped if it is late. Ends without an error if an instance is killed
    (`ended` counts this); a missing answer is a failure.
    """

    def __init__(self, instances, commands, batch=40, connections=1, pause=0.005, every=None):
        self.commands = dict(commands)
        self.batch = batch
        self.pause = pause
        self.every = every
        self.batches = collections.defaultdict(list)  # by name
        self.modes = collections.defaultdict(collections.Counter)  # by name
        self.connections = len(instances) * connections
        self.asked = self.ended = 0
        self.hung = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.began = time.monotonic()
        self._threads = [
            threading.Thread(target=self._run, args=(instance, turn), daemon=True)
            for turn, instance in enumerate(list(instances) * connections)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, instance, number):
        names = list(self.commands)
        turn = number
        due = time.monotonic()
        try:
            with instance.connect() as connection:
                connection.settimeout(ANSWER_SECONDS)
                replies_of = Replies(connection)
                while not self._stop.is_set():
                    name = names[turn % len(names)]
                    turn += 1
                    sent = time.monotonic()
                    connection.sendall(self.commands[name] * self.batch)
                    replies = replies_of.take(self.batch)
                    answered = time.monotonic()
                    modes = collections.Counter(map(mode_of, replies))
                    alone = sum(modes[mode] for mode in (*ALONE, "error"))
                    with self._lock:
                        self.asked += len(replies)
                        self.batches[name].append(Batch(sent, answered, sum(map(passed, replies)), alone, number))
                        self.modes[name] += modes
                    due = max(due + self.every, answered) if self.every else answered + self.pause
                    self._stop.wait(due - time.monotonic())
        except TimeoutError:
            self.hung.append(f"no answer in {ANSWER_SECONDS} s from port {instance.port}")
        except (OSError, EOFError):
            with self._lock:
                self.ended += 1

    @staticmethod
    def now():
        """Now, by the clock of `batches`."""
        return time.monotonic()

    def take_modes(self):
        """The modes of decisions since the last call, by name."""
        with self._lock:
            modes, self.modes = self.modes, collections.defaultdict(collections.Counter)
        return modes

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * ANSWER_SECONDS)
        self.took = time.monotonic() - self.began
        if self.hung:
            raise AssertionError("; ".join(self.hung))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()

    def admitted(self, name):
        return sum(batch.passed for batch in self.batches[name])

    def excess(self, name, burst, rate):
        """The requests admitted beyond burst + rate · t, in the worst interval between batches; at
        most 0 if the bound holds."""
        return worst_excess(self.batches[name], burst, rate).excess


def worst_excess(batches, burst, rate, starts_max=300):
    """Examines all intervals from one of at most `starts_max` send times to any answer."""
    by_answer = sorted(batches, key=lambda batch: batch.answered)
    starts = sorted(batch.sent for batch in batches)
    worst = types.SimpleNamespace(excess=float("-inf"), interval=None, admitted=0)
    for start in starts[:: max(1, len(starts) // starts_max)]:
        admitted = 0
        first = bisect.bisect_left(by_answer, start, key=lambda batch: batch.answered)
        for batch in by_answer[first:]:
            if batch.sent < start:
                continue
            admitted += batch.passed
            excess = admitted - burst - rate * (batch.answered - start)
            if excess > worst.excess:
                worst = types.SimpleNamespace(excess=excess, interval=(start, batch.answered), admitted=admitted)
    return worst
