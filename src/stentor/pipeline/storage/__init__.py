"""Where a pipeline keeps its files: `local` is a folder of a disk that all who use it see."""
