"""GPipe (arXiv 1811.06965): the layer, its stages, the micro-batch loop.

planning/    what cells cost, how they are cut
schedules/   in which order passes come
timelines/   when they came
"""
