"""English word lists: a closed-class lexicon and the commonest verbs and adjectives.

The rule guarded here: what is in none of these lists counts as a noun, so the lists err on the
side of being long for verbs and adjectives and short for nouns. Inflected verbs are made once at
import, from the regular rules and one table of irregular forms.

Deliberately not here: a part-of-speech model and any rule about context.
"""

from __future__ import annotations

from ebbtide.language.builtin.word_lists import ordered, words

DETERMINERS = words(
    "the a an this that these those my your his her its our their some any no each every "
    "another either "
    "neither such whose which what many much few several all both more most less least enough "
    "one two three four five six seven eight nine ten eleven twelve hundred thousand"
)
POSSESSIVES = words("my your his her its our their whose")
SUBJECTS = words(
    "i you he she it we they who i'm you're he's she's it's we're they're there i've we've you've"
)
PRONOUNS = SUBJECTS | words(
    "me him us them mine yours hers ours theirs myself yourself himself herself itself "
    "oneself ourselves themselves "
    "one ones someone anyone everyone somebody anybody everybody nobody none something "
    "anything everything "
    "nothing whoever whatever whichever whom other others else y'all ya ur im u they've i'd "
    "you'd we'd they'd "
    "he'd she'd i'll you'll he'll she'll it'll we'll they'll that's there's here's what's "
    "who's where's how's "
    "let's that'll it'd why'd how'd who'd where'd what'd when's why's"
)
AUXILIARIES = words(
    "am is are was were be been being do does did doing done have has had having will would "
    "can could shall "
    "should may might must ought gonna wanna gotta cannot isn't aren't wasn't weren't don't "
    "doesn't didn't "
    "haven't hasn't hadn't won't wouldn't can't couldn't shouldn't mustn't needn't ain't "
    "shan't cant dont "
    "didnt doesnt wont isnt"
)
# After these an unknown word is a verb.
MODALS = words(
    "will would can could shall should may might must gonna wanna gotta cannot won't wouldn't "
    "can't couldn't "
    "shouldn't mustn't don't doesn't didn't do does did i'll you'll he'll she'll it'll we'll "
    "they'll i'd you'd "
    "we'd they'd let's please dont didnt"
)
PREPOSITIONS = words(
    "of in on at by for with about against between into through during before after above "
    "below to from up "
    "down out off over under within without along across behind beyond beside besides near "
    "around among "
    "toward towards upon onto via per like unlike than as until till since despite throughout "
    "inside outside "
    "amid amongst versus vs regarding concerning including excluding except plus minus"
)
CONJUNCTIONS = words(
    "and or but nor so yet because although though if unless while when whenever where "
    "wherever whether that "
    "once whereas how why then else etc e.g i.e also however therefore moreover furthermore "
    "instead otherwise "
    "meanwhile thus hence nevertheless nonetheless & n"
)
ADVERBS = words(
    "forever very really just too also even still already yet ever never always often "
    "sometimes usually again soon "
    "now then here there today tomorrow yesterday tonight later earlier once twice almost "
    "quite rather pretty "
    "so well maybe perhaps indeed anyway away back together apart far forward ahead abroad "
    "aside everywhere "
    "somewhere anywhere nowhere elsewhere ago lately recently not only especially "
    "particularly nearly hardly "
    "barely extra super totally kinda sorta somewhat somehow online offline instead though "
    "alone likewise "
    "altogether overnight upstairs downstairs sure okay ok yes no yeah yep yup nope nah wow "
    "hey hi hello oh "
    "ah aw aww awww hmm um uh haha lol omg thanks thank thx bye goodbye cheers congrats "
    "congratulations "
    "welcome please sorry absolutely exactly actually basically definitely btw fyi imo asap "
    "tbh gosh cool "
    "ouch yay ooh whoa huh eh phew hooray anymore nowadays beforehand afterwards afterward "
    "next last first "
    "second third secondly thirdly firstly lastly finally not n't"
)

