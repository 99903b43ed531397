"""The line of a file with which the page Source begins."""

from neuron_explorer.source_costs import LineWork, opening_line


def work(instructions=0, kernel_ns=0.0):
    return LineWork(instructions=instructions, kernel_ns=kernel_ns)


def test_the_line_that_is_charged_most():
    assert opening_line({3: 5.0, 7: 9.0}, {3: work(4), 7: work(1)}) == 7


def test_the_costliest_line_of_a_kernel_instead_of_the_line_that_launches_it():
    kernel = {12: work(4, 1.0), 14: work(1, 2.0)}
    assert opening_line({40: 9.0}, kernel) == 14
    assert opening_line({40: 9.0}, {**kernel, 40: LineWork(host_ns=3)}) == 14


def test_a_launch_of_what_is_in_another_file_stays():
    assert opening_line({40: 9.0}, {40: LineWork(host_ns=3)}) == 40
    assert opening_line({}, {}) == 0
