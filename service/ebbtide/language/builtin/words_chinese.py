"""Chinese word lists: what may not become a keyword, and what glues or breaks clauses.

The rule guarded here: a list exists because a real sentence went wrong without it, and each says
what it is for. Membership only; nothing here depends on the order of a set.

Deliberately not here: a dictionary (the segmenter brings one) and any rule.
"""

from __future__ import annotations

from ebbtide.language.builtin.word_lists import ordered, words

# Pronouns and stand-ins: they point, they do not name.
PRONOUNS = words(
    "我 你 您 他 她 它 我们 你们 他们 她们 它们 咱 咱们 俺 自己 自身 本人 本身 大家 别人 人家 他人 "
    "这 那 这个 那个 这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 这边 那边 哪 哪里 哪儿 "
    "哪个 哪些 "
    "什么 谁 怎么 怎样 如何 多少 几 某 某些 某个 每 每个 各 各种 各个 各自 其 其他 其它 其中 其实 "
    "一个 一些 一下 一点 有些 有人 另 另外 另一个 彼此 对方 双方 全部 所有 一切 任何 别的 "
    "之类 等等 等"
)

# Surnames of one character: before a given name they belong to it.
SURNAMES = words(
    "王 李 张 刘 陈 杨 黄 赵 吴 周 徐 孙 马 朱 胡 郭 何 林 高 罗 郑 梁 谢 宋 唐 许 韩 冯 邓 曹 彭 曾 "
    "肖 田 董 袁 潘 于 蒋 蔡 "
    "余 杜 叶 程 苏 魏 吕 丁 任 沈 姚 卢 姜 崔 钟 谭 陆 汪 范 金 石 廖 贾 夏 韦 付 方 白 邹 孟 熊 秦 "
    "邱 江 尹 薛 闫 段 雷 侯 龙 "
    "史 陶 黎 贺 顾 毛 郝 龚 邵 万 钱 严 覃 武 戴 莫 孔 向 汤"
)