# Words that describe; as keywords they say nothing by themselves.
ADJECTIVES = words(
    "good great nice bad big small large little long short tall high low old new young early "
    "late fast slow "
    "easy hard difficult simple happy sad glad proud excited exciting amazing awesome "
    "wonderful fantastic "
    "incredible lovely beautiful gorgeous pretty cute funny fun interesting boring important "
    "special different "
    "same similar other own sure right wrong true false real fake full empty free busy ready "
    "able unable "
    "possible impossible likely unlikely certain clear dark light bright heavy strong weak "
    "hot cold warm "
    "cool fresh clean dirty dry wet safe dangerous healthy sick ill tired hungry thirsty rich "
    "poor cheap "
    "expensive quick quiet loud calm peaceful nervous anxious worried scared afraid angry "
    "upset mad crazy "
    "weird strange odd normal usual common rare unique popular famous favorite favourite main "
    "major minor "
    "key top best better worse worst perfect excellent terrible horrible awful lucky grateful "
    "thankful "
    "inspiring inspired motivated passionate creative delicious tasty yummy sweet comfortable "
    "cozy comfy "
    "helpful useful useless effective efficient successful meaningful powerful stressful "
    "challenging rewarding "
    "relaxing refreshing stunning impressive tough rough huge tiny massive enormous entire "
    "whole complete "
    "recent current previous former final initial additional extra various numerous countless "
    "specific "
    "general particular personal private public local global national international social "
    "modern "
    "traditional classic basic advanced professional essential necessary crucial vital "
    "significant little much serious severe mild deep wide broad narrow thick thin soft "
    "smooth close open closed "
    "available accessible affordable reasonable suitable appropriate proper correct accurate "
    "exact overall "
    "solid decent fine okay alright honest kind friendly supportive generous patient brave "
    "bold wild "
    "magical epic neat sleek stylish elegant fancy gentle strict loose tight sharp blunt "
    "rapid steady "
    "constant regular daily weekly monthly yearly annual hourly single double multiple couple "
    "certain "
    "dear lovely huge fabulous magnificent remarkable extraordinary outstanding brilliant "
    "superb thrilled stoked "
    "pumped eager keen curious aware unaware careful careless confident comfortable "
    "uncomfortable familiar "
    "unfamiliar grown outdoor indoor nearby upcoming ongoing existing remaining missing "
    "following "
    "latest newest oldest biggest smallest largest highest lowest fastest slowest easiest "
    "hardest longest "
    "shortest bigger smaller larger higher lower faster slower easier harder longer shorter "
    "older younger "
    "cheaper stronger healthier happier simpler cleaner newer later earlier sooner closer "
    "further farther "
    "deeper wider greater lesser fewer total average typical ideal equal fair unfair live "
    "alive dead "
    "asleep awake married pregnant retired broken stuck lost gone done red blue green yellow "
    "black white "
    "brown orange pink purple gray grey golden silver colorful colourful homemade worth "
    "nostalgic "
    "straight hectic amusing charming tremendous heartwarming heartfelt overwhelming intense "
    "valuable precious worthwhile "
    "furry fluffy rainy sunny windy cloudy salty spicy crispy juicy messy noisy picky silly "
    "sunny foggy snowy shiny sticky handy tricky risky bumpy chilly cozy mindful memorable "
    "enjoyable adorable unforgettable vibrant lively rad sick hilarious genuine sincere "
    "everyday convenient exclusive essential individual exhilarating hyped intense fit consistent serene "
    "tranquil insane immersive vivid optimistic consistent fulfilling active unfortunate humble "
    "lush "
    "abstract promising minimalistic awestruck imperfect compact widespread diverse adequate gradual "
    "upright slight "
    "unreal priceless frustrating thrilling chaotic therapeutic uplifting encouraging impactful satisfying "
    "motivating pleasant awkward bitter blank brief calming capable casual cautious civil clever "
    "clumsy crowded "
    "cruel delicate dull elaborate exhausted exhausting faint fierce flexible formal fragile frequent "
    "friendly frozen "
    "furious gloomy grumpy harmless harsh immense inevitable innocent jealous lazy legal lonely mature "
    "mild minimal "
    "modest mutual naive neutral noble obvious plain polite primary prior proud pure quick random relevant "
    "reliable remote respective ripe secure selfish sensitive separate shallow shy sober spare stable "
    "stubborn "
    "subtle sudden superior swift tender timid touching tragic ugly urgent useful vague vast verbal "
    "virtual visible "
    "vivid vulnerable wealthy wicked wise witty chilled chilled-out laid-back soul-calming like-minded "
    "well-known "
    "resilient determined dedicated talented skilled experienced accomplished breathtaking "
    "mesmerizing soothing "
    "invaluable positive negative upbeat down-to-earth well-deserved much-needed must-see "
    "must-have next-level"
)

