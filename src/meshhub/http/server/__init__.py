"""The ASGI application and the server process: application, middleware, connections, memory."""
