"""What the operator wants: from files and the environment to checked values."""
