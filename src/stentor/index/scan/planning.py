"""Which lines of a block an event asks for."""

from __future__ import annotations

from stentor._jit import kernel, kernel_inline
from stentor.encoding.columns import EventColumns, Float64, Int32
from stentor.index.bounds import X, Y
from stentor.index.scan.entering import cell_of
from stentor.index.scan.filters import MOST_LEFT
from stentor.index.scan.layout import BUCKETS, Filters, Plan
from stentor.index.scan.term_lines import ask_term_lines
from stentor.index.signature import event_signature


@kernel
def plan_events(
    events: EventColumns, filters: Filters, left: Float64, order: Float64, plan: Plan
) -> None:
    """Fill *plan*: for each event a line, or several to be joined, for each filter that pays.

    *left* is the share of alternatives that each line leaves; *order* is scratch (filters,).
    """
    width = len(filters.attribute)
    for event in range(len(plan.used)):
        plan.signature[event] = event_signature(events, event, filters.first_of)
        first = plan.first[event * width : (event + 1) * width]
        last = plan.last[event * width : (event + 1) * width]
        used, survival = 0, 1.0
        value, stop = events.value_start[event], events.value_start[event + 1]
        for filter_row in range(width):  # both ascend by attribute
            while value < stop and events.attribute[value] < filters.attribute[filter_row]:
                value += 1
            has_value = value < stop and events.attribute[value] == filters.attribute[filter_row]
            low_line = high_line = filters.line_start[filter_row]
            if has_value:
                axis = filters.axis[filter_row]
                low = events.high[value] if axis == Y else events.low[value]
                high = events.low[value] if axis == X else events.high[value]
                low_line += 1 + cell_of(filters, filter_row, low)
                high_line += 1 + cell_of(filters, filter_row, high)
            share = 0.0
            for line in range(low_line, high_line + 1):
                share += left[line]
            if share <= MOST_LEFT and low_line <= high_line:
                insert_sorted(order, first, last, used, share, low_line, high_line)
                used += 1
                survival *= share
        plan.term_lines[event] = 0
        if len(filters.bucket_use) > 0:
            term_line = plan.term_line[event * (1 + BUCKETS) : (event + 1) * (1 + BUCKETS)]
            asked = ask_term_lines(events, event, term_line)
            share = 0.0
            for line in term_line[:asked]:
                share += left[line]
            if share <= MOST_LEFT:
                plan.term_lines[event] = asked
                survival *= share
        plan.used[event] = used
        plan.survival[event] = survival


@kernel_inline
def insert_sorted(
    order: Float64, first: Int32, last: Int32, used: int, share: float, low: int, high: int
) -> None:
    """Put the lines *low* … *high* among the *used* ones before them, by the share they leave."""
    place = used
    while place > 0 and order[place - 1] > share:
        order[place] = order[place - 1]
        first[place], last[place] = first[place - 1], last[place - 1]
        place -= 1
    order[place] = share
    first[place], last[place] = low, high
