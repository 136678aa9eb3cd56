"""Strict parsing of replies, for judges without a schema.

Everything here takes time linear in the reply's length, raises only ragaliq's errors, and never
quotes the reply in them.
"""

from ragaliq.judges.parsing.json_replies import find_reply, parse_json_reply
from ragaliq.judges.parsing.verdicts import parse_verdicts

__all__ = ["find_reply", "parse_json_reply", "parse_verdicts"]
