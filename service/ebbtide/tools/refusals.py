"""Refusals of arguments in Chinese, for models that are addressed in Chinese.

`tools/reading.py` words them in English; here are the same words. Names of arguments and the example stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from ebbtide.errors import EbbtideError

WORDS: Mapping[str, str] = {
    "required": "必填",
    "not an object": "不是对象",
    "too long": "太长",
    "not valid JSON": "不是有效的 JSON",
    "too many values": "值太多",
    "nested too deeply": "嵌套太深",
    "no such field": "没有这个参数",
    "not a text": "不是文字",
    "not texts": "不是文字",
    "not an allowed value": "不是允许的值",
    "cannot be read": "无法读取",
    "an attribute is too long": "有一个属性太长",
    "{} characters": "共 {} 个字符",
    "{} items": "共 {} 项",
    "{} attributes": "共 {} 个属性",
    "{} is below 1": "{} 小于 1",
    "a JSON object": "JSON 对象",
    "at most {}": "最多 {} 个",
    "at most {} levels": "最多 {} 层",
    "at most {} characters": "最多 {} 个字符",
    "at most {} items": "最多 {} 项",
    "at most {} attributes": "最多 {} 个属性",
    "names of at most {} characters, values of at most {}": "名称最多 {} 个字符，值最多 {} 个",
    "one call for each": "每项调用一次",
    "a text": "文字",
    "a list of texts": "文字的列表",
    "an integer": "整数",
    "a number": "数字",
    "an object of texts": "值为文字的对象",
    "true or false": "true 或 false",
    "a time such as 2026-05-01 or yesterday": "时间，如 2026-05-01 或 昨天",
    "a time such as last week, or {begin, end}": "时间，如 上周，或 {begin, end}",
}
"""The Chinese for what a refusal says; `{}` is a number."""


def in_chinese(error: EbbtideError) -> str:
    """Return the message of an error: that of refused arguments in Chinese, any other as it is."""
    allowed, example = error.metadata.get("allowed"), error.metadata.get("example")
    if not allowed or not example or not error.violations:
        return error.message
    [violation] = error.violations
    fault = violation.description.removesuffix(f"; allowed: {allowed}")
    return f"{violation.field}：{_in_chinese(fault)}；允许：{_in_chinese(allowed)}。例：{example}"


def _in_chinese(text: str) -> str:
    if text in WORDS:
        return WORDS[text]
    # "{} is below 1" has a number of its own.
    words = text.split(" ")
    numbers = [word for word in words if word.lstrip("-").isdigit() and word != "1"]
    template = " ".join("{}" if word in numbers else word for word in words)
    return WORDS[template].format(*numbers) if template in WORDS else text.replace(" or ", " 或 ")
