"""Whatever a text holds, the request stays well-formed and the text stays in its place.

Requests are read with a reader of their own, which is as careless as a model may be: to it, a tag
is one in any case, in full-width and other letters that look alike, with accents on them and with
invisible characters in between.
"""

import asyncio
import re

import pytest

from loopback import ChatCompletionsServer, MessagesServer
from ragaliq import ClaudeJudge, OpenAICompatibleJudge
from ragaliq.judges.prompting import PromptSet
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply, form_of
from ragaliq.testing import ScriptedJudge

# One event loop and one server for all: a new client for every attempt would take minutes.
pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN = "Plain words."
RUBRIC = "It is kind."
CALLS = {
    "extract_statements": ("question answer", ClaimsReply),
    "verify_claims": ("context claims", VerdictsReply),
    "grade_statements": ("context question answer", GradedReply),
    "relevance": ("question answer", ScoreReply),
    "context_relevance": ("question chunk", ScoreReply),
    "rubric": ("question answer rubric", ScoreReply),
}
PLACES = ("question", "answer", "chunk", "claim")
OPENING = re.compile(r'<(question|answer|context|claims|chunk|claim)(-\d+)?(?: id="(\w+)")?>\n')
IGNORABLE = (
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\ufeff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    r"\u0300-\u036f\u20d0-\u20ff]*"
)
# A letter or sign, and others that look like it.
ALIKE = {
    each[0]: each[1:]
    for each in (
        "<‹〈⟨❮﹤❬❰≺ᐸ«⧼ /∕⁄⧸╱⟋ -‐‑‒–—− 2Ƨ aаɑα cсϲ eеҽ hһ iіı kκк lӏ mм nոп oοоօ qԛզ rᴦг sѕ tτт "
        "uυս wԝա xхⅹ"
    ).split()
}
CONTROL_TOKENS = (
    "<|im_start|> <|im_end|> <|eot_id|> <|start_header_id|> <|end_header_id|> [INST] [/INST] "
    "<<SYS>> <start_of_turn> <end_of_turn> <｜User｜> <｜end▁of▁sentence｜>"
).split()


def careless(tag: str) -> re.Pattern[str]:
    """The closing tag as somebody sees it who does not look closely."""
    parts = [f"[{re.escape(c)}{chr(ord(c) + 0xFEE0)}{ALIKE.get(c, '')}]" for c in f"</{tag}"]
    return re.compile(IGNORABLE.join(parts) + r"(?![\w-])", re.IGNORECASE)


def sections(text: str) -> tuple[dict[str, str], str]:
    """The texts between tags, by tag; and what stands outside all tags."""
    found, outside, at = {}, "", 0
    while (opening := OPENING.search(text, at)) is not None:
        name, number = opening[1], opening[2] or ""
        closing = careless(name + number).search(text, opening.end())
        assert closing is not None
        assert closing[0] == f"</{name}{number}"
        assert text[closing.end()] == ">"
        assert text[closing.start() - 1] == "\n"
        assert name not in found
        found[name] = text[opening.end() : closing.start() - 1]
        outside += text[at : opening.start()] + f"{{{{{name}}}}}"
        at = closing.end() + 1
    return found, outside + text[at:]


def items(block: str) -> dict[str, str]:
    """The texts of a list, by id."""
    found, at = {}, 0
    while at < len(block):
        opening = OPENING.match(block, at)
        assert opening is not None
        closing = careless(opening[1] + (opening[2] or "")).search(block, opening.end())
        assert block[closing.start() - 1] == "\n"
        found[opening[3]] = block[opening.end() : closing.start() - 1]
        at = closing.end() + len(">\n")
    return found


class Line:
    """A judge and the server at the other end, with the requests between them."""

    def __init__(self, judge, server, behind: ScriptedJudge) -> None:
        self.judge, self.server, self.behind = judge, server, behind
        self.is_claude = isinstance(judge, ClaudeJudge)
        self.templates = self._templates()
        self.system = PromptSet().render("relevance", question="", answer="").system

    def seen(self, text: str) -> str:
        """A text but for the invisible character that breaks up control tokens."""
        return text if self.is_claude else text.replace("\u2060", "")

    def _templates(self) -> dict[str, str]:
        """What a request holds beside the texts, and which prompt that is."""
        prompts, found = PromptSet(), {}
        for name, (tags, reply) in CALLS.items():
            blocks = {tag: f"{{{{{tag}}}}}" for tag in tags.split()}
            written = prompts.render(name, **blocks | {"rubric": RUBRIC}).text
            if not self.is_claude:
                written += "\n\n" + prompts.render("reply_form", form=form_of(reply)).text
            found[written] = name
        return found

    def check(self, requests: list, texts: dict[str, str]) -> set[str]:
        """Check that requests are prompts with these texts in their places; which prompts."""
        sent = dict.fromkeys(PLACES, PLAIN)
        sent |= {place: self.seen(text) for place, text in texts.items()}
        asked = set()
        for request in requests:
            assert request.system == self.system
            found, outside = sections(self.seen(request.text))
            asked.add(self.templates[outside])
            for tag in ("question", "answer", "chunk"):
                assert found.get(tag, sent[tag]) == sent[tag]
            if "context" in found:
                assert items(found["context"]) == {"0": PLAIN, "1": sent["chunk"], "2": PLAIN}
            if "claims" in found:
                assert items(found["claims"]) == {"c1": PLAIN, "c2": sent["claim"]}
        return asked

    async def requests_about(self, calls: set[str], **texts: str) -> list:
        """Make calls; the requests they lead to, and what the server's judge was asked."""
        text = dict.fromkeys(PLACES, PLAIN) | texts
        question, answer, chunks = text["question"], text["answer"], [PLAIN, text["chunk"], PLAIN]
        ways = {
            "extract_statements": lambda: self.judge.extract_statements(question, answer),
            "verify_claims": lambda: self.judge.verify_claims([PLAIN, text["claim"]], chunks),
            "grade_statements": lambda: self.judge.grade_statements(question, answer, chunks),
            "relevance": lambda: self.judge.evaluate_relevance(question, answer),
            "rubric": lambda: self.judge.evaluate_rubric(RUBRIC, question, answer),
            "context_relevance": lambda: self.judge.evaluate_context_relevance(
                question, text["chunk"]
            ),
        }
        before = len(self.server.requests)
        await asyncio.gather(*(ways[call]() for call in calls))
        return self.server.requests[before:]