# Nouns too vague to tell one memory from another.
VAGUE_NOUNS = words(
    "东西 事情 事 事儿 事物 时候 时间 感觉 问题 情况 方面 方式 方法 地方 样子 部分 原因 结果 "
    "关系 意思 "
    "办法 过程 程度 内容 人 人们 人家 有人 某人 个人 人士 者 家伙 一种 种类 类型 种 点 点儿 "
    "话 话题 话说 "
    "道理 想法 看法 建议 意见 需要 可能 可能性 必要 机会 作用 影响 特点 特色 特征 效果 好处 "
    "坏处 优点 "
    "缺点 条件 程序员儿 日子 生活中 一生 世界上 当中 之中 中 内 外 里 上 下 前 后 左右 以上 "
    "以下 之间 "
    "之后 之前 以后 以前 里面 外面 上面 下面 前面 后面 旁边 附近 身边 心里 心中 眼里 手里 "
    "总体 整体 "
    "大部分 大多数 多数 少数 一部分 半天 一会儿 一会 一阵 一次 一遍 一番 有时候 有时 到时候 "
    "到时 关键 "
    "重点 基础 本来 根本 主要 目的 意义 价值 角度 层面 领域 范围 水平 标准 名字 名称 称呼 号 数 量 "
    "行为 现象 状态 状况 东东 玩意 玩意儿 心情 快乐 开心 高兴 愉快 顺利 麻烦 帮助 感谢 谢谢 "
    "祝福 支持 "
    "理解 了解 认识 选择 喜好 爱好者 经历 体验 感受 印象 兴趣 方向 前提 身上 手上 脸上 路上 手头 "
    "总之 不用 没什么 没事 好事 坏事 大事 小事 一样 一般 一直 一起 一定 一边 一方面 最后 最终 最近 "
    "同时 当时 平时 随时 及时 首先 其次 然后 接下来 刚才 刚刚 目前 眼下 将来 未来 过去 从前 如今 "
    "多种 许多 很多 不少 大量 无数 若干 部分人 那种 这种 此类 此外 能力 功能 具体 整个 全都 都会 "
    "助手 人工 您好 你好 嗨 哈喽 哈哈 嘿嘿 嘻嘻 呵呵 早安 晚安 再见 拜拜 加油 不客气 没关系 对不起 "
    "程式 一步 步骤 环节 细节 因素 元素 形式 模式 风格 气氛 氛围 精神 心态 情绪 境界 天 年 月 "
    "日 周 "
    "分 秒 时 刻 岁 口 手 头 眼 心 身 力 气 声 面 处 件 回 次 遍 场 位 名 只 条 张 本 部 台 "
    "家 座 间 "
    "学会 管理 我会 尝试 分配 合理 提高 提升 出去玩 不用谢 主要内容 之旅 试试 一步 无法 美丽 "
    "温暖 幸福 "
    "舒服 健康状况 美好 真实 深刻 独特 特殊 著名 精彩 感兴趣 轻松 自然 安全 积极 有效 简单 "
    "复杂 完美 资深 优秀 高级 新款 最爱 本次 网上 网络上 全程 全新 多样 成功 份 款 句 段 篇 "
    "首 杯 碗 瓶 盒 包 袋 双 副 套 群 批 堆 排 层 元 块 毛 角 对 行 好 坏 大 小 多 少 "
    "好像 似乎 看来 看起来 听起来 说起来 其内 老是 总是 老样子 样 那天 这天 有天 某天 实际上 "
    "事实上 "
    "明白 聊天 聊聊 谈谈 陪伴 陪伴着 实际 经典 有所 客气 主意 好主意 会试 怎么办 美的 感人 有点 一点 "
    "很多人 下一次 每一次 "
    "当前 有关 亲身 利用 调整 运用 生动 高超 古老 真棒 挺棒 杠杠 专门 一流 新鲜 多加 乐意 安静 迷人 "
    "热门 繁琐 实用 基本 基本上 "
    "负面 正面 怎样才能 令人 荣幸 早日 智能化 智能 代表性 启发性 美味 清爽 言喻 内向 外向 俗套 娱乐 "
    "一段时间 半个小时 早上好 "
    "晚上好 下午好 下次 时刻 进展 评估 拓宽 指导 驱动 变数 优势 交流 问问 说说 看看 玩儿 试一下 "
    "感受一下 更弱 伴侣 时期 阶段 "
    "下一些 正在 有序 避免 充分 吃力 有点吃力 保持良好 良好 后调 成就 充实 精致 舒适 便捷 方便 清晰 "
    "流畅 明显 显著 适量 "
    "适当 适合 相关 主要 重要 必要 深度 程度 高度 多样性 丰富 热情 热爱 善良 勇敢 坚强 聪明 可爱 漂亮 "
    "帅气 干净 舒心 放心 担心 "
    "开朗 乐观 自信 耐心 细心 用心 真心 贴心 有空 有时间 没时间 一件 两件 那首 这首 首歌 那首歌 一句 "
    "两道 第一次 第二次 "
    "启动 之类 发展 变化 深刻 动力 行动 想象 乐趣 收获 心得 力量 魅力 潜力 注意 做法 说法 看法 用法 "
    "下场 开头 结尾 全部 "
    "好消息 坏消息 调节 循环 买些 聆听 享受 锻炼身体 身处 心仪 学 问 写 画 唱 跳 吃 喝 做 玩 "
    "有用 有趣 有意思 重要性 必要性 话说回来 缘故 用处 益处 帮忙 全身 第一 第二 第三 第四 第五 有空"
)

# Time words that fill rather than date: they move with the reader.
TIME_FILLERS = words(
    "今天 昨天 明天 后天 前天 今年 去年 明年 现在 以前 以后 之前 之后 刚才 刚刚 最近 近来 "
    "目前 当时 "
    "后来 平时 有时 有时候 时候 早上 上午 中午 下午 晚上 傍晚 凌晨 夜里 白天 今晚 昨晚 明早 "
    "今早 当天 "
    "那天 这天 每天 天天 每年 每周 每月 本周 本月 这周 上周 下周 上个月 下个月 这个月 上次 "
    "下次 这次 "
    "周末 同时 随时 将来 未来 过去 从前 如今 眼下 当年 往年 常年 整天 全天 一时 届时 此时 "
    "此刻 那时 平日 "
    "小时候 年轻时 当日 次日 一早 半夜 深夜 早晨 清晨 近日 往常 日前 近期 前些天 这些天 前几天 这几天"
)

