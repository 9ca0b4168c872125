"""`python -m livepool` is the command line."""

import sys

from livepool.cli import main

sys.exit(main())
