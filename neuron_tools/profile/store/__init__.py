"""How a profile lies on the disk: its folder, its Parquet parts, their catalog, what SQL may ask of them."""
