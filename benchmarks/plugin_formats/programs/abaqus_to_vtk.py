"""Let FreeCAD convert an Abaqus file to VTK; it runs in the program freecadcmd, without arguments."""

import os

from feminout import importInpMesh

importInpMesh.read(os.environ["JUDGED_FILE"]).write(os.environ["JUDGED_RESULT"])