# The dictionary holds verb and object as one (提高效率); behind these verbs the object is the noun.
OBJECT_VERBS = words(
    "提高 解决 分享 建立 思考 抒发 体验 舒展 锻炼 保护 确保 阅读 保持 出现 避免 控制 改善 增强 增加 "
    "减少 享受 欣赏 放松 "
    "缓解 寻找 安排 制定 完成 参加 多加 利用 获得 取得 开展 加强 培养 丰富 追求 实现 克服 面对 发挥 注意"
)
# Wholes that begin with one of them all the same.
OBJECT_WHOLES = words("注意事项 解决方案 培养皿 体验中心 控制系统 保护措施")

# A verb or noun before one of these endings makes one noun with it (摄影 + 展, 培训 + 班).
NOUN_ENDINGS = words(
    "节 展 部 店 院 馆 赛 奖 费 员 师 者 室 厅 营 班 组 券 证 器 机 法 局 厂 区 汇 群 仪 "
    "剂 率 课 费 处 所 站 团 书 稿 价 表"
)
# Endings that make a name of the words before them.
ORGANISATIONS = ordered(
    "有限公司 公司 集团 银行 医院 大学 学院 中学 小学 事务所 研究院 研究所 酒店 餐厅 工作室 "
    "出版社 俱乐部 协会 基金会 幼儿园 "
    "盛典 盛宴 盛会 大会 分享会 交流会 研讨会 发布会 招聘会 座谈会 展览会 读书会 运动会 "
    "图书馆 博物馆 美术馆 公园 广场 商场 大厦 小区 论坛 峰会 大赛 音乐节 博览会"
)
# Verbs that stand before a noun as its attribute more often than they govern it.
ATTRIBUTIVE_VERBS = words(
    "支付 登录 招聘 培训 缓存 监控 认证 注册 订阅 报销 审批 研发 运营 配送 搜索 存储 "
    "备份 发布 部署 测试 挑战 "
    "健身 旅游 旅行 出差 体检 编程 摄影 写作 养老 投资 理财 签到 抽奖 促销 实习 毕业 入职 "
    "离职 购物 用餐 住宿 实战 演唱 "
    "交流 颁奖 开幕 闭幕 复习 备考 减肥 装修 搬家 退款 退货 物流 调试 编译 日志 限流 "
    "消费 充电 停车 会员 直播 创新 合作 融合 创作 观影 展示"
)

# Verbs that name an activity: a person would write them down as a topic although the tagger says
# verb.
ACTIVITIES = words(
    "游泳 跑步 爬山 登山 健身 瑜伽 滑雪 滑冰 骑行 骑车 徒步 露营 钓鱼 旅行 旅游 出差 加班 "
    "搬家 装修 "
    "考试 面试 实习 考研 留学 上学 开学 毕业 辞职 跳槽 入职 离职 退休 求职 创业 结婚 离婚 "
    "怀孕 生日 "
    "订婚 恋爱 分手 相亲 聚会 聚餐 约会 购物 逛街 做饭 烹饪 烘焙 减肥 减脂 失眠 感冒 发烧 "
    "咳嗽 手术 "
    "住院 体检 过敏 看病 吃药 打针 化疗 画画 绘画 唱歌 跳舞 弹琴 书法 摄影 拍照 写作 阅读 "
    "读书 看书 "
    "编程 写代码 开会 培训 演讲 直播 投资 理财 炒股 贷款 买房 租房 买车 驾照 学车 开车 打球 踢球 "
    "打篮球 踢足球 羽毛球 网球 下棋 养猫 养狗 遛狗 种花 种菜 园艺 冥想 锻炼 运动 训练 比赛 "
    "演出 排练 "
    "失恋 失业 破产 骨折 车祸 流产 早产 晋升 升职 加薪 裁员 中奖 获奖 落榜 过世 去世 移民 退学 休学 "
    "保研 高考 中考 戒烟 "
    "戒酒 离家 订阅 复婚 相亲 创业 搬迁 竞标 中标 上市 并购 "
    "练习 复习 预习 报名 签证 转账 退款 退货 快递 理发 美甲 插花 跳绳 跳伞 攀岩 漂流 划艇 "
    "潜水 冲浪 "
    "野餐 烧烤 自驾 迁移 部署 上线 回滚 重构 备份 升级 宕机 报错 超时 扩容 监控 限流 压测 熔断"
)

