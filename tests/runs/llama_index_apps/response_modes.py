"""Query engines in every response mode of LlamaIndex."""

from harness import app
from llama_index.core import PromptTemplate, SummaryIndex, get_response_synthesizer
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import Refine, ResponseMode
from llama_index.core.schema import Document
from llama_index_fakes import Shelf, call, default_model, index, talker, when, writer

SOIL = "Tomatoes want soil that drains well and is fed with compost in spring."
WATER = "Water tomatoes at the root every second morning, never on the leaves."
SHADE = "Lettuce grows best in half shade."


@app(
    "compact over a vector index",
    question="How should I water tomatoes?",
    answer="Every second morning, at the root and not on the leaves.",
    chunks=[WATER, SOIL],
    absent=[SHADE],
)
def compact():
    engine = index(SOIL, WATER, SHADE).as_query_engine(
        llm=writer("Every second morning, at the root and not on the leaves."), similarity_top_k=2
    )
    engine.query("How should I water tomatoes?")


@app(
    "compact with a chat model",
    question="How should I water tomatoes?",
    answer="Water them at the root every second morning. Use rain water from a barrel.",
    chunks=[WATER],
    absent=[SHADE],
    invented=["Use rain water from a barrel."],
)
def compact_chat():
    said = "Water them at the root every second morning. Use rain water from a barrel."
    engine = index(WATER, SHADE).as_query_engine(llm=talker(said), similarity_top_k=1)
    engine.query("How should I water tomatoes?")


WARRANTY = "The drill has a warranty of two years from the day of purchase."
EXTENDED = "Whoever registers the drill within a month gets a third year of warranty."


@app(
    "refine with a completion model",
    question="How long is the drill's warranty?",
    answer="Two years, and three for owners who registered within a month.",
    chunks=[WARRANTY, EXTENDED],
    absent=["The warranty seems to be two years long, nothing more."],
)
def refine():
    llm = writer(
        "The warranty seems to be two years long, nothing more.",
        "Two years, and three for owners who registered within a month.",
    )
    RetrieverQueryEngine.from_args(
        Shelf(WARRANTY, EXTENDED), llm=llm, response_mode=ResponseMode.REFINE
    ).query("How long is the drill's warranty?")


@app(
    "refine with a chat model",
    question="How long is the drill's warranty?",
    answer="Two years, or three if it was registered in the first month.",
    chunks=[WARRANTY, EXTENDED],
    absent=["It is two years, I believe, for every customer."],
)
def refine_chat():
    llm = talker(
        "It is two years, I believe, for every customer.",
        "Two years, or three if it was registered in the first month.",
    )
    RetrieverQueryEngine.from_args(
        Shelf(WARRANTY, EXTENDED), llm=llm, response_mode=ResponseMode.REFINE
    ).query("How long is the drill's warranty?")


@app(
    "refine whose draft invents what the last answer repeats",
    question="Who may use the company car?",
    answer="Employees of the sales team may use it. Spouses may use it at weekends.",
    chunks=["The company car is for employees of the sales team.", "Fuel is paid by the company."],
    absent=["Sales may use the car. Spouses may use it at weekends."],
    invented=["Spouses may use it at weekends."],
)
def refine_with_invention():
    llm = talker(
        "Sales may use the car. Spouses may use it at weekends.",
        "Employees of the sales team may use it. Spouses may use it at weekends.",
    )
    found = Shelf(
        "The company car is for employees of the sales team.", "Fuel is paid by the company."
    )
    RetrieverQueryEngine.from_args(found, llm=llm, response_mode="refine").query(
        "Who may use the company car?"
    )


@app(
    "refine with short documents and a draft of one word",
    question="Which metal is the bell made of?",
    answer="Bronze, with a clapper of iron.",
    chunks=["Bell: bronze.", "Clapper: iron."],
    absent=["Brass."],
)
def refine_short():
    llm = writer("Brass.", "Bronze, with a clapper of iron.")
    RetrieverQueryEngine.from_args(
        Shelf("Bell: bronze.", "Clapper: iron."), llm=llm, response_mode="refine"
    ).query("Which metal is the bell made of?")


@app(
    "compact that has to refine because the window is small",
    question="What does the lease say about pets?",
    answer="Cats are allowed, dogs only with written consent of the landlord.",
    chunks=["Cats are allowed in all flats. ", "Dogs need the landlord's written consent."],
    prompt=["is about the stairs and the bins."],
    absent=["Cats may be kept without asking, says the lease."],
)
def compact_in_parts():
    filler = " ".join(f"Clause {n} is about the stairs and the bins." for n in range(40))
    llm = writer(
        "Cats may be kept without asking, says the lease.",
        "Cats are allowed, dogs only with written consent of the landlord.",
        context_window=900,
    )
    found = Shelf(
        f"Cats are allowed in all flats. {filler}",
        f"Dogs need the landlord's written consent. {filler}",
    )
    RetrieverQueryEngine.from_args(found, llm=llm).query("What does the lease say about pets?")


