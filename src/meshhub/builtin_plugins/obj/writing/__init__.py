"""From a scene to OBJ and MTL text."""
