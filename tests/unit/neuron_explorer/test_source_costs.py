"""The line of a file with which the page Source begins."""

from neuron_explorer.source_costs import LineWork, opening_line
from neuron_profile.analysis.line_times import LineTimes


def work(instructions=0):
    return LineWork(instructions=instructions)


def test_the_line_that_is_charged_most():
    assert opening_line(LineTimes({3: 5.0, 7: 9.0}), {3: work(4), 7: work(1)}) == 7


def test_the_costliest_line_of_a_kernel_instead_of_the_line_that_launches_it():
    times = LineTimes({40: 9.0}, {12: 1.0, 14: 2.0})
    kernel = {12: work(4), 14: work(1)}
    assert opening_line(times, kernel) == 14
    assert opening_line(times, {**kernel, 40: LineWork(host_ns=3)}) == 14


def test_a_launch_of_what_is_in_another_file_stays():
    assert opening_line(LineTimes({40: 9.0}), {40: LineWork(host_ns=3)}) == 40
    assert opening_line(LineTimes({}), {}) == 0
