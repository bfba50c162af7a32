"""The same turns and questions for Ebbtide and for other memories, each in a virtual environment of its own."""
