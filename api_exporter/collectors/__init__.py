"""What is published of the network: pure functions from an inventory to families.

They know no text, no HTTP and no time but what the records hold.
"""
