"""The scenarios that are served. Each is written when it is first wanted, and gone with the bench's folder."""

TEXT_BYTES = 16

TOOL = """  - tool:
      name: {name}
      description: Says a text. This description is about as long as they often are, number {number}.
      inputSchema:
        type: object
        properties:
          text: {{ type: string, description: What is said }}
          volume: {{ type: integer, minimum: 0, maximum: 10 }}
        required: [text]
    response:
      content:
        - {{ type: text, text: "{text}" }}
"""
SAME, ARGUMENT = "x" * TEXT_BYTES, "${args.text}"
# name: how many tools there are, and what they say.
SCENARIOS = {"fixed": (1, SAME), "template": (1, ARGUMENT), "many": (1000, SAME)}


def scenario(folder, name):
    """The path of a scenario. The load generators call the last of its tools."""
    path = folder / f"{name}.yaml"
    if not path.exists():
        count, text = SCENARIOS[name]
        names = [f"tool_{n}" for n in range(count - 1)] + ["echo"]
        tools = (TOOL.format(name=name, number=n, text=text) for n, name in enumerate(names))
        path.write_text("server: { name: bench, version: 1.0.0 }\ntools:\n" + "".join(tools))
    return str(path)
