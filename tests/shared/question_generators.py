"""Question generators of LlamaIndex that ask no model."""

from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion


class OneQuestionEach(BaseQuestionGenerator):
    """Asks each tool one question, in which `{}` is the tool's name."""

    def __init__(self, question="{}?"):
        self.question = question

    def generate(self, tools, query):
        return [
            SubQuestion(sub_question=self.question.format(tool.name), tool_name=tool.name)
            for tool in tools
        ]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass
