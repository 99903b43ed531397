from neuron_monitor.api.layout import STATUS_NODES
from neuron_monitor.report.executions import ERROR_STATUSES, SUMMARY_STATUSES, summed


def test_every_status_but_success_is_an_error_of_exactly_one_kind():
    counted = [status for statuses in ERROR_STATUSES.values() for status in statuses]
    assert sorted(counted) == sorted(set(STATUS_NODES) - {"success"})


def test_each_status_is_summed_under_its_name():
    for position, status in enumerate(STATUS_NODES):
        statuses = [0] * len(STATUS_NODES)
        statuses[position] = 5
        errors = summed(statuses, ERROR_STATUSES)
        assert sum(errors.values()) == (0 if status == "success" else 5)
        ended = {name for names in SUMMARY_STATUSES.values() for name in names}
        assert sum(summed(statuses, SUMMARY_STATUSES).values()) == (5 if status in ended else 0)
