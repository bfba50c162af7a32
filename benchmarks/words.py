"""Word lists of the synthetic memories: everyday Chinese and English, commonest first, and names of people.

The order matters: words are drawn by rank (Zipf), so the first ones are in nearly every memory and the last ones in
few. Names are drawn evenly from all combinations, so each appears a handful of times at most.
"""

from __future__ import annotations


def _listed(text: str) -> list[str]:
    return text.split()


ENGLISH = _listed("""
the and to of a in it for was on with that we is he she at they my but have had this be from as not are you
so were all about her his there one out when up their more been said some who if what which after will go
time would like our day home work them new people year good just today week could also before into other
back morning meeting over very night now only because two last really first think got went made next plan
friend house family down again dinner project long little came still around money until phone city never
always while through train school book coffee team another office trip month call late mother early garden
weekend report doctor water bought food away asked talk father park small old young started read found kitchen
idea evening sister great told walk summer music three brother room stairs river bus table letter street garage
winter moved birthday ready weather hospital lunch car film daughter teacher computer store bread question
answer minutes hours party beach flight ticket picture story green market bicycle library painting holiday
mountain village breakfast deadline budget customer contract manager invoice server release garlic tomato
cheese soup recipe oven window door roof ladder paint hammer carpet sofa lamp mirror pillow blanket jacket
umbrella shoes scarf gloves camera guitar piano violin concert theatre museum gallery statue bridge tower
harbour ferry island desert forest meadow orchard vineyard chestnut maple pigeon squirrel rabbit kitten puppy
parrot turtle goldfish aquarium allergy dentist vaccine fever headache insurance mortgage salary pension
passport embassy consulate luggage hostel campsite compass tent lantern canoe paddle anchor lighthouse
thunder blizzard drought earthquake eclipse telescope comet satellite microscope enzyme protein vitamin
marathon hurdle javelin archery chess domino puzzle origami calligraphy pottery embroidery quilt sculpture
sonnet novel biography encyclopaedia dictionary thesaurus parliament referendum treaty ambassador archaeology
""")

CHINESE = _listed("""
的 我 是 在 了 他 她 和 一个 今天 去 有 说 我们 很 也 都 到 就 要 不 想 会 上 看 吃 家 来 好 这个 人 时候 昨天
工作 朋友 现在 觉得 买 喜欢 那个 因为 所以 但是 下午 早上 晚上 一起 明天 公司 开会 打算 知道 孩子 妈妈 爸爸
周末 电话 学校 老师 回家 时间 事情 问题 以后 以前 已经 开始 准备 应该 可以 非常 特别 一点 几个 最近 北京 上海
旅行 项目 计划 医生 电影 咖啡 火车 飞机 房子 城市 公园 图书馆 音乐 生日 礼物 蛋糕 晚饭 早饭 午饭 米饭 面条 水果
苹果 西瓜 牛奶 茶 超市 市场 衣服 鞋子 手机 电脑 软件 报告 合同 客户 同事 经理 面试 工资 预算 会议 邮件 文件
医院 感冒 发烧 牙疼 药 体检 锻炼 跑步 游泳 篮球 足球 羽毛球 爬山 骑车 公交 地铁 出租车 堵车 下雨 下雪 刮风 天气
春天 夏天 秋天 冬天 春节 中秋 国庆 假期 海边 沙滩 草原 沙漠 森林 湖边 河边 桥 古镇 博物馆 展览 美术馆 剧院 演唱会
钢琴 吉他 小提琴 二胡 书法 国画 摄影 相机 小说 诗集 字典 作业 考试 毕业 论文 实验 研究 数学 物理 化学 历史 地理
猫 狗 兔子 金鱼 乌龟 鹦鹉 花园 阳台 盆栽 月季 茉莉 桂花 银杏 梧桐 竹子 厨房 冰箱 烤箱 微波炉 洗衣机 空调 窗帘
沙发 书架 台灯 地毯 毛毯 雨伞 围巾 手套 外套 毛衣 护照 签证 机票 酒店 民宿 行李 帐篷 指南针 登山杖 保险 房贷
存款 股票 基金 税单 发票 押金 搬家 装修 油漆 水管 电梯 物业 邻居 外婆 爷爷 姑姑 表哥 侄女 婚礼 请柬 喜糖 满月
望远镜 显微镜 日食 流星 卫星 地震 台风 干旱 洪水 彩虹 灯塔 渡轮 港口 海岛 珊瑚 贝壳 陶艺 剪纸 刺绣 围棋 象棋
射箭 马拉松 滑雪 冲浪 潜水 瑜伽 太极 考古 青铜器 兵马俑 敦煌 丝绸 瓷器 方言 成语 谜语 对联 灯笼 皮影 昆曲 京剧
""")

FIRST_NAMES = _listed("""
Clara Marek Ines Tobias Leila Oskar Priya Dmitri Amara Felix Noor Henrik Yuki Rafael Sigrid Mateo Zainab Anton
Freya Kofi Lucia Emil Hana Bruno Salma Viktor Greta Idris Paloma Nils Odette Kwame Mirela Jonas Tamar Ciaran
Wanda Sunil Elif Gustav
""")

LAST_NAMES = _listed("""
Novak Lindqvist Okafor Moreau Tanaka Petrov Castellano Bergman Haddad Kowalski Fitzgerald Rahman Silva Jansen
Mbeki Horvath Nakamura Delacroix Olsen Varga Quispe Ferrari Achterberg Dumitru Eriksen Sokolov Marchetti Banerjee
Thorne Vasquez Weiss Zielinski Abernathy Calloway Drummond Estrada Galanis Huang Ivanova Juarez
""")

CHINESE_SURNAMES = list("王李张刘陈杨黄赵周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧")

CHINESE_GIVEN_NAMES = _listed("""
若溪 子涵 雨桐 浩然 梓萱 明远 思齐 婉清 建国 晓峰 丽华 文博 诗雨 俊杰 海燕 志强 玉兰 天佑 佳怡 云飞 静姝 立群
秋实 春晓 慕白 念慈 承志 嘉禾 书瑶 星河
""")
