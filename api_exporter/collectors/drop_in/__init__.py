"""The metrics of netbird-api-exporter 0.2.4 under their own names, a file a subject.

Names, labels and values are that program's, so none of our rules for them holds here.
"""
