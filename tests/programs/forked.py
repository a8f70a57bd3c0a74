"""Forks a process while another thread is in a call of an engine; prints what the child answers."""

import os
import signal
import sys
import threading
import traceback
import warnings

from stentor import Engine
from stentor.engine.ids import StringStore

warnings.simplefilter("ignore")  # Python itself warns of forks beside threads


def main(where: str) -> None:
    inside, is_over = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            is_over.wait()

    def clock() -> float:
        if where == "reading":
            wait()
        return 0.0

    real = StringStore.extend

    def extend(self: StringStore, strings: list[str]) -> None:
        wait()
        real(self, strings)

    engine = Engine(clock=clock)
    engine.subscribe("ana", "price < 3")
    engine.publish({"id": "e1", "price": 2}, until=60)
    if where == "changing":
        StringStore.extend = extend
        work = threading.Thread(target=lambda: engine.subscribe("ben", "price < 9"))
    else:
        work = threading.Thread(target=lambda: engine.top({"price": 2}))
    work.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            print(engine.subscribe("cleo", "price < 4"), flush=True)
            print(engine.publish({"id": "e2", "price": 2}), list(engine), flush=True)
            code = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    is_over.set()
    work.join()
    print(os.waitstatus_to_exitcode(status), list(engine), flush=True)


main(sys.argv[1])