# Nouns too vague, or too bound to the moment of speaking, to tell memories apart. Feelings and
# abstractions of small talk: keywords only where the text offers nothing more tangible.
WEAK_NOUNS = words(
    "love joy fun happiness hope kindness generosity gratitude positivity passion passions "
    "dream dreams goal goals "
    "progress experience experiences life memory memories support advice energy motivation "
    "inspiration "
    "beauty strength encouragement attention challenge challenges opportunity opportunities "
    "success effort "
    "efforts benefit benefits idea ideas photo photos picture pictures pic pics tip tips plan "
    "plans skill skills "
    "feeling feelings thought thoughts question questions suggestions recommendations "
    "information details help "
    "change changes friend friends journey potential problem problems name names word words "
    "smile interest interests "
    "world power purpose issue issues answer result results process trip kids kid option "
    "options step steps list "
    "message chat call example examples situation view style content version mistake mistakes"
)

VAGUE_NOUNS = words(
    "thing things stuff way ways lot lots bit kind kinds sort sorts type types part parts "
    "piece pieces time "
    "times moment moments day days week weeks month months year years hour hours minute "
    "minutes second "
    "seconds morning afternoon evening night today tomorrow weekend weekends person people "
    "guy guys man men "
    "woman women everyone someone fact facts reason reasons case cases point points matter "
    "matters idea ideas "
    "example examples problem problems issue issues question questions answer answers number "
    "numbers amount "
    "place places area areas side sides end ends beginning start middle rest bunch couple "
    "pair set sets "
    "tip tips step steps option options list chance chances luck mind minds head hand hands "
    "eye eyes heart "
    "word words name names anything fun joy happiness love hope hopes wish wishes care "
    "feeling feelings sense experience experiences life lives world worlds memory memories "
    "thought thoughts "
    "difference level levels range variety form forms sake look looks talk talks chat help "
    "support deal "
    "note notes info information detail details result results impact effect effects purpose "
    "importance "
    "ability need needs use usage reminder glimpse blast break sort-of total both half hello "
    "dude buddy bro "
    "mate pal folks yo hey thanks blessing honor pleasure wonder treat try vibe vibes bet "
    "aspect aspects factor factors benefit benefits process passion passions dream dreams "
    "goal goals "
    "progress change changes opportunity opportunities challenge challenges success effort "
    "efforts "
    "beauty power strength energy inspiration motivation encouragement reaction situation "
    "situations "
    "advice suggestion suggestions recommendation recommendations pic pics picture pictures "
    "photo photos "
    "image images attention focus course lookout tons ton tonne load loads loss mistake "
    "today's view "
    "plenty majority handful dozen hundreds thousands everything basis order account addition "
    "congratulation welcome sure go congrats wow omg gosh ages while outcome outcomes "
    "approach approaches "
    "appreciation kindness generosity positivity touch approach top bottom front back left "
    "right yesterday "
    "smile smiles laugh laughs hug hugs size sizes item items key keys value values "
    "state condition role impression version versions content style background response "
    "interest interests "
    "monday tuesday wednesday thursday friday saturday sunday noon midnight being beings self "
    "line user "
    "assistant ai language model everyone's"
)

