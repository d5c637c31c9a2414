"""Request intake: reception of forms, multipart, archives, file names, conversion requests."""
