"""The line of a file with which the page Source begins."""

from neuron_explorer.source_costs import LineWork, opening_line


def work(instructions=0, **engine_ns):
    return LineWork(instructions=instructions, engine_ns=engine_ns)


def test_the_line_that_is_charged_most():
    assert opening_line({3: 5.0, 7: 9.0}, {3: work(4, tensor=100), 7: work(1, vector=2)}) == 7


def test_the_busiest_line_of_a_kernel_instead_of_the_line_that_launches_it():
    kernel = {12: work(4, tensor=100), 14: work(1, vector=200)}
    assert opening_line({40: 9.0}, kernel) == 14
    assert opening_line({40: 9.0}, {**kernel, 40: LineWork(host_ns=3)}) == 14


def test_a_launch_of_what_is_in_another_file_stays():
    assert opening_line({40: 9.0}, {40: LineWork(host_ns=3)}) == 40
    assert opening_line({}, {}) == 0
