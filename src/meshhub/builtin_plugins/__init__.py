"""The plug-ins that come with meshhub: a folder each, found by the registry, ordinary in every other way."""
