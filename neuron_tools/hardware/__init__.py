"""What the chips are: generations, instances, instruction costs, DMA, links, as data with sources."""
