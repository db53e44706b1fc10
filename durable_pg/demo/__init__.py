"""The main job on real input, in one command: migrate, record, attack, report."""