# Nouns that carry a topic only together with another (snack ideas, job details); alone they name nothing.
EMPTY_ALONE = words(
    "worry worries root roots blast reply replies tons lot lots "
    "idea ideas word words help support question questions problem problems name names result results "
    "list lists "
    "example examples step steps option options issue issues thought thoughts detail details "
    "information info "
    "message messages chat tip tips view views situation content style answer answers photo photos picture "
    "pictures pic pics image images photography group groups love care joy life world experience "
    "experiences memory "
    "memories feeling feelings effort efforts change changes power energy plan plans cause causes news "
    "work "
    "quality action actions activity activities act acts success challenge challenges opportunity "
    "opportunities "
    "benefit benefits progress friend friends kindness positivity encouragement inspiration motivation "
    "strength "
    "hope beauty happiness attention potential purpose process past future better favorites favorite "
    "sight fan "
    "mix everyday bout bummer pity nudge hiccups downs ups damper reset source sources choice choices "
    "desire sight "
    "go-to combination stack row bit hustle bustle everything someone anyone distance corner couple "
    "pals buds "
    "buddies fam folks dude coolest awe yum guts gosh oops gotcha woohoo woah agreed ugh someday "
    "anything whole "
    "impressions return presence sense reality voice lesson lessons amount kind version advice skill "
    "skills goal "
    "goals dream dreams passion passions interest interests suggestion suggestions recommendation "
    "recommendations "
    "smile mistake mistakes journey fun chance response assistance tons resource resources reminders shape "
    "period portion quantities category combinations cup cups topic topics"
)

# Of these the ones that may still stand for a text that names nothing better.
MODEST = words(
    "skill skills goal goals dream dreams friend friends advice challenge challenges plans memories progress "
    "journey passion motivation support resources lesson lessons interests suggestions friendship decision"
)

# Verbs and adjectives that are news by themselves; a text without a noun is filed under them.
TOPICAL = words(
    "fired pregnant married divorced retired engaged promoted hired injured homesick vegetarian vegan "
    "allergic "
    "diabetic depressed adopted graduated hospitalized bankrupt unemployed diagnosed widowed evicted "
    "burgled "
    "robbed pescatarian bilingual autistic dyslexic insomniac asthmatic"
)

# Time words, which may date a memory but never name what it is about.
MONTHS = words(
    "january february march april june july august september october november december jan "
    "feb mar apr jun "
    "jul aug sep sept oct nov dec"
)
WEEKDAYS = words(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun"
)

