"""What every kernel needs to run: its memory, its compilation, and the threads that share its rows."""
