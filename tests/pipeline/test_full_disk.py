"""A disk that becomes full at any step of a batch: told in a sentence, and nothing is lost."""

from pathlib import Path

from stentor.errors import FolderError
from tests.pipeline.in_process import Stream, canonical
from tests.pipeline.test_stream_equals_engine import deliveries, expected
from tests.programs.leftovers import leftovers
from tests.programs.small_disk import filled, small_disk
from tests.programs.stream_in_process import RECORDS, SETTINGS, history

KILOBYTE = 1024
READ = 5  # batches
CHOSEN = SETTINGS | {"keep_deliveries": None, "partition": None}  # all rows, in one folder


def test_a_disk_that_is_full_at_any_step_stops_the_stream_until_there_is_room(
    tmp_path: Path,
) -> None:
    records = canonical(history())
    attributes = records.schema.field("attributes").type
    sentences: set[str] = set()
    with small_disk(tmp_path / "disk", 16) as disk:
        for batch in range(READ):
            part = records.slice(batch * RECORDS, RECORDS)
            left = 0
            while True:
                stream = Stream(disk / "out", attributes, **CHOSEN)
                assert stream.next in (batch, batch + 1)
                try:
                    if stream.next == batch:
                        with filled(disk, left=left):
                            stream.batch([part])
                    break
                except FolderError as error:
                    sentences.add(str(error))
                    left += 8 * KILOBYTE
                finally:
                    stream.stop()
        Stream(disk / "out", attributes, **CHOSEN).stop()
        rows, _ = expected(history()[: READ * RECORDS], None)
        assert deliveries(disk / "out") == rows
        assert not leftovers(disk / "out")
    assert all("No space left on device; free some space" in one for one in sentences)
    written = {Path(one.partition(": ")[0]).parent.name for one in sentences}
    assert {"work", "segments", "live", "deliveries"} <= written
