"""Who takes what out of PSUM."""

from __future__ import annotations

from neuron_tools import hardware
from neuron_tools.compiler.codegen.psum_readers import PsumReaders
from neuron_tools.records.program import Engine

SCALAR, VECTOR = Engine.SCALAR, Engine.VECTOR


def test_the_engine_with_less_to_do_takes_it():
    readers = PsumReaders(hardware.get("trn2"))
    readers.add(SCALAR, 250.0)
    assert readers.choose({SCALAR: 145.0, VECTOR: 196.0}) is VECTOR
    assert readers.choose({SCALAR: 145.0, VECTOR: 240.0}) is SCALAR


def test_a_port_that_both_share_goes_to_who_needs_it_less_long():
    readers = PsumReaders(hardware.get("trn1"))
    readers.add(SCALAR, 250.0)
    assert readers.choose({SCALAR: 91.0, VECTOR: 114.0}) is SCALAR


def test_work_that_follows_in_sbuf_counts():
    readers = PsumReaders(hardware.get("trn2"))
    readers.add(VECTOR, 100.0, in_psum=False)
    assert readers.choose({SCALAR: 100.0, VECTOR: 150.0}, after_ns=200.0) is VECTOR
    assert readers.choose({SCALAR: 100.0, VECTOR: 150.0}) is SCALAR


def test_work_of_few_iterations_counts_less():
    readers = PsumReaders(hardware.get("trn2"))
    assert readers.choose({SCALAR: 100.0, VECTOR: 120.0}, share=0.1) is SCALAR
    assert readers.choose({SCALAR: 100.0, VECTOR: 105.0}) is VECTOR
