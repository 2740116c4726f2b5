"""The tapes that are played. Each is written when it is first wanted, in the form of who plays it,
and gone with the bench's folder."""

import json
import subprocess

# name: arguments of bench/tape.c, those of --quick, and who plays it besides tapegate.
TAPES = {
    "calls": (["--calls", "200000"], ["--calls", "200000"], {"recall"}),
    "few": (["--calls", "20000"], ["--calls", "20000"], {"peers"}),
    "ready": (["--calls", "100000"], ["--calls", "100000"], {"recall", "peers"}),
    "empty": (["--calls", "0"], ["--calls", "0"], set()),
    # Lines of about 290 bytes and of about 100,000.
    "small": (["--bytes", "2e9", "--text", "103"], ["--bytes", "2e8", "--text", "103"], {"wc -l"}),
    "large": (["--bytes", "2e9", "--text", "99800"], ["--bytes", "2e8", "--text", "99800"], {"wc -l"}),
}
BIG = {"small", "large"}
# What peers play instead, which take seconds to load the other, and what they are asked then: for some
# the time of a call grows with the tape, others have one session for everybody.
FOR_PEERS = {"calls": ("few", {"--count": 20000, "--window": 16, "--sessions": 0})}


class Shelf:
    """Where the tapes lie."""

    def __init__(self, program, folder, quick):
        self.program, self.folder, self.quick = program, folder, quick
        self.facts = {}

    def tape(self, name, form="tapegate"):
        """The path of a tape in the form of a player. What is on it is in `facts`."""
        path = self.folder / f"{name}.{form}"
        if (name, form) not in self.facts:
            self.folder.mkdir(exist_ok=True)
            args = TAPES[name][1 if self.quick else 0]
            command = [self.program, str(path), "--form", form, *args]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            self.facts[name, form] = json.loads(done.stdout)
        return str(path)