def behind() -> ScriptedJudge:
    return ScriptedJudge(claims=["one"], verdicts="NOT_ENOUGH_INFO", relevance=0.0)


@pytest.fixture(scope="module", params=["claude", "openai-compatible"])
def line(request):
    judge_behind = behind()
    if request.param == "claude":
        with MessagesServer(judge_behind) as server:
            judge = ClaudeJudge(api_key="test", base_url=server.url, max_retries=0)
            yield Line(judge, server, judge_behind)
    else:
        with ChatCompletionsServer(judge_behind) as server:
            judge = OpenAICompatibleJudge(base_url=server.url, model="m", max_retries=0)
            yield Line(judge, server, judge_behind)


async def test_the_messages_are_ours_and_who_decides_gets_the_very_texts(line, attempt):
    calls_before = len(line.behind.calls)
    requests = await line.requests_about(set(CALLS), **dict.fromkeys(PLACES, attempt.text))
    assert line.check(requests, dict.fromkeys(PLACES, attempt.sendable)) == set(CALLS)
    fields = {"model", "messages"} | (
        {"max_tokens", "system", "output_config"}
        if line.is_claude
        else {"temperature", "response_format"}
    )
    for request in requests:
        roles = [message["role"] for message in request.body["messages"]]
        assert roles == (["user"] if line.is_claude else ["system", "user"])
        assert set(request.body) == fields
        if line.is_claude:
            assert len(request.blocks) <= 2
        else:
            assert not any(token in request.text for token in CONTROL_TOKENS)
    text = line.seen(attempt.sendable)
    lists = {"claims": [PLAIN, text], "context": [PLAIN, text, PLAIN]}
    calls = line.behind.calls[calls_before:]
    assert len(calls) == len(requests) == len(CALLS)
    for call in calls:
        for name, given in call.arguments.items():
            got = list(map(line.seen, given)) if name in lists else line.seen(given)
            assert got == lists.get(name, text)


UNCHANGED = {
    "json": '{"answer": ["</b>", 1.0e5, null, "\\u00e9\\n"], "context": {"a": "{}"}}',
    "python": "def f(x: str) -> str:\n\treturn f\"{x!r:>{10}} {{}}\" if x else ''\n",
    "html": '<div class="a"><p>A &amp; B</p><!-- c --><s>old</s></div>',
    "xml": '<?xml version="1.0"?><a:b xmlns:a="urn:x"><![CDATA[1 < 2]]></a:b>',
    "typescript": "const f = <T,>(a: T[]): T | undefined => a.at(-1) ?? `${a}`;",
    "shell": 'for f in "$@"; do cat <<EOF | tr \'\\n\' " " >&2\n$f\nEOF\ndone',
    "sql": "SELECT \"a\", 'it''s' FROM t WHERE a <> '%' AND b >= :b; -- x",
    "fsharp": "let y = xs |> List.map (fun x -> x <<< 1) |> fun f -> f <| 3",
    "latex": "\\frac{a}{b} \\[ \\sum_{i=1}^{n} x_i \\]",
    "table": "| a | b |\n|---|--:|\n| 1 | 2 |\n",
    "white space": "  \t\n\n  a \u00a0\u3000 b \t\n ",
    "line ends": "a\tb\r\nc\rd\u2028e",
    "scripts and emoji": "می\u200cخواهم ക്\u200d 👨\u200d👩\u200d👧 ❤️ "
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f \u200fא\u200e",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
async def test_json_and_code_reach_the_judge_character_by_character(line, text):
    places = ("question", "answer", "chunk")
    requests = await line.requests_about(set(CALLS), **dict.fromkeys(places, text))
    for request in requests:
        found, _ = sections(request.text)  # here, what breaks up control tokens would be seen
        for tag in places:
            assert found.get(tag, text) == text
        if "context" in found:
            assert items(found["context"])["1"] == text
