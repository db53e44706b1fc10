"""The synchronous client: written by tools/async_to_sync.py, but for waiting.py."""