# Words the tagger calls nouns that are fine inside a compound but say little alone.
WEAK_NOUNS = words(
    "朋友 工作 生活 学习 公司 项目 老师 同学 同事 家人 家里 学校 孩子 电影 音乐 城市 活动 "
    "计划 信息 电话 "
    "消息 文件 数据 系统 用户 产品 服务 技术 名单 数量 规模 年龄 地点 地址 职业 学历 爱好 "
    "家乡 身高 "
    "体重 号码 邮箱 生日 性格 同时 环境 社会 文化 历史 世界 国家 人生 作品 故事 主题 情节 "
    "角色 压力 "
    "目标 习惯 经验 知识 资料 资源 任务 会议 主人公 图片 照片 视频 联系 岗位 单位 教育 背景 行业 "
    "身份 领导 客户 老板 团队 部门 成员 全家 一家人 联系电话 教育背景 周边 当地"
)

# Nouns that name people by their place towards the speaker: worth a keyword, but after the facts.
KIN = words(
    "爸爸 妈妈 父亲 母亲 父母 爷爷 奶奶 外公 外婆 姥姥 姥爷 哥哥 姐姐 弟弟 妹妹 儿子 女儿 "
    "丈夫 妻子 老公 "
    "老婆 叔叔 阿姨 舅舅 舅妈 姑姑 姑父 姨妈 婶婶 伯伯 伯父 表哥 表姐 表弟 表妹 堂哥 堂姐 "
    "堂弟 堂妹 侄子 "
    "侄女 外甥 外甥女 同事 同学 室友 邻居 上司 朋友 男朋友 女朋友 宝宝 孙子 孙女 岳父 岳母 "
    "公公 婆婆 上司 下属"
)

# Negations: a clause keeps them or is not used.
NEGATIONS = words(
    "不 没 没有 别 不要 不用 不会 不能 不是 未 无 勿 莫 非 不再 从不 从未 绝不 并不 并非 毫不 "
    "没法 无法 "
    "不必 不该 不想 不敢 不行 不得 不准 不许 禁止 拒绝 取消 停止 避免 尚未 未能 不曾 甭 "
    "几乎不 很少 不太 "
    "不怎么 不大 不到 不够 不可 不可能 不好 不对 不同 不足 不喜欢 不知道 不舒服 没法儿 忌 戒 "
    "谢绝 防止 "
    "不含 不吃 不喝 不爱 除了 不远 不满 不需 不需要 不可以 不一定 不至于 不见得 不适 不宜 "
    "不适合 没能"
)

# Openers that go even without a comma behind them when a clause is taken out of its place.
FREE_OPENERS = words(
    "但是 可是 不过 然而 而且 并且 所以 因此 因而 于是 然后 接着 另外 此外 那么 其实 总之 "
    "当然 我觉得 我认为 我想说 我感觉 "
    "说实话 老实说 事实上 实际上 请问 也就是说 比如说 比如 例如 听起来 看起来 最后 首先 其次 "
    "因为 由于"
)
# Openers that may go where a comma or a stop sets them off.
OPENERS = ordered(
    "但是 可是 不过 然而 而且 并且 所以 因此 因而 于是 然后 接着 另外 此外 还有 同时 那么 "
    "其实 总之 首先 "
    "其次 因为 由于 最后 当然 的确 确实 对了 话说 好的 好吧 嗯嗯 嗯 哦 噢 啊 哎呀 哎 唉 "
    "哈哈哈 哈哈 哈 嘿 喂 你好 您好 "
    "是的 对的 没错 谢谢你 谢谢您 谢谢 感谢 非常感谢 那 但 而 也就是说 比如说 比如 例如 "
    "听起来 看起来 "
    "我觉得 我认为 我想说 我感觉 说实话 老实说 事实上 实际上 请问 麻烦 顺便说一下 顺便 "
    "总的来说 并 且 就"
)

# Clauses opened by these turn round what stands before them, so they matter more than their length
# says.
CONTRASTS: tuple[str, ...] = (
    "但是",
    "可是",
    "不过",
    "然而",
    "但",
    "却",
    "只是",
    "反而",
    "除非",
    "否则",
    "其实",
    "结果",
    "不料",
    "而不是",
    "可惜",
)

