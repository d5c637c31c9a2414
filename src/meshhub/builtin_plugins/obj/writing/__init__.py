"""Writer from a scene to OBJ and MTL text."""
