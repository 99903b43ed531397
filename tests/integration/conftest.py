"""Applies to all tests of this folder: one physical core for each logical one."""

from tests.fixtures.single_cores import single_cores as single_cores