# Clauses opened by these are half a thought: they hold on to the clause that follows.
CONDITIONS: tuple[str, ...] = ordered(
    "除了 至于 如果 要是 假如 假设 倘若 若是 若 只要 只有 除非 虽然 尽管 即使 就算 哪怕 因为 "
    "由于 当 "
    "既然 为了 与其 "
    "无论 不管 不但 不仅 自从 万一 每当 每逢 对于 关于 随着 通过 作为 根据 按照"
)

# Intensifiers and fillers that may be dropped from the middle of a clause without changing what it
# says.
DROPPABLE = words(
    "非常 很 特别 十分 挺 真的 真 挺 比较 相当 极其 实在 简直 有点 有点儿 稍微 其实 确实 的确 "
    "当然 一直 就 都 "
    "还 也 又 才 便 呢 啊 吧 呀 啦 嘛 哦 哈 噢 啊呀 刚刚 正在 已经 总是 大概 突然 终于 居然 "
    "竟然 反正 所以 "
    "然后 那么 好像 似乎 有些 一下 一点 不断 更加 更 最好 尽量 完全 到底 究竟 几乎 恰好 顺便 "
    "直接 当时 现在 目前 今天 一起 自己 觉得 认为 感觉 将要"
)

# Droppable words that bear on truth or time: only dropped when nothing else helps.
CAREFUL = words("大概 几乎 好像 似乎 今天 现在 目前 已经 正在 刚刚 都 又 才 觉得 认为 感觉 还 更 更加 最好")

# A phrase or a cut never ends in one of these.
NO_END = words(
    "的 地 得 和 与 跟 同 及 以及 或 或者 还是 而 而且 并 并且 但 但是 因为 所以 如果 在 从 "
    "向 往 对 把 被 给 "
    "让 使 将 由 以 为 为了 于 按 按照 根据 关于 对于 通过 随着 当 是 有 很 非常 最 更 太 还 "
    "也 就 都 又 才 "
    "不 没 没有 别 要 想 会 能 可以 应该 可能 一 一个 一些 这 那 这个 那个 每 我 你 您 其 他 "
    "她 它 所 等 比 像 "
    "至 到 去 来 请 叫 说 用 跟着 之 下 上 第 前 约 近 超 共 并不 正在 已经 一种 一款 一本 "
    "一家 一只 一位 一名 "
    "一张 一台 一部 一次 一件 一条 一份 让我 给我 并非 不要 不是 不会 不能 觉得 认为 希望 "
    "需要 准备 打算 开始 "
    "继续 喜欢 进行 有点 特别 比较 真的 什么 怎么 哪 哪些 几 多 挺 各 各种 某 两 三 四 五 六 "
    "七 八 九 十 几个"
)

# A phrase or a cut never begins with one of these.
NO_START = words(
    "叫 叫做 名叫 位于 有 的 地 得 了 着 过 们 吗 呢 吧 啊 呀 嘛 啦 和 与 跟 及 以及 或 或者 "
    "而 而且 并 并且 但 但是 所以 因此 "
    "等 等等 就 也 都 还 又 才 便 之 所 者 里 中 上 下 内 外 后 前 时 时候 的话 来说 而言 来 "
    "去 到 是 个 只 "
    "本 位 名 条 件 次 岁 元 块 以 一下 一样 似的 起来 下来 出来 过来 完 好 给"
)

# Words younger than the dictionary, which would otherwise fall apart.
ADDED_WORDS = ordered(
    "不客气 听起来 看起来 "
    "会计 下属 海鲜 核磁共振 年会 豆包 微信 抖音 小红书 支付宝 淘宝 京东 拼多多 知乎 哔哩哔哩 "
    "钉钉 飞书 滴滴 美团 高铁 地铁站 网课 自媒体 大模型 "
    "人工智能 机器学习 深度学习 知识图谱 云计算 微服务 数据库 服务器 二维码 充电宝 奶茶 火锅 "
    "外卖 健身房 "
    "瑜伽课 民宿 露营 剧本杀 密室逃脱 钢琴课 大提琴 小提琴 尤克里里 架子鼓 猫粮 狗粮 体检报告 "
    "社保 公积金"
)

# All that points or fills: never a keyword, whatever the tagger says.
STOPPED = PRONOUNS | VAGUE_NOUNS | TIME_FILLERS
# The tagger's names for nouns, proper names, places and verbal nouns.
NOUN_TAGS = words("n nr nr1 nr2 nrj nrf nrt nrfg ns nsf nt nz nw nl ng vn j an s")
