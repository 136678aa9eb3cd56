"""Applications in other languages and letters."""

import json

from harness import app
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool
from llama_index_fakes import Shelf, call, index, memory, scored, talker, when, writer

TICKET = "成人票每张六十元，学生票半价。"
OPEN = "博物馆周一闭馆。"


@app(
    "a Chinese question to an index",
    question="成人票多少钱？",
    answer="成人票六十元。周末另加十元。",
    chunks=[TICKET],
    absent=[OPEN],
    invented=["周末另加十元。"],
)
def chinese():
    index(TICKET, OPEN).as_query_engine(
        llm=talker("成人票六十元。周末另加十元。"), similarity_top_k=1
    ).query("成人票多少钱？")


@app(
    "Chinese parts that are refined",
    question="去博物馆要注意什么？",
    answer="成人票六十元，周一不开门。",
    chunks=[TICKET, OPEN],
    absent=["门票不便宜，带好学生证。"],
)
def chinese_refine():
    llm = writer("门票不便宜，带好学生证。", "成人票六十元，周一不开门。")
    RetrieverQueryEngine.from_args(Shelf(TICKET, OPEN), llm=llm, response_mode="refine").query(
        "去博物馆要注意什么？"
    )


@app(
    "short Chinese parts that are accumulated",
    question="每段说了什么？",
    answer=("半价", "周一"),
    chunks=["学生半价。", "周一闭馆。"],
)
def chinese_accumulate():
    llm = talker(when({"学生半价": "半价", "周一闭馆": "周一"}))
    RetrieverQueryEngine.from_args(
        Shelf("学生半价。", "周一闭馆。"), llm=llm, response_mode="accumulate"
    ).query("每段说了什么？")


@app(
    "a Chinese agent whose tool returns escaped JSON",
    question="今天开门吗？",
    answer="今天闭馆。",
    prompt=["周一闭馆"],
)
async def chinese_tool():
    def hours(day: str) -> str:
        """开放时间"""
        return json.dumps({"说明": "周一闭馆"})

    llm = talker(call("hours", day="周一"), "今天闭馆。")
    await FunctionAgent(tools=[hours], llm=llm).run("今天开门吗？", memory=memory())


@app(
    "a Chinese agent whose tool returns a model's answer in JSON",
    question="学生票多少钱？",
    answer="学生票三十元。",
    chunks=[TICKET],
    absent=["学生票打五折，非常划算。"],
)
async def chinese_engine_tool():
    engine = index(TICKET).as_query_engine(llm=writer("学生票打五折，非常划算。"))

    def guide(question: str) -> str:
        """博物馆指南"""
        return json.dumps({"answer": str(engine.query(question))}, ensure_ascii=False)

    llm = talker(call("guide", question="学生票"), "学生票三十元。")
    await FunctionAgent(tools=[guide], llm=llm).run("学生票多少钱？", memory=memory())


@app(
    "Chinese sub-questions",
    question="哪天去、花多少钱？",
    answer="周二去，成人六十元。",
    chunks=[TICKET, OPEN],
    absent=["要六十元钱呢。", "除周一都可以去。"],
)
def chinese_sub_questions():
    plan = json.dumps(
        {
            "items": [
                {"sub_question": "票价？", "tool_name": "tickets"},
                {"sub_question": "时间？", "tool_name": "hours"},
            ]
        }
    )
    llm = writer(
        when(
            {
                "output a list of relevant sub-questions": plan,
                "要六十元钱呢": "周二去，成人六十元。",
                TICKET: "要六十元钱呢。",
                OPEN: "除周一都可以去。",
            }
        )
    )
    tools = [
        QueryEngineTool.from_defaults(
            RetrieverQueryEngine.from_args(Shelf(text), llm=llm), name=name, description=name
        )
        for name, text in (("tickets", TICKET), ("hours", OPEN))
    ]
    SubQuestionQueryEngine.from_defaults(
        tools,
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=False,
        verbose=False,
    ).query("哪天去、花多少钱？")


@app(
    "a Chinese chat in its second turn",
    question="那学生呢？",
    answer="学生只要三十元。",
    chunks=[TICKET],
    absent=["学生票的价格是多少？", "成人需要付六十块。"],
    cases=2,
)
def chinese_chat():
    llm = talker(
        when(
            {"standalone question": "学生票的价格是多少？", "user: 那学生呢？": "学生只要三十元。"},
            "成人需要付六十块。",
        )
    )
    engine = CondensePlusContextChatEngine.from_defaults(Shelf(TICKET), llm=llm, memory=memory())
    engine.chat("成人票多少钱？")
    engine.chat("那学生呢？")


@app(
    "a Japanese question",
    question="返品はいつまでできますか？",
    answer="購入から十四日以内です。",
    chunks=["商品は購入から十四日以内に返品できます。"],
)
def japanese():
    index("商品は購入から十四日以内に返品できます。").as_query_engine(
        llm=talker("購入から十四日以内です。")
    ).query("返品はいつまでできますか？")


@app(
    "an Arabic question with metadata",
    question="متى يفتح المتجر؟",
    answer="يفتح في التاسعة صباحا.",
    chunks=["المتجر يفتح الساعة التاسعة."],
    prompt=["المصدر: الموقع"],
)
def arabic():
    RetrieverQueryEngine.from_args(
        Shelf(scored("المتجر يفتح الساعة التاسعة.", metadata={"المصدر": "الموقع"})),
        llm=writer("يفتح في التاسعة صباحا."),
    ).query("متى يفتح المتجر؟")


@app(
    "a German question over umlauts and quotes",
    question="Was heißt „Kündigungsfrist“ hier?",
    answer="Sie beträgt drei Monate zum Quartalsende.",
    chunks=["§ 4 „Kündigungsfrist“: drei Monate zum Ende des Quartals.", "§ 5 Schriftform."],
    absent=["Grob gesagt ein Vierteljahr, schätze ich."],
)
def german():
    llm = talker(
        "Grob gesagt ein Vierteljahr, schätze ich.", "Sie beträgt drei Monate zum Quartalsende."
    )
    found = Shelf("§ 4 „Kündigungsfrist“: drei Monate zum Ende des Quartals.", "§ 5 Schriftform.")
    RetrieverQueryEngine.from_args(found, llm=llm, response_mode="refine").query(
        "Was heißt „Kündigungsfrist“ hier?"
    )


@app(
    "a question in one language to documents in another",
    question="Wie hoch ist der Turm?",
    answer="Der Turm ist 96 Meter hoch.",
    chunks=["The tower is 96 metres high."],
    absent=["How tall is the tower?"],
)
def translated():
    llm = writer("How tall is the tower?", "Der Turm ist 96 Meter hoch.")

    class Translating(CustomQueryEngine):
        def custom_query(self, query_str):
            query = llm.complete(f"Translate: {query_str}").text
            nodes = Shelf("The tower is 96 metres high.").retrieve(query)
            return llm.complete(f"{nodes[0].text}\nAntworte auf: {query_str}").text

    Translating().query("Wie hoch ist der Turm?")


@app(
    "emoji and signs in an answer",
    question="Is the beach open?",
    answer="Yes 🏖️ — until 20:00 ✅",
    chunks=["Beach: open until 20:00 🏖️"],
)
def emoji():
    index("Beach: open until 20:00 🏖️").as_query_engine(llm=talker("Yes 🏖️ — until 20:00 ✅")).query(
        "Is the beach open?"
    )
