import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "fleet", HERE.parent / "dashboards"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
