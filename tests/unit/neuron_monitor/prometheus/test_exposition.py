from hypothesis import given, settings, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from neuron_monitor.prometheus.exposition import Family, Labels, render

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
values = st.floats(allow_nan=False, allow_infinity=False)


def parsed(families):
    found = text_string_to_metric_families(render(families).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for each in found
        for sample in each.samples
    }


@settings(deadline=None)
@given(
    common=st.dictionaries(names, st.text(max_size=12)),
    own=st.dictionaries(names, st.text(max_size=12)),
    value=values,
)
def test_prometheus_reads_what_was_written(common, own, value):
    common = {name: text for name, text in common.items() if name not in own}
    family = Family("spam", "gauge", "Spam.")
    family.add(Labels(common).text(**own), value)
    assert parsed([family]) == {("spam", tuple(sorted({**common, **own}.items()))): value}


def test_labels_are_sorted_by_name():
    assert Labels({"region": "r", "a": "1"}).text(neuroncore="0") == 'a="1",neuroncore="0",region="r"'


def test_processes_that_share_a_tag_share_their_series():
    counter, share = Family("c", "counter", "C."), Family("u", "gauge", "U.", takes_maximum=True)
    for family in (counter, share):
        family.add('runtime_tag="a"', 2)
        family.add('runtime_tag="a"', 3)
    assert (counter.samples, share.samples) == ({'runtime_tag="a"': 5}, {'runtime_tag="a"': 3})


def test_a_family_without_samples_is_left_out():
    assert render([Family("spam", "gauge", "Spam.")]) == b""
