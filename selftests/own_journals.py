"""The command with its journals in a folder of the test's: no other test mends what it left."""

LEADLINE = """
import sys
from leadline import cli
from leadline.host import journal
directory = sys.argv.pop(1)
journal.default_directory = lambda host: directory
sys.exit(cli.main())
"""
