"""Worth of a rule of the capture: the same runs without it."""

import importlib
import inspect
from contextlib import contextmanager

_NOTHING = {"None": None, "bool": False, "str": "", "int": 0, "float": 0.0}


@contextmanager
def without(rule):
    """Leave a rule out for a time.

    Args:
        rule: A function or method below `ragaliq.capture` that finds nothing meanwhile, such as
            `evidence._PromptSearch._find_truncated`.
    """
    module, _, path = rule.partition(".")
    *around, name = path.split(".")
    owner = importlib.import_module(f"ragaliq.capture.{module}")
    for each in around:
        owner = getattr(owner, each)
    function = getattr(owner, name)
    returned = inspect.signature(function).return_annotation
    nothing = _NOTHING.get(returned, None if "None" in returned else ())
    setattr(owner, name, lambda *_, **__: nothing)
    try:
        yield
    finally:
        setattr(owner, name, function)
