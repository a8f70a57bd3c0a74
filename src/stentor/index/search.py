"""Where the values of an event's attributes are in its columns."""

from __future__ import annotations

from stentor._jit import kernel_inline
from stentor.encoding.columns import EventColumns

#: The position of an attribute that the event lacks.
NO_VALUE = -1


@kernel_inline
def find_value(events: EventColumns, event: int, attribute: int) -> int:
    """The position of the event's value of *attribute*, or NO_VALUE. Cost: O(log values)."""
    start, last = events.value_start[event], events.value_start[event + 1]
    stop = last
    while start < stop:
        middle = (start + stop) >> 1
        if events.attribute[middle] < attribute:
            start = middle + 1
        else:
            stop = middle
    if start < last and events.attribute[start] == attribute:
        return int(start)
    return NO_VALUE
