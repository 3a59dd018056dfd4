"""The share of mutants that the tests kill: `python -m mutation --seed N --count 400`.

It is for releases; the gate does not run it.
"""
