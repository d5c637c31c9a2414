"""Files as OpenCASCADE reads them."""
