"""What of the network needs attention, in plain words; pure.

Each finding is that of an alert, by the same numbers and without its wait. A file holds
the findings of one subject.
"""
