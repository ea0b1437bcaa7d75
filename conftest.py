pytest_plugins = ("leadline.plugin",)
