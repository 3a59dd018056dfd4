"""What is shown, a page a file. It is given what it shows and asks nobody."""
