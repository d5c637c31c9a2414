"""From OBJ and MTL text to a scene."""
