"""Errors cross processes: whatever is raised in a worker arrives as it was raised."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from stentor import errors
from stentor.errors import (
    AlreadyOverError,
    BrokenEngineError,
    CapacityError,
    DisagreementError,
    DuplicateEventError,
    ExpressionError,
    ExpressionSyntaxError,
    FolderError,
    JavaEndedError,
    LimitError,
    ReadOnlyError,
    RecordError,
    ServiceError,
    SettingsError,
    StentorError,
    StoreError,
    TypeConflictError,
    UnknownAttributeError,
    UnknownFunctionError,
    UnknownIdError,
)
from stentor.language.parser import parse
from stentor.service.links.frames import LinkRefusedError
from stentor.service.refusals import RefusedError

PLAIN = (
    StentorError,
    SettingsError,
    FolderError,
    CapacityError,
    ReadOnlyError,
    DisagreementError,
    BrokenEngineError,
    JavaEndedError,
    StoreError,
)
OF_EXPRESSIONS = (
    ExpressionError,
    ExpressionSyntaxError,
    UnknownAttributeError,
    UnknownFunctionError,
    TypeConflictError,
    LimitError,
)
OF_RECORDS = (RecordError, DuplicateEventError, AlreadyOverError)
FORMS = [
    *(kind("what was wrong") for kind in PLAIN),
    *(kind("wrong") for kind in OF_EXPRESSIONS),
    *(kind("wrong", hint="try this") for kind in OF_EXPRESSIONS),
    *(kind("wrong", text="price <", start=7, stop=8) for kind in OF_EXPRESSIONS),
    *(kind("wrong") for kind in OF_RECORDS),
    *(kind("wrong", field="price") for kind in OF_RECORDS),
    UnknownIdError("no subscription has the id 'ana'", id="ana"),
    ServiceError("the service does not answer", kind="unreachable"),
    RefusedError(429, "too_many", "too many connections", retry_after=5),
    LinkRefusedError(4410, "the brokers would form a ring"),
]


def kinds(kind):
    """*kind* and everything that it is the root of."""
    return {kind}.union(*map(kinds, kind.__subclasses__()))


def refused(text):
    """The error for *text*, placed in it."""
    with pytest.raises(StentorError) as caught:
        parse(text)
    return caught.value


def raise_error(number):
    """What a worker does."""
    raise FORMS[number]


def check_equal(again, error):
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


def test_there_is_an_example_of_every_error():
    own = {kind for kind in kinds(StentorError) if kind.__module__.startswith("stentor.")}
    assert own == {type(error) for error in FORMS}


def test_an_error_comes_back_from_pickle_and_copy_as_it_was():
    for error in (*FORMS, refused("price <"), refused("foo(1)")):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            check_equal(pickle.loads(pickle.dumps(error, protocol)), error)
        check_equal(copy.copy(error), error)
        check_equal(copy.deepcopy(error), error)


def test_an_error_of_a_worker_reaches_whoever_waits_for_it():
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        failed = [pool.submit(raise_error, number) for number in range(len(FORMS))]
        for error, future in zip(FORMS, failed, strict=True):
            check_equal(future.exception(), error)


def test_errors_are_reached_from_the_package_without_an_import_of_their_own():
    program = (
        "import sys, stentor\n"
        "heavy = {'numpy', 'numba', 'pyarrow'}.intersection(sys.modules)\n"
        "print(stentor.errors.LimitError.__name__, sorted(heavy), 'errors' in dir(stentor))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "LimitError [] True\n"
    assert errors.StentorError is StentorError
