"""The first answer at once: plain kernels, a child that compiles, and what becomes of it."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stentor
from stentor import _jit
from stentor.engine import cold, warm
from stentor.errors import NeverMatchesWarning, StentorError
from stentor.index.catalog import names
from stentor.index.packed.insert import Merge
from tests.support import grid, strategies
from tests.support.drawn_once import for_each
from tests.support.oracle import Oracle

README = Path(__file__).parents[2] / "README.md"
#: A child that compiles nothing, says something, and ends when it is let.
OBEDIENT = "import sys; print('scan: subscribe', flush=True); sys.stdin.read()"


def first_example() -> str:
    """The first program of the README."""
    return README.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]


def run(code: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What *code* says in a process of its own, whose child does not outlive it."""
    own = {"NUMBA_CACHE_DIR": str(cache), "STENTOR_WAIT": "", "STENTOR_COMPILING": ""}
    own |= {"STENTOR_LINGER": "0", "STENTOR_QUIET": "", "NUMBA_DISABLE_JIT": "0"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | own | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def ends_soon(process: int) -> bool:
    until = time.monotonic() + 30
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_alive(process)


CHILD = """
from stentor.engine import cold
print(cold.compilation("scan")._process.pid, flush=True)"""


def test_the_first_example_needs_no_compiler_and_says_once_that_there_is_one(tmp_path):
    timed = first_example() + CHILD + "\nimport time; print(time.process_time())"
    done = run(timed, tmp_path)
    *answers, child, seconds = done.stdout.splitlines()
    assert answers[:3] == ["['ana', 'ben']", "Changes(added=[], removed=['e1'])", "[('ben', 2.0)]"]
    assert done.stderr.count("compiling") == 1
    assert done.stderr.count("\n") == 1
    assert float(seconds) < 3
    assert ends_soon(int(child))
    again = run(first_example() + CHILD, tmp_path)
    assert again.stderr == ""
    assert ends_soon(int(again.stdout.split()[-1]))


# What becomes of the child of a script that is over before it.

#: A script that starts a child with a compiler of its own, and is over.
SHORT = """
from stentor.engine import cold
cold._START = cold._START.replace("main()", {compiler!r})
cold.compilation("scan").is_running()
print(cold.compilation("scan")._process.pid, flush=True)
"""
COMPILER = """
import itertools, time
from pathlib import Path
from tempfile import TemporaryDirectory
from stentor.engine import warm
def compile_kernels(name, announce):
    with TemporaryDirectory(dir={folder!r}, prefix="at-work-"):
        {work}
warm.compile_kernels = compile_kernels
main()
"""


@pytest.fixture
def left(tmp_path):
    """Runs a short script whose child works as told; the child, which no test leaves behind."""
    children = []

    def left(work: str, end: str = "", linger: str = "60") -> int:
        compiler = COMPILER.format(folder=str(tmp_path), work=work)
        code = SHORT.format(compiler=compiler) + end
        if end:
            with pytest.raises(subprocess.CalledProcessError) as raised:
                run(code, tmp_path, STENTOR_LINGER=linger)
            assert raised.value.returncode == -signal.SIGKILL
            children.append(int(raised.value.stdout))
        else:
            children.append(int(run(code, tmp_path, STENTOR_LINGER=linger).stdout))
        return children[-1]

    yield left
    for child in children:
        if is_alive(child):
            os.kill(child, signal.SIGKILL)
            assert ends_soon(child)


def appears(path: Path) -> bool:
    until = time.monotonic() + 30
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return path.exists()


KILLED = "import os; os.kill(os.getpid(), 9)"
STAYS = "Path({!r}).touch(); time.sleep(300)"
#: As a compiler is: it never waits.
BUSY = "any(one < 0 for one in itertools.count())"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no process groups of this kind")
@pytest.mark.parametrize("end", ["", KILLED], ids=["is over", "is killed"])
def test_the_child_of_a_script_that_ends_goes_on_until_it_is_done(left, tmp_path, end):
    child = left(STAYS.format(str(tmp_path / "begun")), end)
    assert appears(tmp_path / "begun")
    assert is_alive(child)
    os.kill(child, signal.SIGTERM)
    assert ends_soon(child)
    done = left(
        f"time.sleep(0.5); announce('stage'); Path({str(tmp_path / 'done')!r}).touch()", end
    )
    assert appears(tmp_path / "done")
    assert ends_soon(done)
    assert not list(tmp_path.glob("at-work-*"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no process groups of this kind")
def test_a_child_that_is_left_is_out_of_the_way(left, tmp_path):
    child = left(STAYS.format(str(tmp_path / "begun")))
    assert appears(tmp_path / "begun")
    assert os.getsid(child) == os.getpgid(child) == child
    until = time.monotonic() + 30
    while os.getpriority(os.PRIO_PROCESS, child) < 10 and time.monotonic() < until:
        time.sleep(0.05)
    assert os.getpriority(os.PRIO_PROCESS, child) >= 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no process groups of this kind")
@pytest.mark.parametrize("linger", ["0", "0.5", "nan", "-1"])
def test_a_child_that_is_left_ends_by_itself_and_tidies_up(left, tmp_path, linger):
    assert ends_soon(left(BUSY, linger=linger))
    assert not list(tmp_path.glob("at-work-*"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no process groups of this kind")
def test_of_children_that_are_left_one_goes_on(left, tmp_path):
    first = left(STAYS.format(str(tmp_path / "begun")))
    assert appears(tmp_path / "begun")
    assert ends_soon(left(STAYS.format(str(tmp_path / "second"))))
    assert is_alive(first)
    assert not (tmp_path / "second").exists()


def test_an_engine_waits_for_its_kernels_where_it_is_told_to(tmp_path):
    code = "import stentor; print(type(stentor.Engine()._lock).__name__)"
    assert run(code, tmp_path).stdout == "ColdLock\n"
    assert run(code, tmp_path, STENTOR_WAIT="1").stdout == "RLock\n"
    assert run(code, tmp_path, NUMBA_DISABLE_JIT="1").stdout == "RLock\n"


# With a child that does what a test wants.


@pytest.fixture
def waited(monkeypatch):
    """Engines of scans whose kernels seem to be missing, and a child that waits."""
    monkeypatch.setenv("STENTOR_WAIT", "0")
    monkeypatch.setenv("STENTOR_COMPILING", "1")
    monkeypatch.setattr(cold, "is_compiled", lambda *packages: False)
    monkeypatch.setattr(cold, "_START", OBEDIENT)
    cold.compilation.cache_clear()
    known = len(cold._COMPILATIONS)
    yield
    for one in cold._COMPILATIONS[known:]:
        one.stop()
        one.begin(is_small=True)  # it notices
    del cold._COMPILATIONS[known:]
    cold.compilation.cache_clear()
    assert not _jit._PLAIN_ALLOWED


def filled(count: int) -> stentor.Engine:
    engine = stentor.Engine("scan", clock=None)
    for number in range(count):
        engine.subscribe(f"s{number}", f"price < {number} AND has_all(text, 'a')")
    return engine


def finish(name: str = "scan") -> None:
    """Let the child end."""
    process = cold.compilation(name)._process
    process.stdin.close()
    process.wait()


@pytest.fixture
def calls(monkeypatch):
    """How often kernels were called compiled while they could be plain."""
    counted = []
    compiled = _jit._Kernel.__call__
    monkeypatch.setattr(
        _jit._SwitchableKernel.__mro__[1],
        "__call__",
        lambda self, *given: counted.append(self) or compiled(self, *given),
        raising=False,
    )
    return counted


@pytest.mark.usefixtures("waited")
def test_a_small_engine_answers_plainly_until_the_child_is_done(calls):
    engine = filled(3)
    assert isinstance(engine._lock, cold.ColdLock)
    event = {"id": "e", "price": 1, "text": "A b"}
    assert engine.publish(event) == ["s2"]
    assert engine.top(event, k=1) == [("s2", 2.0)]
    assert not calls
    finish()
    assert engine.publish(event) == ["s2"]
    assert not isinstance(engine._lock, cold.ColdLock)
    assert engine.top(event, k=1) == [("s2", 2.0)]


@pytest.mark.usefixtures("waited")
def test_a_large_engine_waits_and_shows_how_it_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(cold, "_SECONDS_BETWEEN", -1)
    monkeypatch.setattr(cold, "_START", OBEDIENT.replace("sys.stdin.read()", "print('scan: top')"))
    monkeypatch.setattr(cold, "MANY", -1)  # the call that starts the child waits for it
    engine = filled(1)
    assert not isinstance(engine._lock, cold.ColdLock)
    said = capsys.readouterr().err
    assert "compiled scan: subscribe" in said
    assert "compiled scan: top" in said


@pytest.mark.usefixtures("waited")
@pytest.mark.parametrize("count", [3, 40])
def test_a_large_batch_waits_and_a_small_one_does_not(monkeypatch, count):
    monkeypatch.setattr(cold, "MANY", 30)
    monkeypatch.setattr(cold, "_START", OBEDIENT if count == 3 else "")
    engine = filled(1)
    events = [{"op": "publish", "id": f"e{n}", "price": -1, "text": "a"} for n in range(count)]
    assert engine.step(events)[count - 1] == ["s0"]
    assert isinstance(engine._lock, cold.ColdLock) == (count == 3)


@pytest.mark.usefixtures("waited")
def test_a_child_that_fails_or_cannot_start_changes_nothing(monkeypatch):
    monkeypatch.setattr(cold, "_START", "raise SystemExit(1)")
    assert filled(3).publish({"id": "e", "price": 1, "text": "a"}) == ["s2"]
    cold.compilation("scan")._process.wait()
    cold.compilation.cache_clear()
    monkeypatch.setattr(cold, "_PYTHON", "/no/such/python")
    assert filled(3).publish({"id": "e", "price": 1, "text": "a"}) == ["s2"]
    assert cold.compilation("scan").is_over


@pytest.mark.usefixtures("waited")
def test_threads_go_on_while_kernels_become_compiled():
    engine, wrong = filled(20), []

    def publish(number):
        for _ in range(30):
            found = engine.publish({"id": "e", "price": number, "text": "a"})
            if len(found) != 19 - number:
                wrong.append((number, found))

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    finish()
    for thread in threads:
        thread.join()
    publish(0)  # the others may have been done before the child was
    assert wrong == []
    assert not isinstance(engine._lock, cold.ColdLock)


@pytest.mark.usefixtures("waited")
def test_what_is_redundant_among_a_few_needs_no_compiler(calls):
    engine = filled(3)
    assert [tuple(one) for one in engine.redundant()] == [("s0", "s2"), ("s1", "s2")]
    assert not calls
    finish("covering")


@pytest.mark.usefixtures("waited")
def test_a_small_folder_is_opened_without_kernels(calls, tmp_path):
    engine = filled(3)
    engine.publish({"id": "live", "price": 1, "text": "a"}, until=9, time=0)
    engine.save(tmp_path / "engine")
    for verify in (None, False):
        opened = stentor.Engine.open(tmp_path / "engine", clock=None, verify=verify)
        assert opened.publish({"id": "e", "price": 1, "text": "a"}) == ["s2"]
        assert opened.subscribe("new", "price = 1").added == ["live"]
    assert not calls


@pytest.mark.usefixtures("waited")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on Windows")
def test_a_forked_process_compiles_for_itself():
    engine = filled(3)
    child = cold.compilation("scan")._process.pid
    process = os.fork()
    if not process:
        done = cold.compilation("scan").is_over and engine.publish({"id": "e", "price": 1}) == []
        os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert is_alive(child)
    assert isinstance(engine._lock, cold.ColdLock)


# Plain kernels say what compiled ones say, and go on with what those have built.


def comparable(answers):
    return [type(one) if isinstance(one, StentorError) else one for one in answers]


@given(
    history=strategies.histories(max_size=16),
    event=strategies.events(),
    plain=st.lists(st.booleans(), min_size=16, max_size=16),
)
@for_each("index", names())
def test_records_may_be_taken_plainly_or_not(index, history, event, plain):
    engine = stentor.Engine(index, schema=grid.schema(), clock=None)
    oracle = Oracle(schema=grid.schema())
    _jit.allow_plain(test_records_may_be_taken_plainly_or_not)
    try:
        for record, is_plain in zip(history, plain, strict=False):
            with _jit.plainly(is_plain):
                answers = list(engine.step([record]))
            assert comparable(answers) == comparable(oracle.answers([record]))
        best = []
        for is_plain in (True, False):
            with _jit.plainly(is_plain):
                best.append(engine.top(event))
        assert best[0] == best[1]
    finally:
        _jit.end_plain(test_records_may_be_taken_plainly_or_not)


@pytest.mark.skipif(_jit.is_plain(), reason="plain kernels merge nothing in threads")
def test_warming_packed_merges_segments_in_threads(monkeypatch):
    """Or the first merge of a large index is a call that compiles for seconds."""
    results = []
    run_merge = Merge._run

    def run_and_note(merge, *given):
        run_merge(merge, *given)
        results.append(merge.result)

    monkeypatch.setenv(cold.WAIT, "1")
    monkeypatch.setattr(Merge, "_run", run_and_note)
    with warnings.catch_warnings(category=NeverMatchesWarning, action="ignore"):
        list(warm._lived(f"packed {warm._SETTINGS['packed'][-1]}"))
    assert results
    assert None not in results
