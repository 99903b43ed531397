"""Pieces that the pages are put together from. React escapes every text in them."""