_VERBS = ordered("""
rotate revert

accept achieve act adapt add adjust admire admit adopt advise affect afford agree aim allow amaze
announce
apologize appear apply appreciate arrange arrive ask assume attend avoid bake bear beat become
begin believe
belong bet blow boost borrow bother break breathe bring build burn bury buy calculate call calm
cancel
capture care carry catch cause celebrate change charge chase chat check cheer choose clarify clean
clear
climb close collect combine come commit communicate compare compete complain complete concentrate
confirm
confuse connect consider consist contact contain continue contribute convince cook cope copy count
cover
create cry cut dance deal decide declare decorate decrease define delay delete deliver demand
depend deploy
describe deserve design destroy determine develop die disagree disappear discover discuss display
distract
divide donate draw dream drink drive drop dry dump earn eat embrace emphasize enable encounter
encourage end
enhance enjoy ensure enter escape establish evolve examine exist expand expect experience explain
explore
expose express extend face fail fall feed feel fight figure fill find finish fit fix fly focus
follow forget
forgive foster fry gain gather get give glad go grab grow guess handle hang happen hate hear heat
help hesitate
hide hire hit hold hope hug hunt hurry hurt ignore imagine implement improve include increase
influence
inform insist inspire install intend introduce invest investigate invite involve join juggle jump
keep kick
kill kiss knock know lack laugh launch lead lean learn leave lend let lie lift light like listen
live load
look lose love maintain make manage mark match matter mean measure meet melt mention merge mind
miss mix
modify motivate move need note notice obtain occur offer open operate order organize overcome owe
own pack
paint park participate pass pay perform persuade pick place plan plant play plug point post pour
practice
praise prefer prepare present press prevent print produce promise promote protect prove provide
publish pull
push put quit raise reach react read realize receive recognize recommend recover reduce refer
reflect refuse
regret reject relate relax release rely remain remember remind remove rent repair repeat replace
reply report
represent request require rescue research resolve respect respond rest restart restore retire
return reveal
review ride ring rise roll rollback rub ruin run rush save say scare schedule search see seek seem
select sell send
separate serve set settle shake share shift shine shoot show shut sign sing sip sit skip sleep
slip smell
smile solve sort sound spark speak spend split spot spread stand stare start stay steal stick stop
strengthen
stretch strike struggle study submit succeed suffer suggest suit supply support suppose surprise
surround
survive switch take talk taste teach tear tell tend test thank think throw touch track trade train
transform
translate travel treat trust try turn type understand unwind update upgrade upload use value vary
view visit
volunteer vote wait wake walk wander want warn wash waste watch wear welcome win wish wonder work
worry wrap
write yell unplug recharge broaden navigate optimize utilize integrate incorporate opt pursue
reconnect
reach rekindle cherish resonate uplift motivate symbolize resemble highlight showcase craft
brighten bond bump
chill cruise dig dive explode hop lay pet pop rock settle sneak snap snuggle stream sweat tackle
throw tune
wow vent whip zoom gotta book bookmark crash debug configure compile commit migrate fetch parse
push pull
savor savour engage colonize assist acknowledge empower nurture thrive flourish bloom evoke
immerse unlock ignite unite strive linger relish embark dwell soothe intrigue
hike camp jog swim bike surf ski knit offer demonstrate analyze conduct portray depict feature
argue claim customize detect diagnose
download draft edit estimate evaluate execute filter generate identify illustrate inspect interact
interpret justify label
monitor negotiate notify outline perceive persist predict preserve process propose purchase
qualify quote rank rate
reassure reconsider rehearse reinforce relocate revise sample scan seal secure simplify specify
stir summarize
supervise swap sync tailor tidy trim troubleshoot validate verify wipe withdraw chop blend presume
resume sew garden meditate stroll
""")

# Verbs of the list that are as often nouns; the words around them decide.
NOUN_VERBS = words(
    "act aim bet blow boost break burn call care cause change charge chase chat check cheer "
    "climb "
    "cook copy count cover cry cut dance deal delay demand deploy design display dream drink "
    "drive drop "
    "end escape experience face fall feed fight figure fit fix focus gain guess heat help "
    "hike hold hope hug hunt "
    "hurry increase influence jump kick kiss knock lack laugh launch lead lie lift light load "
    "look love mark match "
    "matter mind miss mix move need note notice offer order pack paint park pass pay pick "
    "place plan plant play "
    "plug point post practice praise present press print produce promise push raise reach "
    "read record release rent "
    "repair reply report request rescue research respect rest restart return review ride ring "
    "rise roll rollback rub "
    "ruin run rush schedule search set shake share shift shoot show sign sleep slip smell "
    "smile sort sound spark "
    "split spot spread stand stare start stay stick stop stretch strike struggle study supply "
    "support surprise "
    "switch talk taste test thank touch track trade train travel treat trust try turn type "
    "update upgrade upload "
    "use value view visit volunteer vote wait walk wash waste watch welcome win wish wonder "
    "work worry wrap "
    "bond craft cruise dive highlight pet pop rock snap stream sweat tune book bookmark crash "
    "commit camp garden "
    "build merge offer feature claim download draft filter label monitor process purchase "
    "quote rank rate sample scan seal swap resume present pull push center bike surf ski swim "
    "jog stroll influence contact challenge trip form state result"
)

# Noun senses so much commoner that, not after a subject or a modal, the word is a noun.
MOSTLY_NOUNS = words(
    "book park plant garden bike pet rock stream camp face sound train match garden schedule "
    "design research "
    "build feature label monitor process rate sample resume filter draft download quote paint "
    "report review test update upgrade release order dance volunteer study craft cook ring "
    "sign contact cover "
    "load crash commit rollback deploy trade track travel practice light print record ski rent"
)

