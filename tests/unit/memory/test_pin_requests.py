"""Which sentences ask to be remembered (memory model, section 4, step 3c)."""

from __future__ import annotations

import pytest

from ebbtide.memory.pin_requests import asks_to_remember
from tests.support.second_edition.digestion import asks_to_remember as asks_by_the_page

REQUESTS = """
Don't forget my locker, it is number 12.
Please don’t forget: the alarm code is 4411.
Do not forget that Ann is allergic.
Never forget that I'm allergic to peanuts.
PLEASE REMEMBER my blood type is AB.
Remember that the spare key is under the mat.
Remember this: the code is 99.
Remember: no nuts.
I want you to remember that I'm vegetarian.
You should remember that I'm vegetarian.
I can't remember the old code, so please remember that the new one is 99.
We must never forget that she can't swim.
请记住，我不吃香菜。
记牢了，密码是四四一一。
你帮我记住，周五要交房租。
我对花生严重过敏，千万别忘了。
别忘了我的储物柜是12号。
别忘带伞。
不要忘记周五的会。
我上次没记住密码，这次千万别忘了。
我要记住这个日子。
請記住，我不吃香菜。
"""

NO_REQUESTS = """
I can't remember that film.
I really can't even remember that film.
I don't remember that.
I couldn’t quite remember that name.
He never remembers that.
It is hard to remember that number.
I was unable to remember that.
I tried to remember that song.
I remember that day well.
I'll always remember that summer.
I'll never forget that summer.
We never forget a face.
I don't forget things.
Do you remember that film? We saw it twice.
No need to remember that, it was a joke.
You don't have to remember that. Please remember nothing.
You do not need to remember this.
The forget-me-nots bloom.
我没记住密码。
我没有记住他的名字。
密码太长，我记不住。
我记住了。
他已经记住了路。
不用记住这个。
这个不必帮我记，别忘了也行。
别记了，只是玩笑。
我特别忘事。
我分别记了三次账。
我忘了带伞。
"""


@pytest.mark.parametrize("asks", [asks_to_remember, asks_by_the_page])
def test_a_request_is_an_imperative(asks: object) -> None:
    """An imperative pins. A report, a failure of memory, and a denial do not; the oracle agrees."""
    assert callable(asks)
    assert [line for line in REQUESTS.strip().splitlines() if not asks(line)] == []
    assert [line for line in NO_REQUESTS.strip().splitlines() if asks(line)] == []
