"""How a call gets to the database and back; nothing here keeps a rule. calls.py is free of I/O, io.py is generated."""
