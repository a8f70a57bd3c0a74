"""Standing subscriptions in a folder, memory-mapped when they are opened.

folder/
  subscriptions/   their columns, ids, texts, and the ids' order by hash
  index/           what the structure keeps beside the columns
"""

from __future__ import annotations

from pathlib import Path

from stentor.encoding.columns import SubscriptionColumns, sealed, subscription_count
from stentor.engine.names import IdOrder, Register, StringArrays, Strings
from stentor.engine.state import State
from stentor.index.bundles import bundle_of, with_prefix
from stentor.index.layered import layered
from stentor.index.storage import read_arrays, write_arrays
from stentor.index.structure import Structure

SUBSCRIPTIONS, INDEX = "subscriptions", "index"


def write_subscriptions(
    folder: Path,
    columns: SubscriptionColumns,
    ids: StringArrays,
    texts: StringArrays,
    structure: type[Structure],
) -> None:
    """Put subscriptions and a fresh *structure* over them into *folder*.

    It is the caller's to replace the folder as a whole (`new_folder`).

    Cost: building the structure, a sort of the ids' hashes.
    """
    write_arrays(
        folder / SUBSCRIPTIONS,
        {
            **with_prefix("columns", columns),
            **with_prefix("ids", ids),
            **with_prefix("texts", texts),
            **with_prefix("order", IdOrder.of(ids)),
        },
        kind=SUBSCRIPTIONS,
        meta={"count": subscription_count(columns)},
    )
    structure.build(columns).save(folder / INDEX)


def open_subscriptions(folder: Path, structure: type[Structure], *, verify: bool = False) -> State:
    """A state over what `write_subscriptions` put into *folder*; nothing is read or copied yet.

    Changes go into a layer above. With *verify* the sums of all files are compared.
    """
    arrays, _ = read_arrays(folder / SUBSCRIPTIONS, kind=SUBSCRIPTIONS, verify=verify)
    columns = sealed(bundle_of(SubscriptionColumns, "columns", arrays))
    if verify:
        read_arrays(folder / INDEX, kind=structure.name, verify=True)
    index = layered(structure).open(folder / INDEX, columns)
    ids = bundle_of(StringArrays, "ids", arrays)
    state = State(index, Register(ids, bundle_of(IdOrder, "order", arrays)))
    state.texts = Strings(bundle_of(StringArrays, "texts", arrays))
    state.watch_endings(columns.until)
    return state
