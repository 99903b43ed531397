"""The rules of the advice, one a file; each has `find(context)`."""
