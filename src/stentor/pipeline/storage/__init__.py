"""Where a stream keeps its files: a folder of a disk, an object store or HDFS, behind one port.

`port` is what is asked of such a place, `local`, `objects` and `hdfs` are the places, `folder` is a
stream's folder as one process sees it, with copies of what it reads in `copies`, `writers` sees to
it that one writer at a time commits.
"""
