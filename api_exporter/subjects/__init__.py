"""One file for each subject: records, row of the API, families, findings; the table."""
