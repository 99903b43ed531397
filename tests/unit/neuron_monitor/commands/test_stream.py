"""Reports on their way to sinks."""

import json

import orjson

from neuron_monitor.commands.stream import Lines, write_reports

REPORT = {"system_data": orjson.Fragment(b'{"memory_info":{"memory_total_bytes":5}}'), "period": 1.0}


class Kept:
    def __init__(self):
        self.reports = []

    def write(self, report):
        self.reports.append(report)


def test_a_sink_gets_values_where_a_part_was_text_already():
    kept = Kept()
    write_reports(iter([REPORT]), [kept])
    assert kept.reports == [{"system_data": {"memory_info": {"memory_total_bytes": 5}}, "period": 1.0}]


def test_standard_output_and_another_sink_get_the_same_report(capfd):
    kept = Kept()
    write_reports(iter([REPORT, REPORT]), [Lines(), kept], count=1)
    assert json.loads(capfd.readouterr().out) == kept.reports[0]
    assert len(kept.reports) == 1
