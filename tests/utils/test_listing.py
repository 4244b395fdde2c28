"""Lists: they fit the terminal, cut nothing, and are plain when piped."""

from synthetic_returns.utils.listing import Listing

ROWS = [
    ("short", "1", "a sentence that is as long as a sentence can be before it is too long for one"),
    ("a-name-that-has-no-room-beside-the-others", "1,234", ""),
]
LISTING = Listing(("name", "steps", "what it is"), ROWS, frozenset({"steps"}), below="what it is")


def test_a_terminal_gets_columns_that_fit():
    assert LISTING.fitted(40).split("\n") == [
        "name                               steps",
        "short                                  1",
        "    a sentence that is as long as a",
        "    sentence can be before it is too",
        "    long for one",
        "a-name-that-has-no-room-beside-the-others",
        "                                   1,234",
    ]


def test_other_programs_get_fields():
    lines = LISTING.plain().split("\n")
    assert lines[0] == "name\tsteps\twhat it is"
    assert lines[2] == "a-name-that-has-no-room-beside-the-others\t1,234\t"
    spread = Listing(("a", "b"), [("one\ttwo", "three\nfour")])
    assert spread.plain().split("\n")[1] == "one two\tthree four"


def test_nothing_to_list():
    assert Listing(("name", "steps"), []).fitted(80) == "name  steps"
