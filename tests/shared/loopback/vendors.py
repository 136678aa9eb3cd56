"""What vendors' servers answer, each from its documentation: replies, errors, and what they refuse.

`REPLIES` are answers to a request for a score; `DIALECTS` are requests that a server refuses, with
the words of its refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loopback.protocol import Reply

ANTHROPIC = "https://platform.claude.com/docs/en/api/errors"
ANTHROPIC_STOPS = "https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons"
ANTHROPIC_CACHE = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "https://platform.openai.com/docs/api-reference/chat/object"
OPENAI_ERRORS = "https://platform.openai.com/docs/guides/error-codes"
OPENAI_REASONING = "https://platform.openai.com/docs/guides/reasoning"
OPENAI_REFUSALS = "https://platform.openai.com/docs/guides/structured-outputs"
AZURE = "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter"
OPENROUTER = "https://openrouter.ai/docs/api/reference/errors-and-debugging"
VLLM = "https://docs.vllm.ai/en/stable/features/reasoning_outputs/"
OLLAMA = "https://docs.ollama.com/api/openai-compatibility"
LM_STUDIO = "https://lmstudio.ai/docs/api/structured-output"
GROQ = "https://console.groq.com/docs/structured-outputs"
GROQ_ERRORS = "https://console.groq.com/docs/errors"
XAI = "https://docs.x.ai/developers/advanced-api-usage/prompt-caching/usage-and-pricing"
GEMINI = "https://ai.google.dev/gemini-api/docs/openai"
BEDROCK = "https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-openai.html"
BEDROCK_GUARDRAILS = (
    "https://docs.aws.amazon.com/bedrock/latest/userguide/guardrails-use-invoke.html"
)
AZURE_ERRORS = "https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits"
DASHSCOPE = "https://help.aliyun.com/en/model-studio/error-code"
DEEPSEEK = "https://api-docs.deepseek.com/quick_start/error_codes"
DEEPSEEK_REPLIES = "https://api-docs.deepseek.com/api/create-chat-completion"
FIREWORKS = "https://docs.fireworks.ai/guides/inference-error-codes"
GEMINI_BILLING = "https://ai.google.dev/gemini-api/docs/billing"
GEMINI_REASONS = "https://ai.google.dev/api/generate-content#FinishReason"
KIMI = "https://platform.kimi.ai/docs/api/errors"
LITELLM = "https://docs.litellm.ai/docs/proxy/error_reference"
LLAMA_CPP = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
MISTRAL = "https://docs.mistral.ai/api"
OPENROUTER_COST = "https://openrouter.ai/docs/use-cases/usage-accounting"
VLLM_SERVER = "https://docs.vllm.ai/en/stable/serving/openai_compatible_server/"
XAI_COST = "https://docs.x.ai/developers/cost-tracking"
XAI_ERRORS = "https://docs.x.ai/developers/debugging"

SCORE = json.dumps({"reasoning": "It does.", "score": 0.5})
SPENT = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass(frozen=True)
class Recorded:
    """One reply of a vendor, and what has to become of it.

    Attributes:
        page: The vendor's documentation.
        what: What is special about it.
        reply: The reply.
        outcome: `scored`, or the name of the error.
        says: Parts of the error's message: the cause and the next step.
        requests: How often the server is asked; the SDK may repeat a request once.
        usage: Tokens: input, output, from the cache, to the cache; None where they are not known.
        cost: US dollars that the vendor says it took; None where it does not say.
        api: The protocol.
    """

    page: str
    what: str
    reply: Reply
    outcome: str = "scored"
    says: tuple[str, ...] = ()
    requests: int = 1
    usage: tuple[int, int, int, int] | None = (100, 20, 0, 0)
    cost: float | None = None
    api: str = "openai"


def chat(
    content: object = SCORE, *, usage: Any = SPENT, finish: str | None = "stop", **message: Any
) -> Reply:
    """A chat completion."""
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish, "logprobs": None}
    return Reply(
        body={"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000}
        | {"model": "m", "choices": [choice], "usage": usage}
    )


def claude(*blocks: dict[str, Any], stop: str = "end_turn", **usage: int) -> Reply:
    """A reply of the Messages API."""
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5"}
    spent = {"input_tokens": 100, "output_tokens": 20} | usage
    content = list(blocks or [{"type": "text", "text": SCORE}])
    return Reply(body=body | {"content": content, "stop_reason": stop, "usage": spent})


def failed(status: int, message: str, **fields: Any) -> Reply:
    """An error as most servers word it."""
    return Reply(status=status, body={"error": {"message": message, **fields}})


def claude_failed(status: int, kind: str, message: str, **fields: Any) -> Reply:
    """An error as the Messages API words it."""
    error = {"type": kind, "message": message, **fields}
    return Reply(status=status, body={"type": "error", "error": error, "request_id": "req_1"})


def recorded(page: str, what: str, reply: Reply, *args: Any, **fields: Any) -> Recorded:
    return Recorded(page, what, reply, *args, **fields)


def error(page: str, what: str, reply: Reply, kind: str, *says: str, **fields: Any) -> Recorded:
    return Recorded(page, what, reply, kind, says, **({"usage": None} | fields))


API, BILLING, REFUSED = "JudgeAPIError", "JudgeBillingError", "JudgeRefusalError"
MALFORMED = "JudgeResponseError"
CREDIT = ("no credit", "add credit")

REPLIES: list[Recorded] = [
    # --- Anthropic, direct and behind gateways ------------------------------------------------
    recorded(ANTHROPIC_CACHE, "a reply", claude(), api="claude"),
    recorded(
        ANTHROPIC_CACHE,
        "cached tokens apart from the input",
        claude(cache_read_input_tokens=5000, cache_creation_input_tokens=300),
        usage=(100, 20, 5000, 300),
        api="claude",
    ),
    recorded(
        ANTHROPIC_CACHE,
        "all of the input from the cache",
        claude(input_tokens=0, cache_read_input_tokens=5000),
        usage=(0, 20, 5000, 0),
        api="claude",
    ),
    recorded(
        ANTHROPIC_STOPS,
        "thoughts in a block of their own",
        claude({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": SCORE}),
        api="claude",
    ),
    error(
        ANTHROPIC_STOPS,
        "a refusal",
        claude(stop="refusal"),
        REFUSED,
        "declined",
        usage=(100, 20, 0, 0),
        api="claude",
    ),
    error(
        ANTHROPIC_STOPS,
        "a reply cut off",
        claude({"type": "text", "text": SCORE[:9]}, stop="max_tokens"),
        MALFORMED,
        "cut off",
        "max_tokens=",
        usage=(100, 20, 0, 0),
        api="claude",
    ),
    error(
        ANTHROPIC_STOPS,
        "the context window ends",
        claude({"type": "text", "text": SCORE[:9]}, stop="model_context_window_exceeded"),
        MALFORMED,
        "context window",
        "shorter chunks",
        usage=(100, 20, 0, 0),
        api="claude",
    ),
    error(
        ANTHROPIC,
        "no credit, as an invalid request",
        claude_failed(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits.",
        ),
        BILLING,
        *CREDIT,
        api="claude",
    ),
    error(
        ANTHROPIC,
        "a billing error",
        claude_failed(402, "billing_error", "There is an issue with your billing."),
        BILLING,
        *CREDIT,
        api="claude",
    ),
    error(
        ANTHROPIC,
        "the month's spending limit, as a rate limit",
        claude_failed(
            429, "rate_limit_error", "...", details={"error_code": "enforced_spend_limit_reached"}
        ),
        BILLING,
        *CREDIT,
        api="claude",
    ),
    error(
        ANTHROPIC,
        "a rate limit",
        claude_failed(429, "rate_limit_error", "Number of requests has exceeded your limit"),
        API,
        "429",
        "lower the concurrency",
        requests=2,
        api="claude",
    ),
    error(
        ANTHROPIC,
        "an overloaded API",
        claude_failed(529, "overloaded_error", "Overloaded"),
        API,
        "529",
        "try again later",
        requests=2,
        api="claude",
    ),
    error(
        ANTHROPIC,
        "a gateway's error with status 200",
        claude_failed(200, "overloaded_error", "Overloaded"),
        API,
        "529",
        "try again later",
        requests=2,
        api="claude",
    ),
    # --- OpenAI -------------------------------------------------------------------------------
    recorded(OPENAI, "a reply", chat()),
    recorded(
        OPENAI,
        "cached and reasoning tokens inside the figures",
        chat(
            usage=SPENT
            | {
                "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 16},
            }
        ),
        usage=(36, 20, 64, 0),
    ),
    error(
        OPENAI_REFUSALS,
        "a refusal in its own field",
        chat(None, refusal="I'm sorry, I cannot assist with that request."),
        REFUSED,
        "declined",
        usage=(100, 20, 0, 0),
    ),
    error(
        OPENAI_REASONING,
        "all tokens spent on thoughts",
        chat("", finish="length"),
        MALFORMED,
        "cut off",
        "thoughts",
        "max_tokens=",
        usage=(100, 20, 0, 0),
    ),
    error(
        OPENAI_ERRORS,
        "no credit, as a rate limit",
        failed(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            type="insufficient_quota",
            param=None,
            code="insufficient_quota",
        ),
        BILLING,
        *CREDIT,
    ),
    error(
        OPENAI_ERRORS,
        "a rate limit",
        failed(
            429, "Rate limit reached for gpt-5-mini", type="requests", code="rate_limit_exceeded"
        ),
        API,
        "429",
        "lower the concurrency",
        requests=2,
    ),
    error(
        OPENAI_ERRORS,
        "a wrong key",
        failed(401, "Incorrect API key provided", code="invalid_api_key"),
        API,
        "401",
        "api_key=",
    ),
    error(
        OPENAI_ERRORS,
        "a request that is too long",
        failed(
            400,
            "This model's maximum context length is 8192 tokens.",
            code="context_length_exceeded",
        ),
        API,
        "window",
        "shorter chunks",
        "context_window=",
    ),
    error(
        OPENAI_REASONING,
        "a prompt that is flagged",
        failed(400, "Invalid prompt: your prompt was flagged", code="invalid_prompt"),
        REFUSED,
        "content filter",
    ),
    # --- Azure --------------------------------------------------------------------------------
    error(
        AZURE,
        "a prompt that is filtered",
        failed(
            400,
            "The response was filtered due to the prompt triggering Azure OpenAI's content "
            "management policy.",
            type=None,
            param="prompt",
            code="content_filter",
            innererror={"code": "ResponsibleAIPolicyViolation"},
        ),
        REFUSED,
        "content filter",
    ),
    error(
        AZURE,
        "a reply that is filtered",
        chat("half a", finish="content_filter"),
        REFUSED,
        "content filter",
        usage=(100, 20, 0, 0),
    ),
    # --- OpenRouter ---------------------------------------------------------------------------
    error(
        OPENROUTER,
        "a rate limit in a body with status 200",
        Reply(
            body={
                "id": "gen-1",
                "choices": None,
                "error": {
                    "code": 429,
                    "message": "Provider returned error",
                    "metadata": {"provider_name": "x"},
                },
            }
        ),
        API,
        "429",
        "lower the concurrency",
        requests=2,
    ),
    error(
        OPENROUTER,
        "no credit in a body with status 200",
        failed(200, "Insufficient credits", code=402),
        BILLING,
        *CREDIT,
    ),
    error(
        OPENROUTER,
        "no credit",
        failed(402, "This request requires more credits", code=402),
        BILLING,
        *CREDIT,
    ),
    error(
        OPENROUTER,
        "an error inside the choice",
        Reply(
            body={
                "choices": [
                    {
                        "message": {"role": "assistant", "content": ""},
                        "finish_reason": "error",
                        "error": {"code": 502, "message": "Provider disconnected"},
                    }
                ],
                "usage": SPENT,
            }
        ),
        API,
        "502",
        "try again later",
        requests=2,
    ),
    error(
        OPENROUTER,
        "moderation",
        failed(
            403,
            "Input was flagged",
            code=403,
            metadata={"reasons": ["violence"], "flagged_input": "..."},
        ),
        REFUSED,
        "content filter",
    ),
    # --- vLLM, Ollama, LM Studio --------------------------------------------------------------
    recorded(VLLM, "thoughts in a field", chat(reasoning="Let me see.")),
    recorded(VLLM, "thoughts in the text", chat(f"<think>\nIs it {{so}}?\n</think>\n\n{SCORE}")),
    recorded(VLLM, "the end of thoughts only", chat(f"Is it so?\n</think>\n\n{SCORE}")),
    error(
        VLLM,
        "thoughts without an end",
        chat("<think>\nIs it so?"),
        MALFORMED,
        "no JSON",
        requests=2,
        usage=(200, 40, 0, 0),
    ),
    recorded(VLLM, "Mistral's thoughts", chat(f"[THINK]Is it [so]?[/THINK]{SCORE}")),
    recorded(VLLM, "Seed's thoughts", chat(f"<seed:think>Is it?</seed:think>{SCORE}")),
    recorded(
        VLLM,
        "channels of gpt-oss",
        chat(
            "<|channel|>analysis<|message|>Is it so?<|end|><|start|>assistant<|channel|>final"
            f"<|message|>{SCORE}<|return|>"
        ),
    ),
    recorded(OLLAMA, "no usage", chat(usage=None), usage=None),
    recorded(OLLAMA, "thoughts in a field", chat(reasoning="Let me see.")),
    error(
        OLLAMA,
        "a model that is not there",
        failed(404, 'model "x" not found, try pulling it first', type="api_error"),
        API,
        "404",
        "model's name",
    ),
    recorded(LM_STUDIO, "a total only", chat(usage={"total_tokens": 120}), usage=None),
    error(
        LM_STUDIO,
        "an error as a text, with status 200",
        Reply(body={"error": "Model is unloaded."}),
        API,
        "502",
        "try again later",
        requests=2,
    ),
    # --- Groq, xAI ----------------------------------------------------------------------------
    error(
        GROQ,
        "a reply that is not of the schema, as an invalid request",
        failed(
            400,
            "Generated JSON does not match the expected schema. See 'failed_generation'.",
            type="invalid_request_error",
            code="json_validate_failed",
            failed_generation='{"reasoning": "so"}',
        ),
        MALFORMED,
        "asked for again",
        requests=2,
    ),
    error(
        GROQ_ERRORS,
        "too large a request",
        failed(413, "Request too large for model", type="tokens", code="rate_limit_exceeded"),
        API,
        "413",
        "shorter chunks",
    ),
    recorded(
        XAI,
        "reasoning tokens in the total only",
        chat(
            usage={
                "prompt_tokens": 100,
                "completion_tokens": 4,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 98},
                "completion_tokens_details": {"reasoning_tokens": 16},
            }
        ),
        usage=(2, 20, 98, 0),
    ),
    error(
        XAI,
        "no credit",
        failed(
            429,
            "Your team has either used all available credits or reached its monthly spending "
            "limit.",
            code="Some resource has been exhausted",
        ),
        BILLING,
        *CREDIT,
    ),
    # --- Gemini, Bedrock ----------------------------------------------------------------------
    recorded(
        GEMINI,
        "thoughts in the total only",
        chat(usage={"prompt_tokens": 100, "completion_tokens": 4, "total_tokens": 120}),
    ),
    error(
        GEMINI,
        "an error in a list",
        Reply(
            status=400,
            body=json.dumps(
                [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]
            ).encode(),
            headers={"content-type": "application/json"},
        ),
        API,
        "400",
        "reply_format=",
    ),
    recorded(BEDROCK, "thoughts before the text", chat(f"<reasoning>so</reasoning>{SCORE}")),
    # --- Further servers and gateways ---------------------------------------------------------
    recorded(
        OPENROUTER_COST,
        "what it cost",
        chat(usage=SPENT | {"cost": 0.95, "cost_details": {"upstream_inference_cost": None}}),
        cost=0.95,
    ),
    recorded(OPENROUTER_COST, "a free model", chat(usage=SPENT | {"cost": 0}), cost=0.0),
    recorded(
        OPENROUTER_COST,
        "a key of the user's own at the model's vendor",
        chat(
            usage=SPENT
            | {"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1.0}}
        ),
        cost=1.05,
    ),
    error(
        OPENROUTER,
        "nobody serves the model",
        failed(404, "No endpoints found that can handle the requested parameters.", code=404),
        API,
        "404",
        "model's name",
    ),
    recorded(
        XAI_COST,
        "what it cost",
        chat(usage=SPENT | {"cost_in_usd_ticks": 37_756_000}),
        cost=0.0037756,
    ),
    error(
        XAI_ERRORS,
        "a team without credits, as a text",
        Reply(
            status=403,
            body={
                "code": "The caller does not have permission to execute the specified operation",
                "error": "Your newly created team doesn't have any credits yet.",
            },
        ),
        BILLING,
        *CREDIT,
    ),
    error(
        XAI_ERRORS,
        "a request against the usage guidelines",
        Reply(
            status=403,
            body={
                "code": "The caller does not have permission to execute the specified operation",
                "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
            },
        ),
        REFUSED,
        "content filter",
    ),
    error(
        GEMINI_REASONS,
        "a reply that is filtered, with the reason",
        chat(None, finish="content_filter: PROHIBITED_CONTENT"),
        REFUSED,
        "content filter",
        usage=(100, 20, 0, 0),
    ),
    error(
        GEMINI_REASONS,
        "a reason of its own",
        chat(None, finish="SAFETY"),
        REFUSED,
        "content filter",
        usage=(100, 20, 0, 0),
    ),
    error(
        GEMINI_REASONS,
        "a reply cut off before its first word, without a message",
        Reply(body={"choices": [{"index": 0, "finish_reason": "length"}], "usage": SPENT}),
        MALFORMED,
        "cut off",
        "max_tokens=",
        usage=(100, 20, 0, 0),
    ),
    error(
        GEMINI_REASONS,
        "no reply at all to a prompt that is blocked",
        Reply(body={"object": "chat.completion", "choices": [], "usage": SPENT}),
        MALFORMED,
        "no reply",
        "filter",
        usage=(100, 20, 0, 0),
    ),
    error(
        GEMINI_BILLING,
        "no credit",
        Reply(
            status=402,
            body=json.dumps(
                [
                    {
                        "error": {
                            "code": 402,
                            "message": "Your prepayment credits are depleted.",
                            "status": "RESOURCE_EXHAUSTED",
                        }
                    }
                ]
            ).encode(),
            headers={"content-type": "application/json"},
        ),
        BILLING,
        *CREDIT,
    ),
    error(
        BEDROCK_GUARDRAILS,
        "a guardrail's text in the reply's place",
        chat("Sorry, the model cannot answer this question."),
        REFUSED,
        "declined",
        usage=(100, 20, 0, 0),
    ),
    error(
        BEDROCK_GUARDRAILS,
        "a guardrail that says it intervened",
        Reply(
            body={
                "choices": [
                    {
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": "Sorry, I cannot say."},
                    }
                ],
                "usage": SPENT,
                "amazon-bedrock-guardrailAction": "INTERVENED",
            }
        ),
        REFUSED,
        "content filter",
        usage=(100, 20, 0, 0),
    ),
    error(
        BEDROCK,
        "a throttled request",
        Reply(
            status=429,
            body={"message": "Too many requests, please wait before trying again."},
            headers={"x-amzn-errortype": "ThrottlingException"},
        ),
        API,
        "429",
        "lower the concurrency",
        requests=2,
    ),
    error(
        AZURE_ERRORS,
        "a rate limit of a deployment",
        failed(429, "Requests have exceeded the token rate limit of your tier.", code="429"),
        API,
        "429",
        "lower the concurrency",
        requests=2,
    ),
    error(
        AZURE_ERRORS,
        "a deployment that is not there",
        failed(404, "The API deployment does not exist.", code="DeploymentNotFound"),
        API,
        "404",
        "model's name",
    ),
    error(
        GROQ_ERRORS,
        "no capacity for the flexible tier",
        failed(498, "Flex tier capacity exceeded", type="capacity", code="capacity_exceeded"),
        API,
        "498",
        "try again later",
    ),
    error(
        LLAMA_CPP,
        "a request that is too long",
        failed(
            400,
            "the request exceeds the available context size, try increasing it",
            code=400,
            type="exceed_context_size_error",
            n_prompt_tokens=14_429,
            n_ctx=8192,
        ),
        API,
        "window",
        "context_window=",
    ),
    error(
        LLAMA_CPP,
        "a request that grew too long on the way",
        failed(500, "Context size has been exceeded.", code=500, type="server_error"),
        API,
        "window",
        "context_window=",
    ),
    error(
        LLAMA_CPP,
        "a model that is still loading",
        failed(503, "Loading model", code=503, type="unavailable_error"),
        API,
        "503",
        "loading",
        requests=2,
    ),
    error(
        VLLM_SERVER,
        "a request that is too long, without an error around it",
        Reply(
            status=400,
            body={
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. However, you "
                "requested 5012 tokens in the messages.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        ),
        API,
        "window",
        "context_window=",
    ),
    error(
        OLLAMA,
        "too little memory",
        Reply(status=500, body={"error": "model requires more system memory than is available"}),
        API,
        "500",
        "try again later",
        requests=2,
    ),
    error(
        MISTRAL,
        "a rate limit, without an error around it",
        Reply(
            status=429,
            body={
                "object": "error",
                "message": "Rate limit exceeded",
                "type": "rate_limited",
                "param": None,
                "code": "1300",
            },
        ),
        API,
        "429",
        "lower the concurrency",
        requests=2,
    ),
    error(
        LITELLM,
        "a budget that is spent",
        failed(
            429,
            "Budget has been exceeded! Current cost: 12.1, Max budget: 12.0",
            type="budget_exceeded",
            code="429",
        ),
        BILLING,
        *CREDIT,
    ),
    error(
        LITELLM,
        "a policy of the vendor behind",
        failed(
            400,
            "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The "
            "response was filtered due to the prompt",
            type=None,
            code="400",
        ),
        REFUSED,
        "content filter",
    ),
    error(
        LITELLM,
        "the window of the model behind",
        failed(
            400,
            "litellm.ContextWindowExceededError: litellm.BadRequestError: prompt is too long",
            type=None,
            code="400",
        ),
        API,
        "window",
        "shorter chunks",
    ),
    error(
        DEEPSEEK,
        "no credit",
        failed(402, "Insufficient Balance", type="unknown_error", code="invalid_request_error"),
        BILLING,
        *CREDIT,
    ),
    error(
        DEEPSEEK_REPLIES,
        "a reply that was broken off",
        chat(SCORE[:20], finish="insufficient_system_resource"),
        API,
        "broke off",
        "try again later",
        usage=(100, 20, 0, 0),
    ),
    recorded(
        DEEPSEEK_REPLIES,
        "thoughts in a field of their own",
        chat(reasoning_content="Let me see."),
    ),
    error(
        DASHSCOPE,
        "no credit, as an invalid request",
        failed(
            400,
            "Access denied, please make sure your account is in good standing.",
            type="Arrearage",
            code="Arrearage",
        ),
        BILLING,
        *CREDIT,
    ),
    error(
        DASHSCOPE,
        "a prompt that is filtered",
        failed(
            400,
            "Input data may contain inappropriate content.",
            type="data_inspection_failed",
            code="data_inspection_failed",
        ),
        REFUSED,
        "content filter",
    ),
    error(
        KIMI,
        "no credit, as a rate limit",
        failed(429, "Your account is not active.", type="exceeded_current_quota_error"),
        BILLING,
        *CREDIT,
    ),
    error(
        FIREWORKS,
        "an account that is suspended",
        failed(
            412,
            "Account x is suspended, possibly due to reaching the monthly spending limit",
            code="PRECONDITION_FAILED",
        ),
        BILLING,
        *CREDIT,
    ),
    # --- Any: empty, doubled and wrapped replies ----------------------------------------------
    error(
        OPENAI, "an empty reply", chat(""), MALFORMED, "empty", requests=2, usage=(200, 40, 0, 0)
    ),
    error(
        OPENAI,
        "no content",
        chat(None, tool_calls=[]),
        MALFORMED,
        "empty",
        requests=2,
        usage=(200, 40, 0, 0),
    ),
    recorded(OPENAI, "a reply twice", chat(SCORE + SCORE)),
    error(
        OPENAI,
        "two replies that differ",
        chat(SCORE + SCORE.replace("0.5", "0.9")),
        MALFORMED,
        "differ",
        requests=2,
        usage=(200, 40, 0, 0),
    ),
    recorded(OPENAI, "a code fence", chat(f"```json\n{SCORE}\n```")),
    recorded(
        OPENAI,
        "a call of a tool as text",
        chat(f'<tool_call>{{"name": "score", "arguments": {SCORE}}}</tool_call>'),
    ),
    recorded(OPENAI, "content in parts", chat([{"type": "text", "text": SCORE}])),
    recorded(OPENAI, "tokens as fractions", chat(usage={n: float(v) for n, v in SPENT.items()})),
    recorded(OPENAI, "a reply in a list", chat(f"[{SCORE}]")),
    recorded(OPENAI, "a byte order mark and blanks", chat(f"\ufeff\n {SCORE}\n\n")),
    error(
        OPENAI,
        "a reply as a quoted text",
        chat(json.dumps(SCORE)),
        MALFORMED,
        "asked for again",
        requests=2,
        usage=(200, 40, 0, 0),
    ),
    recorded(OPENAI, "words around the reply", chat(f"Here is my reply:\n{SCORE}\nI hope so.")),
    recorded(
        VLLM,
        "all of the reply among the thoughts",
        chat(None, reasoning=SCORE),
        outcome="JudgeResponseError",
        says=("empty",),
        requests=2,
        usage=(200, 40, 0, 0),
    ),
]


@dataclass(frozen=True)
class Dialect:
    """What a server refuses, in its own words.

    Attributes:
        page: The vendor's documentation.
        refuses: Tells whether a request is refused.
        reply: The refusal.
        format: The reply's form that is found in the end.
        settings: Further settings of the judge.
        lacks: Fields that the requests no longer have.
    """

    page: str
    refuses: Callable[[Any], bool]
    reply: Reply
    format: str = "json_schema"
    settings: dict[str, Any] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()


def kind_of(request: Any) -> str:
    """The form of reply that a request asks for."""
    return str(request.format.get("type", "text"))


DIALECTS: dict[str, Dialect] = {
    "Mistral lists what it does not know": Dialect(
        MISTRAL,
        lambda request: "max_completion_tokens" in request.body or "temperature" in request.body,
        Reply(
            status=422,
            body={
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "temperature"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                },
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            },
        ),
        lacks=("temperature",),
    ),
    "a FastAPI server without forms": Dialect(
        VLLM_SERVER,
        lambda request: kind_of(request) != "text",
        Reply(
            status=422,
            body={
                "detail": [
                    {"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "no"}
                ]
            },
        ),
        format="text",
    ),
    "a model at Bedrock that takes the newer limit only": Dialect(
        BEDROCK,
        lambda request: "max_tokens" in request.body,
        Reply(
            status=400,
            body={"message": "max_tokens is not supported; use max_completion_tokens instead"},
        ),
        settings={"max_tokens": 500},
        lacks=("max_tokens",),
    ),
    "OpenRouter finds nobody for a form": Dialect(
        OPENROUTER,
        lambda request: kind_of(request) == "json_schema",
        failed(
            404,
            "No endpoints found that support the requested response_format: json_schema",
            code=404,
        ),
        format="json_object",
    ),
    "OpenAI's reasoning models take no temperature": Dialect(
        OPENAI_REASONING,
        lambda request: "temperature" in request.body,
        failed(
            400,
            "Unsupported value: 'temperature' does not support 0.0 with this model.",
            type="invalid_request_error",
            param="temperature",
            code="unsupported_value",
        ),
        lacks=("temperature",),
    ),
    "OpenAI's reasoning models behind a gateway take max_completion_tokens": Dialect(
        OPENAI_REASONING,
        lambda request: "max_tokens" in request.body,
        failed(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        settings={"max_tokens": 500},
        lacks=("max_tokens",),
    ),
    "Groq's older models know no schemas": Dialect(
        GROQ,
        lambda request: kind_of(request) == "json_schema",
        failed(
            400,
            "This model does not support response format `json_schema`.",
            type="invalid_request_error",
            param="response_format",
        ),
        format="json_object",
    ),
    "LM Studio knows no bare JSON object": Dialect(
        LM_STUDIO,
        lambda request: kind_of(request) == "json_object",
        Reply(status=400, body={"error": "'response_format.type' must be 'json_schema' or 'text'"}),
    ),
    "a server without any form": Dialect(
        OLLAMA,
        lambda request: kind_of(request) != "text",
        failed(422, "Extra inputs are not permitted: response_format"),
        format="text",
    ),
    "vLLM with a chat template without system messages": Dialect(
        VLLM,
        lambda request: bool(request.system),
        failed(400, "System role not supported", type="BadRequestError"),
    ),
}
