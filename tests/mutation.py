# SPDX-License-Identifier: Apache-2.0
"""Changes lines of the code one at a time, and looks whether a test notices.

``python -m tests.mutation --seed 7 --count 200 tacker_k8s_mgmt/remote`` works in copies
of the tree and prints each mutant that survives as a diff. A mutant meets the tests
that name its module, then those that name a module which imports it, up to a time
limit. Neither mutmut nor cosmic-ray chooses mutants by a seed, or tests by module.
"""

import argparse
import ast
import difflib
import functools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tacker_k8s_mgmt.model.untrusted import parse_python
from tacker_k8s_mgmt.tools.cli.commands import COMMANDS
from tests.tree import ROOT

PACKAGE = "tacker_k8s_mgmt"
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "*.pyc")
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutant:
    """One changed place.

    :param path: of the file, from the root of the tree.
    :param start, end: the place in the file, in bytes.
    """

    path: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """As ``diff -u`` without context."""
        before = source.decode().splitlines()
        after = self.applied(source).decode().splitlines()
        lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        return "\n".join([f"{self.path}:{self.line}", *lines])


def _tree(source: bytes) -> ast.Module:
    tree = parse_python(source)
    assert tree is not None
    return tree


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Every mutant of a file."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node, changed in _changes(_tree(source)):
        text = ast.unparse(changed)
        if isinstance(changed, ast.expr):
            text = f"({text})"
        begin = starts[node.lineno - 1] + node.col_offset
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        yield Mutant(path, node.lineno, begin, end, text)


Place = ast.expr | ast.stmt


def _changes(tree: ast.AST) -> Iterator[tuple[Place, Place]]:
    """Nodes, and what each is replaced by."""
    for node in ast.iter_child_nodes(tree):
        if _is_text(node):
            continue
        if isinstance(node, ast.expr | ast.stmt):
            for changed in _of_node(node):
                yield node, changed
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            test = node.test
            if isinstance(test, ast.Name | ast.Call | ast.Attribute):
                yield test, ast.UnaryOp(op=ast.Not(), operand=test)
        yield from _changes(node)


def _is_text(node: ast.AST) -> bool:
    """Whether a node is for people or type checkers: logs, annotations, docstrings."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.arg():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="LOG")))):
            return True
        case ast.AnnAssign(value=None) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Raise():
            return True
    return False


def _of_node(node: Place) -> Iterator[Place]:
    match node:
        case ast.Compare(left=left, ops=[op, *ops], comparators=others):
            changed = _COMPARED[type(op)]()
            yield ast.Compare(left=left, ops=[changed, *ops], comparators=others)
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield ast.BoolOp(op=other, values=values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(value=not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value=value + 1)
        case ast.Constant(value=str() as value) if value and " " not in value:
            yield ast.Constant(value=f"{value}x")
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield ast.Return(value=ast.Constant(value=None))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Call(func=func, args=[first, second, *rest], keywords=keywords):
            if ast.dump(first) != ast.dump(second):
                swapped = [second, first, *rest]
                yield ast.Call(func=func, args=swapped, keywords=keywords)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, and names of modules that it imports from."""
    found: set[str] = set()
    for node in ast.walk(_tree(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


@functools.cache
def tests_of(path: str, folders: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The test files that meet a mutant of a file: the closest first, in stages."""
    module, stem = _module(path), Path(path).stem
    tests = [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("test_*.py"))
    ]

    def naming(names: Iterable[str]) -> list[str]:
        wanted = set(names)
        return [str(t.relative_to(ROOT)) for t in tests if wanted & _imports(t)]

    package = Path(path).parent.relative_to(PACKAGE)
    beside = {_nearest(ROOT / folder, package) for folder in folders}
    beside -= {ROOT / folder for folder in folders}
    named = [
        str(t.relative_to(ROOT))
        for t in tests
        if t.parent in beside and t.stem.startswith(f"test_{stem}")
    ]
    sources = (ROOT / PACKAGE).rglob("*.py")
    users = {
        _module(str(s.relative_to(ROOT))) for s in sources if module in _imports(s)
    }
    package_tests = [str(t.relative_to(ROOT)) for t in tests if t.parent in beside]
    first = list(dict.fromkeys([*named, *naming([module])]))
    # A command is run by its words, without an import.
    commands = [name for name in COMMANDS if Path(path).parent.name == "commands"]
    words = [name for name in commands if name.split()[0] == stem]
    spellings = [name.replace(" ", by) for name in words for by in " -_"]
    spellings += [name.replace(" ", '", "') for name in words]
    mentioning = [
        str(t.relative_to(ROOT))
        for t in tests
        if any(word in t.read_text() for word in spellings)
    ]
    second = [
        t
        for t in dict.fromkeys([*mentioning, *naming(users), *package_tests])
        if t not in set(first)
    ]
    return tuple(tuple(stage) for stage in (first, second) if stage)


def _nearest(folder: Path, package: Path) -> Path:
    """The folder of a package's tests, or else of the package above it."""
    place = folder / package
    while not place.is_dir() and place != folder:
        place = place.parent
    return place


class Copy:
    """A copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, directory: Path, limit: float) -> None:
        self._root = directory / "tree"
        self._limit = limit
        shutil.copytree(ROOT, self._root, ignore=_LEFT_OUT, symlinks=True)

    def outcome(self, mutant: Mutant, folders: tuple[str, ...]) -> str:
        """``killed``, ``survived`` or ``undecided`` at the time limit."""
        place = self._root / mutant.path
        source = place.read_bytes()
        place.write_bytes(mutant.applied(source))
        try:
            for files in tests_of(mutant.path, folders):
                result = self._run(files)
                if result != "survived":
                    return result
        finally:
            place.write_bytes(source)
        return "survived"

    def _run(self, files: Sequence[str]) -> str:
        options = ("-x", "-q", "-p", "no:cacheprovider", "--no-header")
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._root),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=self._root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return "killed" if process.wait(self._limit) else "survived"
        except subprocess.TimeoutExpired:
            return "undecided"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()


def chosen(places: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """A sample of the mutants of these files and directories."""
    files = sorted(
        {
            str(path.relative_to(ROOT))
            for place in places
            for path in [ROOT / place, *(ROOT / place).rglob("*.py")]
            if path.suffix == ".py"
        }
    )
    every = [one for path in files for one in mutants(path, (ROOT / path).read_bytes())]
    pick = random.Random(seed)  # noqa: S311 - a sample, no secret
    return pick.sample(every, min(count, len(every)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description=__doc__
    )
    parser.add_argument("places", nargs="+", help="files and directories")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a stage")
    parser.add_argument("--tests", nargs="+", default=["tests/unit", "tests/contract"])
    parser.add_argument("--list", action="store_true", help="show the mutants only")
    options = parser.parse_args(arguments)
    sample = chosen(options.places, options.seed, options.count)
    sources = {one.path: (ROOT / one.path).read_bytes() for one in sample}
    if options.list:
        for one in sample:
            print(one.diff(sources[one.path]))
        return 0
    counts = {"killed": 0, "survived": 0, "undecided": 0}
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(directory) / str(number), options.limit))

        def outcome(one: Mutant) -> tuple[Mutant, str]:
            copy = copies.get()
            try:
                return one, copy.outcome(one, tuple(options.tests))
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            runs = [pool.submit(outcome, one) for one in sample]
            for run in as_completed(runs):
                one, result = run.result()
                counts[result] += 1
                if result != "killed":
                    print(f"{result}: {one.diff(sources[one.path])}\n", flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
