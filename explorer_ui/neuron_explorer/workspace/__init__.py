"""The workspace: the pages of a profile as panels of one screen, tied together by what is chosen."""
