"""From a glTF document and its buffers to a scene."""