@app(
    "refine with filtered structured answers",
    question="When was the bridge opened?",
    answer="The bridge was opened in 1932.",
    chunks=["The bridge was opened in March 1932."],
    absent=["I cannot tell from the first note."],
)
def refine_filtered():
    llm = talker(
        call(
            "StructuredRefineResponse",
            answer="I cannot tell from the first note.",
            query_satisfied=False,
        ),
        call(
            "StructuredRefineResponse",
            answer="The bridge was opened in 1932.",
            query_satisfied=True,
        ),
    )
    synthesizer = Refine(llm=llm, structured_answer_filtering=True)
    RetrieverQueryEngine(
        Shelf("Tolls rose last year.", "The bridge was opened in March 1932."), synthesizer
    ).query("When was the bridge opened?")


MILL = "The mill was built by monks in 1270."
FIRE = "A fire destroyed the mill's roof in 1684."


@app(
    "tree summarize in one call",
    question="What happened to the mill?",
    answer="Monks built it in 1270, and its roof burnt in 1684.",
    chunks=[MILL, FIRE],
)
def tree():
    RetrieverQueryEngine.from_args(
        Shelf(MILL, FIRE),
        llm=writer("Monks built it in 1270, and its roof burnt in 1684."),
        response_mode="tree_summarize",
    ).query("What happened to the mill?")


@app(
    "tree summarize over two levels",
    question="What happened to the mill?",
    answer="It was built in 1270 and lost its roof to a fire in 1684.",
    chunks=[MILL, FIRE],
    prompt=["of the chronicle names a miller."],
    absent=["Monks of an abbey put the mill up.", "Flames took the roof of the mill."],
)
def tree_of_two_levels():
    filler = " ".join(f"Entry {n} of the chronicle names a miller." for n in range(60))
    llm = talker(
        when(
            {
                "Monks of an abbey": "It was built in 1270 and lost its roof to a fire in 1684.",
                MILL: "Monks of an abbey put the mill up.",
                FIRE: "Flames took the roof of the mill.",
            }
        ),
        context_window=1100,
    )
    RetrieverQueryEngine.from_args(
        Shelf(f"{MILL} {filler}", f"{filler} {FIRE}"), llm=llm, response_mode="tree_summarize"
    ).query("What happened to the mill?")


@app(
    "tree summarize that is asynchronous",
    question="What happened to the mill?",
    answer="Monks built it in 1270, and its roof burnt in 1684.",
    chunks=[MILL, FIRE],
)
async def tree_async():
    engine = RetrieverQueryEngine.from_args(
        Shelf(MILL, FIRE),
        llm=talker("Monks built it in 1270, and its roof burnt in 1684."),
        response_mode="tree_summarize",
        use_async=True,
    )
    await engine.aquery("What happened to the mill?")


@app(
    "accumulate",
    question="What does each review say about the chair?",
    answer=("The first reviewer finds it comfortable.", "The second says a wheel broke."),
    chunks=["Very comfortable chair, I sit all day.", "A wheel broke after one week."],
)
def accumulate():
    llm = writer(
        when(
            {
                "Very comfortable": "The first reviewer finds it comfortable.",
                "A wheel broke": "The second says a wheel broke.",
            }
        )
    )
    RetrieverQueryEngine.from_args(
        Shelf("Very comfortable chair, I sit all day.", "A wheel broke after one week."),
        llm=llm,
        response_mode="accumulate",
    ).query("What does each review say about the chair?")


@app(
    "accumulate with parts of one word",
    question="Is the reviewer content?",
    answer=("Yes", "No", "No"),
    chunks=["Lovely lamp.", "It arrived broken.", "Too dark for reading."],
)
def accumulate_short():
    llm = talker(when({"Lovely": "Yes", "broken": "No", "dark": "No"}))
    RetrieverQueryEngine.from_args(
        Shelf("Lovely lamp.", "It arrived broken.", "Too dark for reading."),
        llm=llm,
        response_mode="accumulate",
    ).query("Is the reviewer content?")


@app(
    "compact accumulate",
    question="What must be done before winter?",
    answer="Empty the outside taps and sweep the chimney.",
    chunks=["Empty the outside taps in October.", "Have the chimney swept before the first fire."],
)
def compact_accumulate():
    RetrieverQueryEngine.from_args(
        Shelf(
            "Empty the outside taps in October.", "Have the chimney swept before the first fire."
        ),
        llm=writer("Empty the outside taps and sweep the chimney."),
        response_mode="compact_accumulate",
    ).query("What must be done before winter?")


@app(
    "simple summarize that cuts what is too long",
    question="Who directed the film?",
    answer="Agnes Varda directed it.",
    chunks=["The film was directed by Agnes Varda."],
    prompt=["shows the harbour at dusk."],
    absent=["The last reel was lost in Lyon."],
)
def simple():
    filler = " ".join(f"Scene {n} shows the harbour at dusk." for n in range(150))
    RetrieverQueryEngine.from_args(
        Shelf(
            f"The film was directed by Agnes Varda. {filler}",
            f"{filler} The last reel was lost in Lyon.",
        ),
        llm=writer("Agnes Varda directed it.", context_window=700),
        response_mode="simple_summarize",
    ).query("Who directed the film?")


