"""Text of applications stays text, shown without a browser: the page's structure never changes."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from ragaliq.reports import write_report

PAGE = files("ragaliq.reports") / "page"
SCRIPTS = sorted(each.name for each in PAGE.iterdir() if each.name.endswith(".js"))


class Structure(HTMLParser):
    """What a page is made of: elements with their attributes, and the text in them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts = [], [("", "")]
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append((tag, ""))

    def handle_endtag(self, tag):
        self.texts.append(("", ""))

    def handle_data(self, data):
        tag, text = self.texts[-1]
        self.texts[-1] = (tag, text + data)

    @property
    def shape(self):
        return [(tag, sorted(attributes)) for tag, attributes in self.elements]

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag):
        return [text for name, text in self.texts if name == tag]


def page_of(records, tmp_path, **options):
    write_report(records, tmp_path / "page.html", **options)
    return Structure((tmp_path / "page.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def benign(hostile_record, tmp_path_factory):
    """The same page without a payload in it."""
    return page_of([hostile_record("word")], tmp_path_factory.mktemp("benign"), title="word")


def test_a_payload_in_every_field_stays_text(hostile_record, benign, payload, tmp_path):
    name = payload.replace("/", "") + ".jsonl"
    page = page_of([hostile_record(payload)], tmp_path, title=payload, source_name=name)
    assert page.shape == benign.shape
    embedded = page.text("script")[0]
    assert not re.search("[<>&\u2028\u2029]", embedded)
    data = json.loads(embedded)
    full = data["answers"]["0"]
    claims = full["sets"][0]
    assert "".join(piece for piece, _ in claims["answer"]) == f"{payload} and {payload}"
    assert full["query"] == claims["claims"][0]["reason"] == payload
    assert "".join(piece for piece, _ in claims["chunks"][0]["text"]) == payload
    assert data["pipelines"] == [payload]


def test_the_policy_allows_this_script_and_this_style_sheet_and_nothing_else(museum, tmp_path):
    page = page_of(museum(3), tmp_path)
    (policy,) = [
        attributes["content"]
        for attributes in page.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    (style,), (_, script) = page.text("style"), page.text("script")
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'{_hash(script)}'",
        "style-src": f"'{_hash(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_page_refers_to_nothing_outside_of_it(museum, tmp_path):
    page = page_of(museum(3), tmp_path)
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "srcset", "style", "action", "data", "poster", "background"}
    assert [attributes["href"] for tag, attributes in page.elements if "href" in attributes] == [
        "#answers"
    ]
    assert not {"iframe", "object", "embed", "base", "link", "img"} & {t for t, _ in page.elements}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_never_parse_markup_run_text_or_reach_out(name):
    text = (PAGE / name).read_text(encoding="utf-8")
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
        r"|\beval\b|new Function|setTimeout\(['\"`]|\bfetch\b|XMLHttpRequest|WebSocket|import\("
        r"|srcdoc|\.href\b|javascript:|localStorage|sendBeacon|window\.open"
    )
    assert re.findall(forbidden, text) == []
    assert "</script" not in text.lower()
    assert "<!--" not in text


def test_the_template_marks_nothing_as_safe_itself():
    template = (PAGE / "report.html.j2").read_text(encoding="utf-8")
    assert "| safe" not in template
    assert "autoescape" not in template
