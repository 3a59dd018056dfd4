"""Settings: from configuration files and the environment to checked values."""
