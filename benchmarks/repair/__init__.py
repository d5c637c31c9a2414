"""Benchmark of mesh repair: meshhub and other programs on the same files, judged by none of them."""
