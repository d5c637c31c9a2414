"""Round facets: which surfaces they are on, and the regions of these."""

# why this way: docs/decisions/0015-step-writing.md
