"""The back end: instructions in program order over virtual buffers become a scheduled, allocated Program.

It does what the chip's compiler is seen to do, not what an ideal one would; what each pass rests on stands in
its module. One pass a module; `pipeline` runs them.
"""
