"""Tolerant reading of replies, for judges that cannot be held to a schema.

Everything here is linear in the length of the reply, raises ragaliq's own errors only, and never
quotes the reply in them.
"""

from ragaliq.judges.parsing.replies import parse_json_reply, parse_verdicts, read_reply

__all__ = ["parse_json_reply", "parse_verdicts", "read_reply"]
