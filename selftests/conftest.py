"""What Leadline's own tests share."""

pytest_plugins = ("pytester",)
