"""Read the rig files and the firmware matrix, and plan what will run: from files alone."""
