"""Published times of whole models, and the programs that stand for them."""
