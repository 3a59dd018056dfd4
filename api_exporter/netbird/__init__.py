"""What the API says: paths, bodies, records, and all that is known at one moment.

Pure; it does not know how bodies come here, nor what is made of them.
"""
