"""Seconds that requests spend in a callback handler; as a program, those of a handler of no use.

What a machine with other work does to any program shows in both.
"""

import gc
import json
import select
import sys
import time

from langchain_core.callbacks import BaseCallbackHandler
from rag_chain import QUESTION, rag_chain


class Timed:
    """Mixed into a handler: adds up what one request spends in it.

    Attributes:
        spent: Seconds by the clock, without the interpreter's garbage collections.
        computed: Seconds of them in which this process computed at all, whatever its thread.
    """

    spent = computed = 0.0
    _collected = _began = 0.0

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        return self._timed(found) if name.startswith("on_") else found

    def _timed(self, event):
        def call(*args, **kwargs):
            collected = Timed._collected
            began, computed = time.perf_counter(), time.process_time()
            try:
                return event(*args, **kwargs)
            finally:
                collected = Timed._collected - collected
                self.spent += time.perf_counter() - began - collected
                self.computed += time.process_time() - computed - collected

        return call

    @staticmethod
    def count_collections(phase, info):
        if phase == "start":
            Timed._began = time.perf_counter()
        else:
            Timed._collected += time.perf_counter() - Timed._began


gc.callbacks.append(Timed.count_collections)


class Control(Timed, BaseCallbackHandler):
    """Computes for about as long as ragaliq's handler does in a request."""

    def on_chain_start(self, *args, **kwargs):
        sum(range(5000))

    on_chain_end = on_chat_model_start = on_llm_end = on_retriever_end = on_chain_start


def main():
    handler, chain, slowest = Control(), rag_chain(), []
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        handler.spent = 0.0
        chain.invoke(QUESTION, {"callbacks": [handler]})
        slowest = sorted([*slowest, handler.spent])[-1000:]
    sys.stdout.write(json.dumps(slowest))


if __name__ == "__main__":
    main()
