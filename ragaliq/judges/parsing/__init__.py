"""Strict reading of replies, for judges that cannot be held to a schema.

Everything here is linear in the length of the reply, raises ragaliq's own errors only, and never
quotes the reply in them.
"""

from ragaliq.judges.parsing.json_replies import find_reply, parse_json_reply
from ragaliq.judges.parsing.verdicts import parse_verdicts

__all__ = ["find_reply", "parse_json_reply", "parse_verdicts"]
