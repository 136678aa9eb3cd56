import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
for folder in (TESTS / "scenarios", TESTS / "traces", TESTS / "langchain"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from doors import Doors  # noqa: E402
from openinference.instrumentation.langchain import LangChainInstrumentor  # noqa: E402
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor  # noqa: E402

from langchain_ragaliq import RagaliqCallbackHandler  # noqa: E402
from llama_index.evaluation.ragaliq import attach, detach  # noqa: E402


@pytest.fixture
def doors(tmp_path):
    made = Doors(tmp_path)
    yield made
    made.close()


@pytest.fixture
def langchain(doors):
    with doors.of(LangChainInstrumentor()):
        yield {"callbacks": [RagaliqCallbackHandler(doors.monitor)]}


@pytest.fixture
def llama_index(doors):
    with doors.of(LlamaIndexInstrumentor()):
        attach(doors.monitor)
        yield
        detach()
