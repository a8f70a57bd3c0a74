"""Arrays on disk: in folders that are replaced as a whole, in folders of files, in one file."""
