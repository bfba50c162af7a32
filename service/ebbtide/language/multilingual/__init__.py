"""The multilingual embedder: a native library in worker processes of its own."""
