"""For tests of Stentor, and for the tests of those who use it.

    oracle       the engine in its slowest form: what it must answer
    slow_index   an index in its slowest form, over the model
    checked      an index that does everything on a scan too and compares
    strategies   everything in the language, drawn by Hypothesis (which has to be installed)
    grid         the few hard values that it is drawn from
    plain        columns as plain Python values

Nothing else in the package imports these.
"""
