"""Regular expressions → tables that kernels run.

`syntax` reads them, `automaton` builds the table, `budget` bounds what one expression's take.

RE2 says what a pattern means (`evaluate` asks it); the table accepts the same texts, which RE2
itself has a hand in: it says which characters each atom of a pattern stands for.
"""

from stentor.language.regular.automaton import Automaton, compiled
from stentor.language.regular.budget import TableBudget
from stentor.language.regular.syntax import cases, folded_like, found_in

__all__ = ["Automaton", "TableBudget", "cases", "compiled", "folded_like", "found_in"]
