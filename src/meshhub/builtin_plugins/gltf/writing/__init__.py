"""From a scene to a glTF document and its buffer."""