_IRREGULAR = ordered("""
am is are was were been being had has did done went gone going made took taken got gotten came saw
seen knew known
thought gave given found told felt left kept began begun brought bought wrote written stood heard
let meant
met paid ran sat spoke spoken led grew grown lost fell fallen sent built understood drew drawn
broke broken
spent cut rose risen drove driven chose chosen ate eaten caught taught sold won wore worn flew
flown forgot
forgotten hid hidden held hurt laid lay lent lit put quit read rode ridden rang rung said sang
sung set shook
shaken shot shut slept stole stolen struck swam swum threw thrown tore torn woke woken became blew
blown
bent bet bit bitten bled bred dealt dug drank drunk fed fought hung hit knelt sought shone spread
stuck stung
swept swung wept wound shown showed proven lying dying tying died lied tied overcame overcome beat
beaten
bore born forgave forgiven sank sunk sprang withdrew rebuilt retold redid sewn mistaken
""")


def _inflect(verb: str) -> tuple[str, str, str]:
    """Give the -s, -ed and -ing forms by the regular rules."""
    vowels = "aeiou"
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in vowels:
        return verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    third = verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")
    short = len(verb) <= 4 and verb[-1] not in "wxy" + vowels and verb[-2] in vowels
    if (short and (len(verb) < 3 or verb[-3] not in vowels)) or verb in _DOUBLING:
        return third, verb + verb[-1] + "ed", verb + verb[-1] + "ing"
    return third, verb + "ed", verb + "ing"


_DOUBLING = words("admit commit occur prefer refer regret submit forget begin")
_FORMS = {verb: _inflect(verb) for verb in _VERBS}

# Every -ing form the lexicon knows.
GERUNDS = frozenset(forms[2] for forms in _FORMS.values())
# Base and third-person forms that are never nouns.
VERBS = frozenset(
    form
    for verb, forms in _FORMS.items()
    for form in ((verb, *forms[:2]) if verb not in NOUN_VERBS else (forms[1],))
) | frozenset(_IRREGULAR) - words("left lead lay wound bit bore spread drunk")
# Forms that are nouns or verbs by context.
AMBIGUOUS = NOUN_VERBS | frozenset(forms[0] for verb, forms in _FORMS.items() if verb in NOUN_VERBS)

# Gerunds that name a pursuit rather than what goes on in the sentence.
ACTIVITY_GERUNDS = words(
    "swimming hiking running jogging painting drawing cooking baking camping fishing skiing "
    "surfing dancing "
    "singing writing reading coding programming gaming gardening knitting sewing yoga cycling "
    "biking climbing "
    "kayaking boxing wrestling skating skateboarding snowboarding sailing diving snorkeling "
    "traveling "
    "volunteering parenting meditation meditating networking marketing budgeting training "
    "fundraising "
    "mentoring counseling blogging vlogging streaming investing woodworking pottery "
    "birdwatching "
    "photographing sightseeing shopping driving walking stargazing journaling testing "
    "debugging logging "
    "riding racing tasting monitoring caching indexing sharding hosting billing shipping "
    "housing clothing lighting wedding "
    "building meeting morning evening ceiling wiring plumbing roofing landscaping catering "
    "bowling rafting"
)
# After these an -ing form is what is pursued, a noun.
PURSUING = words(
    "love loves loved enjoy enjoys enjoyed like likes liked hate hates do doing did go goes "
    "went going prefer "
    "start started starting stop stopped quit practice practicing practise tried into about"
)
# -ing forms that are never what a text is about.
BUSY_GERUNDS = words(
    "being going doing having getting making taking putting seeing coming looking trying "
    "using keeping giving telling "
    "saying knowing thinking talking working helping hearing sharing finding feeling wanting "
    "asking letting "
    "turning starting leaving bringing"
)
# Nouns that merely end like a participle or an adverb.
TRUE_NOUNS = words(
    "building meeting wedding ceiling string king ring wing spring painting clothing lighting "
    "housing evening "
    "morning earring pudding sibling sterling duckling dumpling lightning thing bed seed feed "
    "speed breed weed "
    "need shed sled embed red hundred family reply supply july italy ally assembly fly jelly "
    "belly butterfly "
    "anomaly monopoly lily bully rally doily homily tally ply sally molly kelly emily billy "
    "holly "
    "music topic clinic traffic fabric logic mechanic picnic critic comic panic republic "
    "rhetoric arithmetic "
    "plastic ceramic attic mosaic medic paramedic antibiotic academic graphic metric arctic "
    "garlic relic statistic "
    "archive drive olive motive executive native detective objective perspective initiative "
    "alternative dive "
    "hive beehive cooperative directive incentive narrative representative relative "
    "preservative additive "
    "table vegetable cable stable fable timetable variable vegetables constable dish fish "
    "radish "
    "finish parish polish english spanish turkish british virus bonus campus cactus status "
    "focus octopus chorus"
)

