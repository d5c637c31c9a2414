"""Server for the Model Context Protocol: convert, inspect, explain and draw 3D models in allowed folders."""
