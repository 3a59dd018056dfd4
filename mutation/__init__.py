"""How many small mistakes the tests notice: `python -m mutation --seed N --count 400`.

For releases; the gate does not run it.
"""