@app(
    "generation, which shows the model nothing of what was found",
    question="What is the capital of Bhutan?",
    answer="Thimphu is the capital of Bhutan.",
    absent=["Bhutan exports hydropower to India."],
)
def generation():
    RetrieverQueryEngine.from_args(
        Shelf("Bhutan exports hydropower to India."),
        llm=writer("Thimphu is the capital of Bhutan."),
        response_mode="generation",
    ).query("What is the capital of Bhutan?")


@app("no text, which only retrieves", status=["no_answer", "not_rag"])
def no_text():
    with default_model():
        RetrieverQueryEngine.from_args(
            Shelf("The pass is closed from November."), response_mode="no_text"
        ).query("When is the pass closed?")


@app(
    "context only, where what was found is the answer",
    question="When is the pass closed?",
    answer="The pass is closed from November.\n\nSnow ploughs start in April.",
    chunks=["The pass is closed from November.", "Snow ploughs start in April."],
)
def context_only():
    found = Shelf("The pass is closed from November.", "Snow ploughs start in April.")
    with default_model():
        RetrieverQueryEngine.from_args(found, response_mode="context_only").query(
            "When is the pass closed?"
        )


class Verdict(BaseModel):
    """Whether a claim is paid."""

    paid: bool
    reason: str


@app(
    "compact with a structured answer of a chat model",
    question="Is hail damage to cars paid?",
    answer=("Hail is part of the partial cover.",),
    chunks=["Partial cover pays for hail, storm and theft of the car."],
)
def structured():
    llm = talker(call("Verdict", paid=True, reason="Hail is part of the partial cover."))
    index("Partial cover pays for hail, storm and theft of the car.").as_query_engine(
        llm=llm, output_cls=Verdict
    ).query("Is hail damage to cars paid?")


@app(
    "tree summarize with a structured answer",
    question="Is hail damage to cars paid?",
    answer=("Partial cover includes hail.",),
    chunks=["Partial cover pays for hail and storm.", "Hail claims need a photograph."],
)
def structured_tree():
    llm = talker(call("Verdict", paid=True, reason="Partial cover includes hail."))
    RetrieverQueryEngine.from_args(
        Shelf("Partial cover pays for hail and storm.", "Hail claims need a photograph."),
        llm=llm,
        response_mode="tree_summarize",
        output_cls=Verdict,
    ).query("Is hail damage to cars paid?")


@app(
    "a summary index that is refined over all its documents",
    question="What do the three letters have in common?",
    answer="All three complain about the noise at night.",
    chunks=[
        "Dear council, the bar is loud at night.",
        "The music keeps us awake.",
        "Trucks unload at 4 am.",
    ],
    absent=["The writer is unhappy with a bar.", "Both writers cannot sleep well."],
)
def summary_index():
    letters = [
        "Dear council, the bar is loud at night.",
        "The music keeps us awake.",
        "Trucks unload at 4 am.",
    ]
    llm = talker(
        "The writer is unhappy with a bar.",
        "Both writers cannot sleep well.",
        "All three complain about the noise at night.",
    )
    SummaryIndex.from_documents([Document(text=letter) for letter in letters]).as_query_engine(
        llm=llm, response_mode="refine"
    ).query("What do the three letters have in common?")


@app(
    "a prompt of one's own with a second variable",
    question="Can I return worn shoes?",
    answer="No, worn shoes cannot be returned, not even by gold members.",
    chunks=["Shoes can be returned unworn within 30 days."],
    prompt=["The customer is a gold member since 2019."],
)
def own_prompt():
    template = PromptTemplate(
        "You work for a shoe shop.\nAbout the customer: {customer}\nHandbook:\n{context_str}\n"
        "Question: {query_str}\nAnswer: "
    ).partial_format(customer="The customer is a gold member since 2019.")
    index("Shoes can be returned unworn within 30 days.").as_query_engine(
        llm=writer("No, worn shoes cannot be returned, not even by gold members."),
        text_qa_template=template,
    ).query("Can I return worn shoes?")


@app(
    "a synthesizer that is asked for itself",
    question="Which bus goes to the lake?",
    answer="Bus 12, every half hour.",
    chunks=["Bus 12 goes to the lake.", "Bus 12 runs every half hour."],
)
def synthesizer():
    found = Shelf("Bus 12 goes to the lake.", "Bus 12 runs every half hour.").retrieve("bus lake")
    get_response_synthesizer(llm=writer("Bus 12, every half hour.")).synthesize(
        "Which bus goes to the lake?", found
    )


@app(
    "additional source nodes that the model never saw",
    question="Which bus goes to the lake?",
    answer="Bus 12 goes there.",
    chunks=["Bus 12 goes to the lake."],
    absent=["Bus 7 goes to the zoo."],
)
def additional_sources():
    synthesizer = get_response_synthesizer(llm=talker("Bus 12 goes there."))
    synthesizer.synthesize(
        "Which bus goes to the lake?",
        Shelf("Bus 12 goes to the lake.").found,
        additional_source_nodes=Shelf("Bus 7 goes to the zoo.").found,
    )
