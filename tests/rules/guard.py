"""What a guard is to the registry."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.harness import Database

Test = Callable[[Database], None]


@dataclass(frozen=True)
class Guard:
    """One guard, a way to take it away, and the tests that must each fail without it."""

    name: str
    removal: str
    tests: tuple[Test, ...]

    @property
    def live_name(self) -> str:
        """The object in the catalog; a policy may also be weakened in several ways."""
        return self.name.partition(" kept to ")[0]


def cases(test: Callable[..., None], *parameters: dict[str, Any]) -> list[Test]:
    """Name a test for some cases of its parametrisation."""
    return [partial(test, **case) for case in parameters]


def merged(guards: Iterable[Guard]) -> list[Guard]:
    """Join what is said of a guard in several places."""
    by_name: dict[str, Guard] = {}
    for guard in guards:
        before = by_name.get(guard.name)
        by_name[guard.name] = Guard(guard.name, guard.removal, (*(before.tests if before else ()), *guard.tests))
    return list(by_name.values())


def title(test: Test) -> str:
    if isinstance(test, partial):
        return f"{test.func.__name__}[{'-'.join(str(value) for value in test.keywords.values())}]"
    return test.__name__
