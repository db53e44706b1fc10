"""How it is printed: tables, timelines, advice, and what may reach a terminal."""
