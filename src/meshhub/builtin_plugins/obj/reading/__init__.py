"""Parser from OBJ and MTL text to a scene."""
