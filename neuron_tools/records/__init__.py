"""What layers hand each other: Programs, their simulated times, kernel sources, the capture log's records.

Only records and their files stand here, below every engine, so that a profile is read and analysed without
the front ends, the compiler, NKI or the device.
"""
