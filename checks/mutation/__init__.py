"""Mutants that the tests kill: `python -m checks.mutation --seed N --count 400`.

It is for releases; the gate does not run it.
"""