# Abbreviations after which a full stop ends nothing.
ABBREVIATIONS = words(
    "mr mrs ms dr prof st sr jr vs etc e.g i.e eg ie cf al approx dept est fig figs gen gov "
    "inc ltd co corp "
    "no nos op pp vol vols rev hon capt col sgt lt maj ph.d m.d b.a m.a ave blvd rd mt ft "
    "dept univ assn bros "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat "
    "sun a.m p.m u.s "
    "u.k u.n e.u min max avg resp incl excl esp ca viz ed eds trans ver ch sec tel ext misc"
)
# Abbreviations that often close a sentence: a capital after them ends it.
CLOSING_ABBREVIATIONS = words("etc a.m p.m inc ltd co corp jr sr u.s u.k e.u u.n al ph.d m.d")

NEGATIONS = words(
    "not no never none nobody nothing neither nor cannot without isn't aren't wasn't weren't "
    "don't doesn't "
    "didn't haven't hasn't hadn't won't wouldn't can't couldn't shouldn't mustn't needn't "
    "ain't hardly barely "
    "rarely seldom refuse refused stop stopped avoid cancel cancelled canceled except unless "
    "unable fail failed "
    "instead dont didnt doesnt cant wont isnt"
)
CONTRASTS = (
    "but",
    "however",
    "although",
    "though",
    "except",
    "unless",
    "instead",
    "yet",
    "unfortunately",
    "otherwise",
    "rather than",
)
CONDITIONS = (
    "if",
    "unless",
    "although",
    "though",
    "even if",
    "even though",
    "when",
    "while",
    "since",
    "because",
    "after",
    "before",
    "once",
    "whenever",
    "as soon as",
    "in case",
    "given that",
)
OPENERS = words(
    "and but so or then also well oh hey hi hello wow yeah yes yep yup sure okay ok thanks "
    "thank absolutely "
    "definitely actually basically honestly plus anyway besides moreover furthermore however "
    "additionally "
    "finally firstly secondly lastly overall alright right hmm haha lol aww aw awww ah cool "
    "great awesome "
    "indeed meanwhile therefore thus congrats bye goodbye because though although yet "
    "please"
)
# May go from the middle of a clause without changing what it says.
DROPPABLE = words(
    "very really just so quite pretty super totally absolutely definitely actually basically "
    "honestly "
    "literally simply truly extremely incredibly certainly obviously especially particularly "
    "kinda sorta "
    "somewhat also even still already indeed surely amazing awesome wonderful great nice "
    "lovely beautiful "
    "fantastic incredible gorgeous bit"
)
NO_END = (
    DETERMINERS
    | POSSESSIVES
    | PREPOSITIONS
    | (CONJUNCTIONS - {"etc", "also", "instead", "however"})
    | AUXILIARIES
    | words(
        "i you he she we they very really just so too not i'm it's we're they're you're he's "
        "she's i've "
        "we've that's there's let's i'll we'll i'd there n't really been get got make "
        "made"
    )
)
