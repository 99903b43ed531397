# mypy: disable-error-code="no-any-return"
"""The engines' random numbers: XORWOW generators in every lane (partition), each with a state of six words.

XORWOW is a shift register of five words and a counter (Marsaglia, "Xorshift RNGs", Journal of Statistical
Software 8(14), 2003, section 3.1). Which generator engines older than NeuronCore-v4's have is not documented
(AWS says LFSR for Vector); here all have this one. Vector keeps four of them a lane, which take turns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.compiled import compiled

Words = npt.NDArray[np.uint32]
WORDS = 6
"""Words of one generator's state: five of the register, then the counter."""
LANES = 128
_WEYL = 362437  # what the counter grows by: the paper's constant


class RandomStream:
    """Generators of one engine.

    Args:
        generators: Generators in each lane, which take turns.
        seed: Seeds all lanes, each differently.

    Attributes:
        state: (lanes, generators, words).
    """

    __slots__ = ("_turn", "state")

    def __init__(self, generators: int = 1, seed: int = 0) -> None:
        self.state: Words = np.zeros((LANES, generators, WORDS), np.uint32)
        self._turn = 0
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Give every lane a state of its own, made of one number."""
        words = np.random.SeedSequence(seed & 0xFFFFFFFF).generate_state(self.state.size, np.uint32)
        self.load(words.astype(np.uint32).reshape(self.state.shape))

    def load(self, words: Words, first: int = 0) -> None:
        """Put states into the lanes from `first` on: (lanes, generators x 6 words)."""
        lanes = len(words)
        self.state[first : first + lanes] = words.reshape(lanes, *self.state.shape[1:])
        self._turn = 0

    def words(self, lanes: int, first: int = 0) -> Words:
        """The states of `lanes` lanes: (lanes, generators x 6 words)."""
        return self.state[first : first + lanes].reshape(lanes, -1).copy()

    def bits(self, lanes: int, count: int, first: int = 0) -> Words:
        """The next `count` words of each of `lanes` lanes: (lanes, count)."""
        made = np.empty((lanes, count), np.uint32)
        self._turn = int(_draw(self.state[first : first + lanes], made, self._turn))
        return made

    def uniform(self, lanes: int, count: int, first: int = 0) -> npt.NDArray[np.float32]:
        """As `bits`, but numbers in [0, 1) of 24 bits."""
        return (self.bits(lanes, count, first) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


@compiled
def _draw(state: Words, made: Words, turn: int) -> int:
    generators = state.shape[1]
    for lane in range(made.shape[0]):
        for place in range(made.shape[1]):
            own = state[lane, (turn + place) % generators]
            mixed = own[0] ^ (own[0] >> np.uint32(2))
            own[0], own[1], own[2], own[3] = own[1], own[2], own[3], own[4]
            own[4] = own[4] ^ np.uint32(own[4] << np.uint32(4)) ^ mixed ^ np.uint32(mixed << np.uint32(1))
            own[5] = np.uint32(own[5] + np.uint32(_WEYL))
            made[lane, place] = np.uint32(own[4] + own[5])
    return (turn + made.shape[1]) % generators
