"""Tolerant reading of replies, for judges that cannot be held to a schema.

Everything here is linear in the length of the reply, raises ragaliq's own errors only, and never
quotes the reply in them.
"""

from ragaliq.judges.parsing.json_reply import parse_json_reply
from ragaliq.judges.parsing.verdicts import parse_verdicts

__all__ = ["parse_json_reply", "parse_verdicts"]
