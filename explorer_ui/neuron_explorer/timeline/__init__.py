"""The timeline: its data routes, its Dash component and its page.

In an application of your own:

    app = Dash(__name__)
    register(app.server, library)  # anything with `get(profile_id) -> Profile`
    app.layout = NeuronTimeline(profile="run", style={"height": "80vh"})
"""

from neuron_explorer.timeline.component import NeuronTimeline
from neuron_explorer.timeline.routes import Library, register

__all__ = ["Library", "NeuronTimeline", "register"]
