from hypothesis import given, strategies as st

from neuron_explorer.address import Address

NAMES = st.text("abcdefgh", min_size=1).filter(lambda name: name not in ("profile", "path"))


def test_an_address_is_parsed() -> None:
    address = Address.parse("/source", "?profile=ab&start_ns=5&end_ns=9&file=%2Fa%20b.py")
    assert (address.path, address.profile, address.start_ns, address.end_ns) == ("/source", "ab", 5, 9)
    assert dict(address.parameters) == {"file": "/a b.py"}


def test_a_range_that_makes_no_sense_is_left_out() -> None:
    for search in ("?start_ns=9&end_ns=5", "?start_ns=5", "?start_ns=x&end_ns=9", "?start_ns=-1&end_ns=٣"):
        assert Address.parse("/", search) == Address.parse("/", "")


def test_another_page_takes_profile_and_range_along_but_not_filters() -> None:
    address = Address("/source", "ab", 5, 9, {"file": "a.py"})
    assert address.to("/memory") == "/memory?profile=ab&start_ns=5&end_ns=9"
    assert address.to(line=3) == "/source?profile=ab&start_ns=5&end_ns=9&file=a.py&line=3"
    assert address.to(file=None, start_ns=None, end_ns=None) == "/source?profile=ab"


@given(st.dictionaries(NAMES, st.text(min_size=1)))
def test_what_is_written_is_read(parameters: dict[str, str]) -> None:
    address = Address("/query", "ab", 1, 2, parameters)
    path, _, search = address.to().partition("?")
    assert Address.parse(path, search) == address
