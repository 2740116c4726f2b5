"""The scenarios that are served. Each is written when it is first wanted, and gone with the bench's folder."""

TOOL = """\
  - tool:
      name: {name}
      description: {about}
      inputSchema: {{ type: object, properties: {{ text: {{ type: string }} }}, required: [text] }}
    response:
      content:
        - {{ type: text, text: "{text}" }}
"""


def tool(name, text):
    return TOOL.format(name=name, about=f"Does what {name} does.", text=text)


# name: the tools of it.
SCENARIOS = {
    "fixed": lambda: [tool("echo", "Sixteen letters!")],
    "filled": lambda: [tool("echo", "${args.text}")],
    "tools": lambda: [tool(f"tool_{n}", f"answer {n} to ${{args.text}}") for n in range(1000)],
}


class Desk:
    """Where the scenarios lie."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, name):
        path = self.folder / f"{name}.yaml"
        if not path.exists():
            self.folder.mkdir(exist_ok=True)
            path.write_text("server: { name: bench, version: 1.0.0 }\ntools:\n" + "".join(SCENARIOS[name]()))
        return str(path)
