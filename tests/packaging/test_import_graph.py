"""The package's own imports: floors, each of which uses only those below it, and no circle."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "durable_pg"
# From the ground up. A folder is one name: what it holds may use each other, without a circle.
FLOORS = (
    ("types",),
    ("errors",),
    ("checkpoints",),
    ("_wire",),
    ("tools", "tables"),
    ("_async", "_sync"),
    ("__init__",),
    ("command_errors",),
    ("migrate",),
    ("_embedded",),
    ("demo",),
    ("cli", "pytest_plugin"),
    ("__main__",),
)
HEIGHT = {name: height for height, names in enumerate(FLOORS) for name in names}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, for type checking too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "durable_pg":
            base = node.module.removeprefix("durable_pg").removeprefix(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}" if base else alias.name
                found.add(whole if whole in MODULES else base or "__init__")
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("durable_pg.") for alias in node.names if "durable_pg." in alias.name}
    return found


# A package's face hands on what is behind it.
GRAPH = {
    name: {other for other in imported(path) if other != name and not name.startswith(f"{other}.")}
    for name, path in MODULES.items()
    if name != "__init__"
}


def floor(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def test_every_module_stands_on_a_floor() -> None:
    assert {floor(module) for module in MODULES} == set(HEIGHT)


def test_a_module_uses_only_floors_below_its_own() -> None:
    upward = {
        (module, other)
        for module, others in GRAPH.items()
        for other in others
        if floor(other) != floor(module) and HEIGHT[floor(other)] >= HEIGHT[floor(module)]
    }
    assert upward == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {name: set(others) for name, others in GRAPH.items()}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    assert left == {}


def test_what_goes_over_the_wire_is_put_together_without_any_io() -> None:
    reaching = {"psycopg_pool.ConnectionPool", "socket.socket", "asyncio", "selectors", "threading"}
    for name, path in MODULES.items():
        if floor(name) == "_wire":
            names = {
                f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for alias in node.names
            }
            assert names & reaching == set(), name
            assert not any("await " in line for line in path.read_text("utf-8").splitlines()), name
