"""The five papers' evaluations run again: every figure and table, theirs beside ours.

scale        how much is measured: smoke, quick, full
curves       what an experiment gives: panels of curves
claims       what a paper says, and the written rule that judges it by our curves
experiment   a figure or table as an entry of the registry
registry     all of them
sweep        structures measured over one thing that varies
papers/      the experiments, paper by paper
run          one after the other, kept in a folder, resumed figure by figure
draw, page, summary, inventory
             pictures, the report, docs/reproduction.md, lab/inventory.md
"""
