"""Round facets: which surfaces they are on, and the regions of these."""

# why this way: docs/decisions/0015-step-writing.md
# why these constants: docs/decisions/0065-constants.md
