"""A scripted model: what it wants is the same on every attempt, and how and in which order it says so is not."""

import random
from dataclasses import dataclass
from typing import Any

STEPS = 12
# What each step is about. Several calls in one step are one answer of the model, in any order.
READS = {1: "order", 4: "customer", 8: "stock", 11: "order"}
CALLS = {3: ("refund", "mail customer"), 6: ("booking", "mail warehouse"), 9: ("mail carrier",)}
GOALS = tuple(goal for goals in CALLS.values() for goal in goals)
_OPENINGS = ("Dear all", "Hello", "Good day", "Hi there", "To whom it may concern")
_WORDS = ("we are sorry", "this is about your order", "please find below", "as promised", "in short", "quickly")


@dataclass(frozen=True)
class Call:
    """One call of a tool as the model has worded it this time."""

    goal: str
    tool: str
    args: dict[str, Any]


class Model:
    """The model of one attempt at one order."""

    def __init__(self, order: str, attempt: int, seed: int) -> None:
        self.order = order
        self._random = random.Random(f"{seed} {order} {attempt}")

    def thought(self) -> str:
        """Return something to record."""
        return self._words()

    def calls(self, step: int, missing: set[str]) -> list[Call]:
        """Return the calls of a step that the model still wants to make, in the order that it likes today."""
        goals = [goal for goal in CALLS.get(step, ()) if goal in missing]
        self._random.shuffle(goals)
        return [self._call(goal) for goal in goals]

    def _call(self, goal: str) -> Call:
        tool, _, about = goal.partition(" ")
        if tool == "refund":
            args = {"order": self.order, "cents": 500, "reason": self._words()}
        elif tool == "booking":
            args = {"order": self.order, "day": "monday"}
        else:
            args = {"to": about, "text": self._words(), "urgent": self._random.random() < 0.5}
        names = list(args)
        self._random.shuffle(names)
        return Call(goal, tool, {name: args[name] for name in names})

    def _words(self) -> str:
        words = self._random.sample(_WORDS, self._random.randint(2, 4))
        return f"{self._random.choice(_OPENINGS)}, {', '.join(words)}. {self._random.getrandbits(32):08x}"
