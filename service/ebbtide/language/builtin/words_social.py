"""Social words: what people say to each other around what they have to say.

The rule guarded here: a clause made only of these words, of names called and of words without content of their
own (you, is, so) is courtesy. The lists therefore hold praise and interest in the other person, and none of the
words with which people tell how they fare themselves.

Deliberately not here: any rule about clauses (courtesies.py).
"""

from __future__ import annotations

from ebbtide.language.builtin.word_lists import words

# Alone, or joined with each other, these are greetings, thanks, apologies, praise and assent.
ENGLISH = words(
    "hey hi hello hiya howdy yo thanks thank thx ty cheers congrats congratulations bravo kudos sorry "
    "apologies "
    "apologize excuse pardon bye goodbye welcome please wow whoa woah woohoo woo yay aw aww awww ooh "
    "oh ah oof "
    "ouch ugh oops hmm hm haha hahaha lol omg gosh jeez geez yeah yea yep yup yes no nope nah ok okay sure "
    "right alright absolutely definitely totally exactly indeed certainly agreed agree agrees true "
    "fair gotcha "
    "understood noted anyway well really course guess mean "
    "awesome amazing great good nice cool lovely wonderful fantastic incredible fabulous brilliant "
    "excellent "
    "perfect super sweet neat rad epic impressive inspiring inspirational interesting exciting fun "
    "funny cute "
    "adorable beautiful gorgeous stunning heartwarming touching terrific marvelous splendid delightful "
    "sounds sound looks look seems seem feels love loved like hope wish wishing glad happy proud thrilled "
    "appreciate appreciated understand understands understanding see hear hearing heard know knew "
    "knowing think "
    "believe imagine tell say said ask asking talk chat catch check checking care "
    "thing things stuff idea ideas plan point question job work news luck day night morning afternoon "
    "evening "
    "weekend week time times while later soon today way lot lots bit bunch kind kinds words word "
    "pleasure honor "
    "problem worries deal doubt fan buddy pal man dude bro girl guys friend friends folks dear mate "
    "everyone "
    "there here going doing done keep take have get let make makes means mean go come enjoy feel worth "
    "late reply delay delayed quick support sharing share shared best much more many such so too very "
    "always ever long again back together"
)
# Questions and requests whose words would do for content elsewhere.
OFFERS = words(
    "help need anything something questions question free feel reach ready assist assistance hesitate "
    "whenever "
    "know let ask happy further else"
)
# The same for Chinese, as the segmenter cuts it.
CHINESE = words(
    "嗯 嗯嗯 哦 噢 啊 哇 哇塞 哈 哈哈 哈哈哈 嘿 嘿嘿 嗨 喂 唉 哎 哎呀 呀 呢 吧 吗 嘛 啦 了 的 得 地 诶 "
    "咦 呵呵 "
    "好 好的 好吧 好啊 好呀 行 行吧 可以 是 是的 是啊 对 对啊 对的 没错 当然 的确 确实 没问题 没关系 "
    "没事 不客气 客气 "
    "不用 不用谢 用谢 不谢 你好 您好 大家好 早上好 下午好 晚上好 早安 晚安 早 再见 拜拜 下次 下次见 见 "
    "谢谢 谢谢你 谢谢您 "
    "谢 多谢 感谢 非常感谢 抱歉 对不起 不好意思 麻烦 恭喜 祝贺 祝 祝福 祝愿 加油 辛苦 辛苦了 欢迎 请 请问 "
    "明白 知道 懂 懂了 理解 了解 同意 赞同 认同 相信 希望 觉得 认为 感觉 想 听 听到 听说 听起来 看起来 "
    "看来 看 说 讲 "
    "告诉 问 聊 聊聊 聊天 谈谈 谈 分享 推荐 建议 意见 想法 看法 主意 好主意 帮助 帮 帮到 帮上 帮忙 "
    "支持 鼓励 关心 提醒 夸奖 "
    "回答 解答 需要 有 没有 有人 乐意 愿意 高兴 很高兴 荣幸 开心 棒 很棒 真棒 太棒 太棒了 厉害 不错 "
    "有趣 有意思 精彩 太好 "
    "太好了 真好 真 真的 很 太 非常 挺 超 这么 那么 那 这 这样 那样 就 也 都 还 又 会 能 能够 要 去 来 "
    "到 给 对 跟 和 "
    "随时 一定 一直 一起 什么 怎么 怎么样 如何 哪里 哪些 多 一点 一些 一下 下 次 个 件 事 事情 问题 "
    "东西 话 时候 地方 "
    "朋友 亲爱的 伙伴 助手 伴侣 伙计 兄弟 亲 今天 最近 近来 过得 过 怎样 顺利 愉快 快乐 幸福 美好 成功 "
    "一天 度过 生活 "
    "其他 别的 任何 为 您 做 让 试试 试 尝试 考虑 原来 如此 原来如此 天气 天啊 啥 还有 更 吃 好吃 呀 "
    "作为 人工智能 "
    "保持 继续 努力 记得 注意 问问 叫 说说 讲讲 看看"
)
