"""Makes `bench_claims` importable by name, as test folders are no packages."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
