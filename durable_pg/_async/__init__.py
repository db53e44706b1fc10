"""The asynchronous client, written by hand; the synchronous one is generated from it."""
