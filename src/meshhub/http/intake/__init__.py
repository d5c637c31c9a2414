"""Request intake: multipart forms, archives, file names, conversion requests."""
