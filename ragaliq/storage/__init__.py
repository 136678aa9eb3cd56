"""Files that outlive the process: the SQLite store and what else must survive a restart."""
