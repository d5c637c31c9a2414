"""ASGI application and server process: middleware, connections, memory, tracing."""
