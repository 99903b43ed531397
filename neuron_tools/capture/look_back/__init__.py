"""Look-back capture: keeps the last seconds of a program's log, and makes a profile of them on demand."""
