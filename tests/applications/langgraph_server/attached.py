"""ragaliq, attached once: the server loads `agent.py` anew for each of its graphs.

Everything is left at its default but the store, which is in folders that are not there yet.
"""

import os

from langchain_ragaliq import attach

handler = attach(judge="local", sinks=[f"sqlite:///{os.environ['RAGALIQ_TEST_STORE']}"])
