"""The one definition of time: every page, report, command and editor takes its figures from here.

- *Charged* time is exclusive. Each moment of device time is charged once: to what computes in it, else to
  what moves
  data, else to what encloses it; what several operations were fused into is charged to each by its share.
  So the
  charges of any range add up to the device time in it, at every level: operation, module, line, HLO opcode,
  engine
  (`charges`, and `stack_charges` down to the lines of kernels).
- *Span* time goes from the first to the last moment of something, whatever else ran meanwhile.
- *Active* time is the union of what ran: of an engine, of all engines of a core (`active`).

A range is a slice of the profile (`Profile.slice`): all of this is then cut to the range.
"""
