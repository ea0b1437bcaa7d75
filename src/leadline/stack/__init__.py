"""What a test puts above drives, file systems, volumes and arrays, and takes down again."""
